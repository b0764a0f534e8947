"""Writes a recording: whole files under their final names, then the manifest.

``progress.json`` says what is to be copied and which files are done.  A process that is killed leaves it behind, and
the next one goes on behind the last file that is listed there.
"""

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Self

from controller.adapters.disk import files
from controller.adapters.recordings.manifest import (
    BEGIN,
    FORMAT_VERSION,
    LARGEST_FILE,
    MANIFEST,
    MOST_FILES,
    Manifest,
    RecordedExtent,
    RecordingError,
    RecordingFile,
    content_of,
    manifest_bytes,
)
from controller.adapters.recordings.record_log import RECORDED_TOPICS, Extent, Extents, RecordedTopic, StoredRecord
from controller.adapters.recordings.records_file import packed, read_size, unpacked_size
from controller.model.errors import SettingsError, WireError
from controller.wire.base import Record, encode, validate

PROGRESS: Final = "progress.json"
_LOCK: Final = ".lock"
_LARGEST_PROGRESS: Final = 64 << 20
#: A file is written when its records take so many bytes of memory to read, or when there are so many records.
FILE_BYTES: Final = LARGEST_FILE // 2
FILE_RECORDS: Final = 100_000
#: As it is where records keep their offsets for ever.
NOTHING_MOVES: Final[Mapping[RecordedTopic, str]] = {}


class RecordingProgress(Record):
    """How far a recording has come."""

    version: Literal[4] = FORMAT_VERSION
    asked: str
    """What was asked for; only the same is continued."""
    manifest: Manifest
    """What will be written at the end; its topics are what is to be copied, its files what is done."""
    counted_from: Mapping[RecordedTopic, str] = NOTHING_MOVES
    """What the log's offsets are counted from, where that may change."""


class RecordingWriter:
    """Writes the recording in a folder, or goes on with it.  One process at a time."""

    def __init__(self, folder: Path, *, file_records: int = FILE_RECORDS) -> None:
        """SettingsError where *folder* holds something else, or a complete recording."""
        self._folder, self._file_records = folder, file_records
        self._made = _make(folder)
        self._lock = _locked(folder)
        try:
            self._progress = _progress_in(folder)
        except BaseException:
            self._progress = None
            self.close()
            raise
        self._waiting: list[StoredRecord] = []
        self._waiting_bytes = 0

    @property
    def continued_request(self) -> str | None:
        """What the recording was asked for that is to be continued; None where this is a new one."""
        return None if self._progress is None else self._progress.asked

    def begin(
        self,
        request: str,
        manifest: Manifest,
        known: bytes = b"",
        counted_from: Mapping[RecordedTopic, str] = NOTHING_MOVES,
    ) -> None:
        """Begin a new recording of what *manifest* says in its topics; *request* is kept as ``begun``.

        *known*: what was known before, if *manifest* tells of it.  *counted_from*: see RecordLog.
        """
        if manifest.known_before is not None:
            files.replace(self._folder / BEGIN, known)
        else:
            (self._folder / BEGIN).unlink(missing_ok=True)
        self._keep(RecordingProgress(asked=request, manifest=manifest, counted_from=counted_from))
        for topic in RECORDED_TOPICS:
            (self._folder / topic).mkdir(exist_ok=True)

    @property
    def manifest(self) -> Manifest:
        """What is to be copied, and the files that are done."""
        assert self._progress is not None, "begin comes first"
        return self._progress.manifest

    def counted_from(self, topic: RecordedTopic) -> str:
        """What the log's offsets of *topic* were counted from when this recording was begun."""
        return "" if self._progress is None else self._progress.counted_from.get(topic, "")

    def remaining(self, topic: RecordedTopic) -> Extents:
        """What of *topic* is still to be copied."""
        remaining = {each.partition: Extent(each.first, each.end) for each in self.manifest.topics.get(topic, ())}
        for file in self.manifest.of_topic(topic):
            for part in file.partitions:
                remaining[part.partition] = Extent(part.end, remaining[part.partition].end)
        return {partition: extent for partition, extent in remaining.items() if extent.first < extent.end}

    def add(self, topic: RecordedTopic, record: StoredRecord) -> None:
        """Take *record*, the next one of its partition of *topic*; a topic is ended by ``end_topic``.

        RecordingError where it is so large, or has so many headers, that nobody could read it again.
        """
        size = read_size(record)
        if size > LARGEST_FILE - FILE_BYTES:
            raise RecordingError(
                f"{topic}, partition {record.partition}, offset {record.offset}: reading this record "
                f"back would take {size} bytes, allowed: {LARGEST_FILE - FILE_BYTES}: leave it out with --offsets"
            )
        if self._waiting and (self._waiting_bytes + size > FILE_BYTES or len(self._waiting) >= self._file_records):
            self._write(topic)
        self._waiting.append(record)
        self._waiting_bytes += size

    def end_topic(self, topic: RecordedTopic) -> None:
        """Write what is left of *topic*."""
        if self._waiting:
            self._write(topic)

    def finish(self) -> Manifest:
        """Write the manifest: the recording is complete."""
        done = _with_counts(self.manifest)
        files.replace(self._folder / MANIFEST, manifest_bytes(done))
        (self._folder / PROGRESS).unlink()
        (self._folder / _LOCK).unlink(missing_ok=True)
        return done

    def discard(self) -> None:
        """Remove what was begun: there is nothing to record."""
        for file in self.manifest.files:
            (self._folder / file.path).unlink(missing_ok=True)
        for name in (PROGRESS, BEGIN):
            (self._folder / name).unlink(missing_ok=True)
        for topic in RECORDED_TOPICS:
            (self._folder / topic).rmdir()
        self._progress = None

    def close(self) -> None:
        """Let others write.  Where nothing was begun, no file is left, and no folder that was made for it."""
        if self._progress is None and not (self._folder / PROGRESS).exists():
            (self._folder / _LOCK).unlink(missing_ok=True)
            for made in self._made:
                with suppress(OSError):  # somebody else has put something there
                    made.rmdir()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, topic: RecordedTopic) -> None:
        records, self._waiting, self._waiting_bytes = self._waiting, [], 0
        done = self.manifest
        if len(done.files) >= MOST_FILES:
            raise RecordingError(f"{self._folder}: a recording has {MOST_FILES} files at most: record a shorter time")
        path = f"{topic}/{sum(file.topic == topic for file in done.files):06d}.parquet"
        content = packed(records)
        files.replace(self._folder / path, content)
        file = RecordingFile(
            path=path,
            records=len(records),
            bytes=len(content),
            unpacked_bytes=sum(map(unpacked_size, records)),
            sha256=hashlib.sha256(content).hexdigest(),
            first_ms=max(0, min(record.timestamp_ms for record in records)),
            last_ms=max(0, max(record.timestamp_ms for record in records)),
            partitions=_parts(records),
        )
        assert self._progress is not None
        manifest = done.model_copy(update={"files": (*done.files, file)})
        self._keep(self._progress.model_copy(update={"manifest": manifest}))

    def _keep(self, progress: RecordingProgress) -> None:
        files.replace(self._folder / PROGRESS, encode(progress))
        self._progress = progress


def _parts(records: Sequence[StoredRecord]) -> tuple[RecordedExtent, ...]:
    counts = Counter(record.partition for record in records)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for record in records:
        first.setdefault(record.partition, record.offset)
        last[record.partition] = record.offset
    return tuple(
        RecordedExtent(partition=each, first=first[each], end=last[each] + 1, records=counts[each])
        for each in sorted(counts)
    )


def _with_counts(manifest: Manifest) -> Manifest:
    """*manifest* whose topics say how many records were copied."""
    topics = {}
    for topic, extents in manifest.topics.items():
        counts: Counter[int] = Counter()
        for file in manifest.of_topic(topic):
            counts.update({part.partition: part.records for part in file.partitions})
        topics[topic] = tuple(each.model_copy(update={"records": counts[each.partition]}) for each in extents)
    return manifest.model_copy(update={"topics": topics})


def _progress_in(folder: Path) -> RecordingProgress | None:
    """How far the recording in *folder* has come; None where there is none.  Removes what a killed process left."""
    if (folder / MANIFEST).exists():
        # A process that was killed right behind the manifest left it.
        (folder / PROGRESS).unlink(missing_ok=True)
        raise SettingsError(f"{folder} holds a complete recording already: choose another folder with -o")
    progress_file = folder / PROGRESS
    if not progress_file.exists():
        # What was known before is written first, so a killed process may have left it.
        others = sorted(each.name for each in folder.iterdir() if each.name != BEGIN and each.name[0] != ".")
        if others:
            raise SettingsError(f"{folder} is not empty, it holds {others[0]!r}: choose another folder with -o")
        _delete_left(folder)  # there may be true names in it, and none are wanted now
        return None
    try:
        progress = validate(RecordingProgress, content_of(progress_file, _LARGEST_PROGRESS))
    except WireError as error:
        raise RecordingError(f"{progress_file}: {error.detail}: delete {folder} and record again") from error
    known = progress.manifest.known_before
    sums = {file.path: file.sha256 for file in progress.manifest.files} | ({BEGIN: known.sha256} if known else {})
    for path, sha256 in sums.items():
        if hashlib.sha256(content_of(folder / path, LARGEST_FILE)).hexdigest() != sha256:
            raise RecordingError(f"{folder / path}: was changed: delete {folder} and record again")
    _delete_left(folder)
    return progress


def _delete_left(folder: Path) -> None:
    for place in (folder, *(folder / topic for topic in RECORDED_TOPICS)):
        for leftover in filter(files.is_left, place.glob(".*")):
            leftover.unlink(missing_ok=True)


def _make(folder: Path) -> list[Path]:
    """Make *folder*, and those above it; returns those that were not there, the innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _locked(folder: Path) -> int:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise SettingsError(
            f"{folder}: another `trimtab record` is writing to it: choose another folder with -o"
        ) from error
    return lock
