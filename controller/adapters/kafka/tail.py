"""The end of a log in Kafka, newest first."""

from collections.abc import Iterator
from typing import Final

from controller.adapters.kafka.inspect import WINDOWS, newest_first
from controller.adapters.kafka.journal import epoch_of, is_anothers, journal_head
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.ports.systems import JournalTail, ReadTopic
from controller.settings.log import KafkaLogSettings
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import PartEntry, PartJoiner, record_at

#: Offsets that leaderships may take among the newest decisions.
_LEADERSHIPS: Final = 100
#: Entries that are read at once: in a large cluster an entry of the journal has a megabyte.
_ENTRIES_AT_ONCE: Final = 32
#: Offsets of the journal that are read at a time: at first, and at most.
_OF_JOURNAL: Final = (2 * _ENTRIES_AT_ONCE, 256)
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
        log = self._log
        name = {"metrics": log.metrics_topic, "results": log.results_topic}[topic]
        records = newest_first(
            log.bootstrap,
            name,
            client=log.client,
            keep=lambda value: any(text in value for text in wanted),
            windows=WINDOWS,
        )
        for record in records:
            yield record.value

    def journal_backwards(self, cluster: str) -> Iterator[bytes]:
        """See LogTail."""
        log = self._log
        for record in newest_first(log.bootstrap, log.journal_topic, client=log.client, windows=_OF_JOURNAL):
            if not is_anothers(record, cluster):
                yield record.value

    def last_entry(self, cluster: str) -> JournalEntry | None:
        """See LogTail."""
        return journal_head(self._log, cluster=cluster).last

    def journal_tail(self, cluster: str, most: int, about: bytes) -> JournalTail:
        """See LogTail."""
        decisions: list[Decision] = []
        epoch = 0
        records = newest_first(
            self._log.bootstrap,
            self._log.journal_topic,
            client=self._log.client,
            keep=lambda value: about in value or _PART in value,
            windows=(2 * min(most, _ENTRIES_AT_ONCE), WINDOWS[1]),
            # An entry takes two offsets, the second of which ends its transaction; leaderships lie in between.
            reach=2 * most + _LEADERSHIPS,
        )
        joiner = PartJoiner()
        for raw in records:
            if is_anothers(raw, cluster):
                continue
            record = record_at(raw.value, raw.offset)
            if record.cluster != cluster:
                continue
            epoch = epoch or epoch_of(raw)
            if isinstance(record, PartEntry):
                joined = joiner.joined_backwards(record)
                record = record if joined is None else record_at(joined, raw.offset)
            if isinstance(record, DecisionEntry | DeltaEntry):
                decisions.append(to_decision(record))
                if len(decisions) == most:
                    break
        return JournalTail(tuple(decisions), epoch)
