"""The topics byte for byte, for recordings and replays."""

import heapq
from collections.abc import Iterator, Mapping
from contextlib import closing

from controller.adapters.recordings.record_log import Extent, Extents, RecordedTopic, StoredRecord
from controller.log.port import Log, LogRecord, Start


class LogRecords:
    """RecordLog on *log*."""

    def __init__(self, log: Log, *, where: str) -> None:
        self._log, self._where = log, where

    @property
    def where(self) -> str:
        """See RecordLog."""
        return self._where

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        return {partition: Extent(ends.first, ends.end) for partition, ends in self._log.ends(topic).items()}

    def counted_from(self, topic: RecordedTopic) -> str:
        """See RecordLog."""
        return self._log.counted_from(topic)

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""
        return {partition: ends.first for partition, ends in self._log.ends(topic, time_ms).items()}

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        """See RecordLog."""
        there = self._log.ends(topic)
        if any(partition not in there or there[partition].records is None for partition in extents):
            return None
        # Where the system counts its records, positions are counts, but for gaps.
        return sum(extent.end - extent.first for extent in extents.values())

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog.  A reader for each partition: they stay abreast by their records' times."""
        parts = [self._partition(topic, each, extents[each]) for each in sorted(extents)]
        yield from heapq.merge(*parts, key=lambda record: record.timestamp_ms)

    def _partition(self, topic: RecordedTopic, partition: int, extent: Extent) -> Iterator[StoredRecord]:
        if extent.first >= extent.end:
            return
        with closing(self._log.read(topic, Start(position=extent.first), partition=partition)) as reader:
            for record in reader.read_to_end():
                if record.position >= extent.end:
                    return
                yield _stored(record)


def _stored(record: LogRecord) -> StoredRecord:
    return StoredRecord(
        partition=record.partition,
        offset=record.position,
        timestamp_ms=record.timestamp_ms,
        key=record.key or None,
        value=record.value,
        headers=tuple(record.headers.items()),
    )
