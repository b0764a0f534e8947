"""The end of a log in Kafka, newest first."""

import logging
from collections.abc import Iterator
from typing import Final

from controller.adapters.kafka.inspect import Reach, newest_first
from controller.adapters.kafka.journal import epoch_of, is_anothers, journal_head, near_head, tells_interval
from controller.adapters.kafka.reader import KafkaRecord
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.ports.systems import JournalTail, ReadTopic
from controller.settings.log import KafkaLogSettings
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import PartEntry, PartJoiner, record_at

log = logging.getLogger(__name__)

#: How far back the journal is read for the newest decisions: clusters may share the topic, and one of them may have
#: decided nothing for long.  A hundred clusters write so many offsets in eight hours.
_FARTHEST: Final = (100_000, 256 << 20)
#: Entries that are read at once: in a large cluster an entry of the journal has a megabyte.
_ENTRIES_AT_ONCE: Final = 32
#: Offsets of the journal that are read at a time: at first, and at most.
_OF_JOURNAL: Final = (2 * _ENTRIES_AT_ONCE, 256)
_LARGEST_WINDOW: Final = 4096
#: In every part of an entry that is too long for one record.
_PART: Final = b'"type":"part"'


class KafkaTail:
    """LogTail of the log that *log* names."""

    endless = True

    def __init__(self, log: KafkaLogSettings) -> None:
        self._log = log

    @property
    def where(self) -> str:
        """See LogTail."""
        return self._log.metrics_topic

    def backwards(self, topic: ReadTopic, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
        """See LogTail."""
        names = {
            "metrics": self._log.metrics_topic,
            "results": self._log.results_topic,
            "commands": self._log.commands_topic,
        }
        records = newest_first(
            self._log.bootstrap,
            names[topic],
            client=self._log.client,
            keep=lambda record: record if any(text in record.value for text in wanted) else None,
        )
        for record in records:
            yield record.value

    def journal_backwards(self, cluster: str) -> Iterator[bytes]:
        """See LogTail."""
        place = (self._log.bootstrap, self._log.journal_topic)
        for record in newest_first(*place, client=self._log.client, windows=_OF_JOURNAL):
            if not is_anothers(record, cluster):
                yield record.value

    def last_entry(self, cluster: str, *, far: bool = True) -> JournalEntry | None:
        """See LogTail."""
        return (journal_head if far else near_head)(self._log, cluster=cluster).last

    def journal_tail(self, cluster: str, most: int, about: bytes) -> JournalTail:
        """See LogTail.  Entries of other clusters in the topic do not count."""
        decisions: list[Decision] = []
        epoch, looked, reach = 0, 0, Reach(*_FARTHEST)
        joiner = PartJoiner()
        for raw in self._own_entries(cluster, most, about, reach):
            epoch = epoch or epoch_of(raw)
            if raw.value:
                record, value = record_at(raw.value, raw.offset), raw.value
                if isinstance(record, PartEntry):
                    joined = joiner.joined_backwards(record)
                    if joined is None:
                        continue
                    record, value = record_at(joined, raw.offset), joined
                if not isinstance(record, DecisionEntry | DeltaEntry):
                    continue
                decisions += [to_decision(record)] if about in value else []
            looked += 1
            if looked == most:
                break
        if reach.is_passed:
            _tell_passed(self._log.journal_topic, cluster, looked, most)
        return JournalTail(tuple(decisions), epoch, is_cut=reach.is_passed)

    def _own_entries(self, cluster: str, most: int, about: bytes, reach: Reach) -> Iterator[KafkaRecord]:
        """The entries about *cluster*; of a decision that has the text *about* nowhere, no value."""

        def own(record: KafkaRecord) -> KafkaRecord | None:
            if is_anothers(record, cluster):
                return None
            needed = about in record.value or _PART in record.value or not tells_interval(record)
            return record if needed else record._replace(value=b"")

        return newest_first(
            self._log.bootstrap,
            self._log.journal_topic,
            client=self._log.client,
            keep=own,
            # An entry takes two offsets, the second of which ends its transaction.
            windows=(2 * min(most, _ENTRIES_AT_ONCE), _LARGEST_WINDOW),
            reach=reach,
        )


def _tell_passed(topic: str, cluster: str, found: int, most: int) -> None:
    offsets, size = _FARTHEST
    log.warning(
        "Kafka topic %r: of the last %d decisions about cluster %r that were looked for, %d are among its newest %s"
        " offsets, or %d MB; others write there, too: with a journal_topic of its own the cluster is found sooner",
        topic, most, cluster, found, f"{offsets:,}", size >> 20,
    )  # fmt: skip
