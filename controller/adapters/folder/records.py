"""The log in a folder, record by record.  A folder is one partition; a record's offset is its number in its topic."""

import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

from controller.adapters.folder.names import command_files, decision_files, interval_in, record_files
from controller.model.errors import TrimtabError
from controller.ports.records import Extent, Extents, RecordedTopic, StoredRecord, offsets_in

#: Bytes of a file at most.
_LARGEST: int = 1 << 30


class _Listed(NamedTuple):
    """A file of a topic."""

    path: Path
    #: The offset of its first record, and how many it has.
    first: int
    records: int


class FolderRecords:
    """RecordLog on the log in *folder*.

    Each topic is listed once: whoever runs there deletes old files meanwhile, and offsets count from the oldest one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listed: dict[RecordedTopic, list[_Listed]] = {}

    @property
    def where(self) -> str:
        """See RecordLog."""
        return str(self._folder)

    def extents(self, topic: RecordedTopic) -> Extents:
        """See RecordLog."""
        if not (self._folder / topic).is_dir():
            return {}
        return {0: Extent(0, sum(file.records for file in self._files(topic)))}

    def counted_from(self, topic: RecordedTopic) -> str:
        """See RecordLog.  The oldest file."""
        return next((file.path.name for file in self._files(topic)), "")

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        """See RecordLog.

        A file's time is the interval that it is named after; before the first interval, when it was written.
        """
        if not (self._folder / topic).is_dir():
            return {}
        listed = self._files(topic)
        before = _next_intervals([file.path for file in listed])
        earlier = takewhile(lambda file: (interval_in(file.path) or _written_ms(file.path, before)) < time_ms, listed)
        return {0: sum(file.records for file in earlier)}

    def size(self, topic: RecordedTopic, extents: Extents) -> int:  # noqa: ARG002  # alike in all topics
        """See RecordLog."""
        return offsets_in(extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        """See RecordLog."""
        wanted, listed = extents.get(0, Extent(0, 0)), self._files(topic)
        before = _next_intervals([file.path for file in listed])
        for path, first, records in listed:
            if first >= wanted.end:
                return
            if first + records <= wanted.first:
                continue
            lines = _records_in(path, topic)
            written_ms = _written_ms(path, before)
            for number, line in enumerate(islice(lines, records), start=first):
                if wanted.first <= number < wanted.end:
                    yield StoredRecord(partition=0, offset=number, timestamp_ms=written_ms, key=None, value=line)

    def _files(self, topic: RecordedTopic) -> list[_Listed]:
        if topic not in self._listed:
            self._listed[topic] = [*self._list(topic)]
        return self._listed[topic]

    def _list(self, topic: RecordedTopic) -> Iterator[_Listed]:
        offset = 0
        for path in self._paths(topic):
            try:
                records = sum(1 for _ in _records_in(path, topic))
            except _GoneError:
                continue
            yield _Listed(path, offset, records)
            offset += records

    def _paths(self, topic: RecordedTopic) -> list[Path]:
        if topic == "journal":
            # A file for each decision.  Leaderships have no place among them that stays: all but the last are deleted.
            return decision_files(self._folder)
        if topic == "commands":
            return command_files(self._folder)
        return record_files(self._folder / topic)


class _GoneError(TrimtabError):
    """A file was deleted since it was listed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: was deleted since the log was listed, as old files are ([log.folder] retention_hours, [journal]"
            " retention_days)"
        )


def _written_ms(path: Path, before: Mapping[int, int]) -> int:
    """When *path* was written, at the latest; *before*: the last ms before the interval that follows each."""
    # A copy was modified later than its records were written, and the demo's log has a clock of its own.
    # A time of the future is nobody's: the query has refused such a tick, and a replay does, too.
    modified_ms = min(_modified_ms(path), time.time_ns() // 1_000_000)
    interval = interval_in(path)
    return modified_ms if interval is None else min(modified_ms, before.get(interval, modified_ms))


def _next_intervals(paths: Sequence[Path]) -> dict[int, int]:
    """Interval that *paths* are named after -> the last ms before the next one, when such a file was complete.

    After the newest interval one as long as the one before it is assumed; of a single interval nothing is known.
    """
    named = sorted({interval for path in paths if (interval := interval_in(path)) is not None})
    ends = {interval: following - 1 for interval, following in pairwise(named)}
    if len(ends) > 1 or (ends and named[0] > 0):
        ends[named[-1]] = 2 * named[-1] - named[-2] - 1
    return ends


def _modified_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError as error:
        raise _GoneError(path) from error


def _records_in(path: Path, topic: RecordedTopic) -> Iterator[bytes]:
    """The records in the file *path*, one by one: its lines, or all of it as an entry of the journal."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise TrimtabError(f"{path}: is no file, or has more than {_LARGEST} bytes: it cannot be read as a log")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise _GoneError(path) from error
    except OSError as error:
        raise TrimtabError(f"{path}: cannot be read: {error.strerror}") from error
    if topic == "journal":
        yield content
        return
    for line in BytesIO(content):
        if record := line.removesuffix(b"\n"):
            yield record
