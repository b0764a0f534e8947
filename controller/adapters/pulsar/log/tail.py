"""The end of a log in Pulsar, newest first."""

import heapq
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from controller.adapters.pulsar.log.client import topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.journal_reading import (
    EPOCH,
    first_of,
    journal_end,
    number,
    refuse_another_cluster,
    shown,
)
from controller.adapters.pulsar.log.reader import (
    LAST,
    MARK,
    OLDEST,
    LogRecord,
    MessagePlace,
    PartitionReader,
    Start,
    one_record,
)
from controller.adapters.pulsar.log.writer import now_ms
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.ports.systems import JournalTail, ReadTopic
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import PartEntry, PartJoiner, record_at

#: The stretch of time that is read first, ms.
_FIRST_MS: Final = 2_000
_FIRST_OF_JOURNAL_MS: Final = 300_000
_SHORTEST_MS: Final = 500
_LONGEST_MS: Final = 86_400_000
#: With fewer records than this the next stretch is longer, with more it is shorter.
_FEW, _MANY = 256, 4_096
_BYTES: Final = 32 << 20


class PulsarTail:
    """LogTail of the log that *log* names."""

    endless = True

    def __init__(self, log: PulsarLogSettings) -> None:
        self._log = log

    @property
    def where(self) -> str:
        """See LogTail."""
        return topic_name(self._log, self._log.metrics_topic)

    def backwards(self, topic: ReadTopic, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
        """See LogTail."""
        log = self._log
        names = {"metrics": log.metrics_topic, "results": log.results_topic, "commands": log.commands_topic}
        name = names[topic]
        with closing(LogConnection(log)) as connection:
            for record in newest_first(connection, name, keep=lambda value: any(text in value for text in wanted)):
                yield record.value

    def journal_backwards(self, cluster: str) -> Iterator[bytes]:  # noqa: ARG002 -- a log in Pulsar is one cluster's
        """See LogTail."""
        with closing(LogConnection(self._log)) as connection:
            for record in newest_first(connection, self._log.journal_topic):
                yield record.value

    def last_entry(self, cluster: str, *, far: bool = True) -> JournalEntry | None:  # noqa: ARG002 -- one cluster's
        """See LogTail."""
        with closing(LogConnection(self._log)) as connection:
            connection.existing(self._log.journal_topic)
            return journal_end(connection, cluster=cluster, now_ms=now_ms()).head.last

    def journal_tail(self, cluster: str, most: int, about: bytes) -> JournalTail:
        """See LogTail."""
        decisions: list[Decision] = []
        epoch, looked = 0, 0
        joiner = PartJoiner()
        with closing(LogConnection(self._log)) as connection:
            for raw in newest_first(connection, self._log.journal_topic):
                record = record_at(raw.value, shown(raw.place))
                refuse_another_cluster(record.cluster, cluster)
                epoch, value = epoch or number(raw, EPOCH) or 0, raw.value
                if isinstance(record, PartEntry):
                    joined = joiner.joined_backwards(record)
                    if joined is None:
                        continue
                    record, value = record_at(joined, shown(raw.place)), joined
                if isinstance(record, DecisionEntry | DeltaEntry):
                    looked += 1
                    decisions += [to_decision(record)] if about in value else []
                if looked == most:
                    break
        return JournalTail(tuple(decisions), epoch)


def newest_first(
    connection: LogConnection, name: str, *, keep: Callable[[bytes], bool] = lambda _: True
) -> Iterator[LogRecord]:
    """The records of the topic *name* that *keep* wants, from the present end backwards, by their append times.

    Reads stretches of time whose length follows from how much is in them, so that a caller who stops soon reads little.
    """
    is_journal = name == connection.log.journal_topic
    partitions = connection.existing(name)
    oldest = first_of(connection) if is_journal else OLDEST
    span = _FIRST_OF_JOURNAL_MS if is_journal else _FIRST_MS
    parts = [_backwards(connection, name, each, keep, oldest, span) for each in range(partitions)]
    yield from heapq.merge(*parts, key=lambda record: -record.timestamp_ms)


def _backwards(
    connection: LogConnection, name: str, partition: int, keep: Callable[[bytes], bool], oldest: Start, span: int
) -> Iterator[LogRecord]:
    first, last = (one_record(connection, name, partition, start) for start in (oldest, LAST))
    if first is None or last is None:
        return
    end: MessagePlace = (last.place[0], last.place[1], last.place[2] + 1)
    # Producers give the times: one far in the future would lead nowhere, and one far in the past to nothing.
    since = min(last.timestamp_ms, now_ms()) - span
    while end > first.place:
        start = Start(since_ms=since) if since > 0 else oldest
        begun, count, size = end, 0, 0
        kept: list[LogRecord] = []
        with closing(PartitionReader(connection, name, partition, start)) as reader:
            for record in reader.rest():
                if record.place >= end:
                    break
                if record.place < first.place:
                    continue  # pruned, and not deleted yet
                begun, count, size = min(begun, record.place), count + 1, size + len(record.value)
                if MARK not in record.properties and keep(record.value):
                    kept.append(record)
        yield from reversed(kept)
        if start is oldest:
            return
        end = begun
        if count > _MANY or size > _BYTES:
            span = max(_SHORTEST_MS, span // 4)
        elif not count:
            span *= 4  # nothing lies there, as long as that may be: a producer gave the time of the oldest record
        elif count < _FEW:
            span = max(span, min(_LONGEST_MS, span * 4))
        since -= span
