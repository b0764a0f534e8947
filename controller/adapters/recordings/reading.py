"""Reads a recording: each file's SHA-256 is compared before it is unpacked."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from controller.adapters.recordings.manifest import (
    BEGIN,
    LARGEST_FILE,
    MANIFEST,
    KnownBeginning,
    Manifest,
    RecordedExtent,
    RecordingError,
    RecordingFile,
    content_of,
    lines_in,
    read_manifest,
)
from controller.adapters.recordings.record_log import Extent, Extents, RecordedTopic, StoredRecord
from controller.adapters.recordings.records_file import SplitRecord, records_of, split_records_of, unpacked
from controller.adapters.recordings.writing import PROGRESS


def is_recording(folder: Path) -> bool:
    """Whether *folder* is that of a recording, be it complete or not."""
    return any((folder / name).exists() for name in (MANIFEST, PROGRESS))


class Recording:
    """RecordLog of the recording in *folder*.  RecordingError where it is incomplete, damaged or of another format."""

    def __init__(self, folder: Path) -> None:
        if not (folder / MANIFEST).exists() and (folder / PROGRESS).exists():
            raise RecordingError(
                f"{folder}: the recording is not complete, {MANIFEST} is missing: run the same `trimtab record` again"
            )
        self._folder = folder
        self.manifest: Manifest = read_manifest(folder)

    @property
    def where(self) -> str:
        """See RecordLog."""
        return str(self._folder)

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        return {each.partition: Extent(each.first, each.end) for each in self.manifest.topics.get(topic, ())}

    def counted_from(self, topic: RecordedTopic) -> str:  # noqa: ARG002  # alike in all topics
        """See RecordLog."""
        return ""

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog."""
        ends = {partition: extent.end for partition, extent in self.extents(topic).items()}
        for file in self.manifest.of_topic(topic):
            if file.last_ms < time_ms:
                continue
            table = self.table(file)
            late = table.column("timestamp").to_numpy() >= time_ms
            partitions, offsets = (table.column(name).to_numpy()[late] for name in ("partition", "offset"))
            for partition in np.unique(partitions).tolist():
                ends[partition] = min(ends[partition], int(offsets[partitions == partition].min()))
        return ends

    def size(self, topic: RecordedTopic, extents: Extents) -> int:
        """See RecordLog."""
        parts = [part for file in self.manifest.of_topic(topic) for part in file.partitions]
        return sum(part.records for part in parts if _meet(part, extents.get(part.partition)))

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog."""
        for file in self.manifest.of_topic(topic):
            if any(_meet(part, extents.get(part.partition)) for part in file.partitions):
                for record in records_of(self.table(file), self._folder / file.path):
                    extent = extents.get(record.partition)
                    if extent is not None and extent.first <= record.offset < extent.end:
                        yield record

    def split_records(self, topic: RecordedTopic) -> Iterator[SplitRecord]:
        """All records of *topic* as ``read`` gives them, but values in parts, which take less time to decode."""
        for file in self.manifest.of_topic(topic):
            yield from split_records_of(self.table(file), self._folder / file.path)

    @property
    def begin(self) -> tuple[bytes, ...]:
        """Records of metrics that count before all others: what was known when it begins."""
        about = self.manifest.known_before
        if about is None:
            return ()
        path = self._folder / BEGIN
        content = content_of(path, LARGEST_FILE)
        self._check_sum(path, content, about)
        return lines_in(content)

    def table(self, file: RecordingFile) -> pa.Table:
        """The records of *file*, a row each: see controller.adapters.recordings.records_file.SCHEMA."""
        path = self._folder / file.path
        content = content_of(path, LARGEST_FILE)
        self._check_sum(path, content, file)
        table = unpacked(content, path)
        _check(table, file, path)
        return table

    @staticmethod
    def _check_sum(path: Path, content: bytes, declared: RecordingFile | KnownBeginning) -> None:
        if len(content) != declared.bytes or hashlib.sha256(content).hexdigest() != declared.sha256:
            raise RecordingError(
                f"{path}: has {len(content)} bytes and another SHA-256 than in {MANIFEST} "
                f"({declared.bytes} bytes): it was truncated or changed; copy the recording again"
            )


class _Place(NamedTuple):
    partition: int
    records: int
    first: int
    last: int


def _check(table: pa.Table, file: RecordingFile, path: Path) -> None:
    """Raise RecordingError where *table* does not hold what the manifest says of *file*."""
    partition, offset = (table.column(name).to_numpy() for name in ("partition", "offset"))
    places = [
        _Place(number, len(here), int(here[0]), int(here[-1]))
        for number in np.unique(partition).tolist()
        for here in (offset[partition == number],)
        if (np.diff(here) > 0).all()
    ]
    declared = {part.partition: part for part in file.partitions}
    if len(table) != file.records or not all(_fits(each, declared.get(each.partition)) for each in places):
        raise RecordingError(f"{path}: contains other records than {MANIFEST} says")
    if sum(each.records for each in places) != len(table):
        raise RecordingError(f"{path}: contains an offset twice")


def _fits(place: _Place, declared: RecordedExtent | None) -> bool:
    return (
        declared is not None
        and place.records == declared.records
        and declared.first <= place.first
        and place.last < declared.end
    )


def _meet(part: RecordedExtent, extent: Extent | None) -> bool:
    return extent is not None and part.first < extent.end and extent.first < part.end
