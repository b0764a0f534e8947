"""The topics in Pulsar, record by record, byte for byte."""

import heapq
from collections.abc import Iterator, Mapping
from contextlib import closing

from controller.adapters.pulsar.log.client import where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.journal_reading import first_of
from controller.adapters.pulsar.log.positions import entry_of, number_of
from controller.adapters.pulsar.log.reader import LAST, MARK, OLDEST, Start, one_record, read_rest
from controller.ports.records import Extent, Extents, RecordedTopic, StoredRecord
from controller.settings.pulsar_log import PulsarLogSettings


class PulsarRecordLog:
    """RecordLog on the topics that *log* names."""

    def __init__(self, log: PulsarLogSettings) -> None:
        self._log = log

    @property
    def where(self) -> str:
        """See RecordLog."""
        return where(self._log)

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        found: dict[int, Extent] = {}
        with closing(LogConnection(self._log)) as connection:
            name = self._name(topic)
            oldest = first_of(connection) if topic == "journal" and connection.partitions(name) else OLDEST
            for partition in range(connection.partitions(name)):
                first, last = (one_record(connection, name, partition, start) for start in (oldest, LAST))
                if first is None or last is None:
                    found[partition] = Extent(0, 0)
                else:
                    found[partition] = Extent(number_of(*first.place), number_of(*last.place) + 1)
        return found

    def counted_from(self, topic: RecordedTopic) -> str:  # noqa: ARG002  # alike in all topics
        """See RecordLog."""
        return ""

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""
        ends = {partition: extent.end for partition, extent in self.extents(topic).items()}
        with closing(LogConnection(self._log)) as connection:
            for partition in ends:
                found = one_record(connection, self._name(topic), partition, Start(since_ms=time_ms))
                if found is not None:
                    ends[partition] = number_of(*found.place)
        return ends

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:  # noqa: ARG002
        """See RecordLog.  A place in Pulsar is no count: ledgers and batches leave most numbers out."""
        return None

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog."""
        with closing(LogConnection(self._log)) as connection:
            parts = [self._partition(connection, topic, each, extents[each]) for each in sorted(extents)]
            yield from heapq.merge(*parts, key=lambda record: record.timestamp_ms)

    def _partition(
        self, connection: LogConnection, topic: RecordedTopic, partition: int, extent: Extent
    ) -> Iterator[StoredRecord]:
        if extent.first >= extent.end:
            return
        place = entry_of(extent.first)
        for record in read_rest(connection, self._name(topic), partition, Start(entry=(place.ledger, place.entry))):
            offset = number_of(*record.place)
            if offset >= extent.end:
                return
            if offset >= extent.first:
                yield StoredRecord(
                    partition=partition,
                    offset=offset,
                    timestamp_ms=record.timestamp_ms,
                    key=record.key.encode() if record.key else None,
                    value=record.value,
                    headers=tuple((name, text.encode()) for name, text in record.properties.items() if name != MARK),
                )

    def _name(self, topic: RecordedTopic) -> str:
        log = self._log
        names: Mapping[RecordedTopic, str] = {
            "metrics": log.metrics_topic,
            "results": log.results_topic,
            "commands": log.commands_topic,
            "journal": log.journal_topic,
        }
        return names[topic]
