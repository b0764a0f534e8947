"""A log with pseudonyms in its metrics and results, and a journal that was made separately."""

from collections.abc import Iterator, Mapping, Sequence

from controller.adapters.recordings.record_log import (
    Extent,
    Extents,
    RecordedTopic,
    RecordLog,
    StoredRecord,
    offsets_in,
)
from controller.offline.pseudonyms.anonymise import ANONYMISED, Anonymiser


class AnonymisedLog:
    """RecordLog of *log* with the names of *other*; its journal is *journal*, and there are no commands."""

    def __init__(self, log: RecordLog, other: Anonymiser, journal: Sequence[StoredRecord]) -> None:
        self._log, self._other, self._journal = log, other, journal

    @property
    def where(self) -> str:
        """See RecordLog."""
        return self._log.where

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        if topic == "journal":
            return {0: Extent(0, len(self._journal))}
        return self._log.extents(topic) if topic in ANONYMISED else {}

    def counted_from(self, topic: RecordedTopic) -> str:
        """See RecordLog."""
        return self._log.counted_from(topic)

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""
        if topic == "journal":
            return {0: sum(record.timestamp_ms < time_ms for record in self._journal)}
        return self._log.since(topic, time_ms) if topic in ANONYMISED else {}

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        """See RecordLog."""
        return offsets_in(extents) if topic == "journal" else self._log.size(topic, extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog."""
        if topic == "journal":
            extent = extents.get(0, Extent(0, 0))
            yield from self._journal[extent.first : extent.end]
        elif topic in ANONYMISED:
            for record in self._log.read(topic, extents):
                yield self._other.rewrite(topic, record)
