"""The files of a topic in a folder, in the order in which they came."""

import os
import stat
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from controller.adapters.folder import names
from controller.adapters.folder.disk_errors import content_of
from controller.log.files.record_file import header_of
from controller.log.port import INTERVAL, LogRecord, LogTopic, Position
from controller.model.errors import JournalError, TrimtabError

#: Topics whose files have numbers as names: see controller.log.files.numbered.
NUMBERED: Final[tuple[LogTopic, ...]] = ("journal", "commands", "ticks")
#: Those whose files hold one record with its headers each.
WITH_HEADERS: Final[tuple[LogTopic, ...]] = ("journal", "ticks")
#: Bytes of a file: fewer than 1 << 30.  So positions have 63 bits where numbers have 33.
_OFFSET_BITS: Final = 30
_OFFSETS: Final = (1 << _OFFSET_BITS) - 1
#: A file system may give the same time to two quick changes of a folder, so this many looks after a change list it.
_SETTLED_AFTER: Final = 10


def interval_of(headers: Mapping[str, bytes]) -> int:
    """The interval that *headers* name, T in epoch ms; 0 where they name none."""
    text = headers.get(INTERVAL, b"")
    return int(text) if text.isdigit() and len(text) <= names.DIGITS else 0


class ListedFile(NamedTuple):
    """A file of a topic.  Its records lie at the positions ``number << 30 | offset``."""

    number: int
    name: str

    @property
    def begin(self) -> Position:
        """Where its first record can lie."""
        return self.number << _OFFSET_BITS

    @property
    def behind(self) -> Position:
        """Behind its last record."""
        return self.number + 1 << _OFFSET_BITS


class Listing:
    """The files of *topic* in *folder*: the oldest first, then those that come, with growing numbers.

    Files without numbers in their names are numbered by name when the folder is first listed, and later as they appear.
    So a file is read whatever its name is, even one between others, or of a time in the future.
    """

    def __init__(self, folder: Path, topic: LogTopic) -> None:
        self.folder, self.topic = folder / topic, topic
        self._files: list[ListedFile] = []
        self._known = set[str]()
        self._next = 1
        #: Intervals that files are named after, in order.
        self._intervals: list[int] = []
        self._modified, self._unchanged = -1, 0
        self._cached: tuple[ListedFile, bytes | None] | None = None

    def refresh(self) -> None:
        """List the folder again.  An OSError becomes a TrimtabError."""
        try:
            names_there = set(os.listdir(self.folder))
        except (FileNotFoundError, NotADirectoryError):
            names_there = set()
        except OSError as error:
            raise TrimtabError(f"{self.folder}: {error.strerror}") from error
        if deleted := self._known - names_there:
            self._known -= deleted
            self._files = [file for file in self._files if file.name not in deleted]
            self._intervals = sorted(set(filter(None, (names.interval_in(file.name) for file in self._files))))
        new = names_there - self._known
        if new:
            self._known |= new
            self._add(names.files_of_topic(self.topic, self.folder, new))

    def look(self) -> None:
        """Like ``refresh``, but only if the folder has changed.  Cheap."""
        try:
            modified = self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            modified = 0
        except OSError as error:
            raise TrimtabError(f"{self.folder}: {error.strerror}") from error
        self._unchanged = self._unchanged + 1 if modified == self._modified else 0
        self._modified = modified
        if self._unchanged <= _SETTLED_AFTER:
            self.refresh()

    def _add(self, new: list[str]) -> None:
        numbered = self.topic in NUMBERED
        for name in new:
            number = names.number_in(name) if numbered else self._next
            self._files.append(ListedFile(number, name))
            self._next = max(self._next, number + 1)
        if numbered:
            self._files.sort()
        else:
            self._intervals = sorted({*self._intervals, *filter(None, map(names.interval_in, new))})

    @property
    def oldest(self) -> str:
        """The name of the first file; "" where there is none."""
        return self._files[0].name if self._files else ""

    @property
    def begin(self) -> Position:
        """Where the first record can lie."""
        return self._files[0].begin if self._files else self.end

    @property
    def end(self) -> Position:
        """Behind the last record."""
        return self._next << _OFFSET_BITS

    def files(self, begin: Position = 0, end: Position | None = None) -> list[ListedFile]:
        """The files that may have records at *begin* or later, and before *end*."""
        first = bisect_left(self._files, begin >> _OFFSET_BITS, key=lambda file: file.number)
        last = None if end is None else bisect_left(self._files, end, key=lambda file: file.begin)
        return self._files[first:last]

    def place(self, position: Position) -> str:
        """The file and the line at *position*."""
        number, offset = position >> _OFFSET_BITS, position & _OFFSETS
        at = bisect_left(self._files, number, key=lambda file: file.number)
        if at == len(self._files) or self._files[at].number != number:
            return str(self.folder)
        path = self.folder / self._files[at].name
        if self.topic in WITH_HEADERS:
            return str(path)
        content = self._content(self._files[at]) or b""
        line = content.count(b"\n", 0, offset) + 1
        return f"{path}, line {line}"

    def records(self, file: ListedFile, begin: Position = 0) -> Iterator[LogRecord]:
        """The records of *file* from *begin* on.  An iterator: a list of 80 MB of tiny records takes over 1 GB."""
        content = self._content(file, needed=self.topic in ("metrics", "results"))
        if content is None:
            return
        if self.topic in WITH_HEADERS:
            yield from self._with_headers(file, content)
            return
        written_ms, lines = self.written_ms(file), BytesIO(content)
        if (offset := max(0, begin - file.begin)) > 0:  # to the begin of a line
            offset = lines.seek(offset - 1) + len(lines.readline())
        for line in lines:
            if value := line.removesuffix(b"\n"):
                yield LogRecord(0, file.begin + offset, b"", value, written_ms)
            offset += len(line)

    def read_backwards(self, before: Position | None, about: int) -> list[LogRecord]:
        """See Log.  Files of the future are left out: a clock that was wrong has left them there."""
        records = list[LogRecord]()
        for file in reversed(self.files(0, before)):
            if self.topic in NUMBERED or not names.is_ahead(file.name):
                records[:0] = self._last_of(file, file.behind if before is None else before, about - len(records))
            if len(records) >= about:
                break
        return records

    def since(self, time_ms: int) -> Position:
        """Where the records begin that were appended at *time_ms* or later."""
        if self.topic in WITH_HEADERS:
            begin = self.end
            for file in reversed(self._files):
                for record in self.records(file):
                    if record.timestamp_ms < time_ms:
                        return begin
                    begin = record.position
            return begin
        return next((file.begin for file in self._files if self.written_ms(file) >= time_ms), self.end)

    def _last_of(self, file: ListedFile, before: Position, limit: int) -> list[LogRecord]:
        """The last records of *file* before *before*, up to *limit* of them, in order."""
        if self.topic in WITH_HEADERS:
            return [*self.records(file)] if before > file.begin else []
        if self._cached is None or self._cached[0] != file:  # many windows may lie in one large file
            self._cached = (file, self._content(file))
        content = self._cached[1]
        if content is None:
            return []
        records, written_ms = list[LogRecord](), self.written_ms(file)
        end = min(len(content), before - file.begin)
        while end > 0 and len(records) < limit:
            begin = content.rfind(b"\n", 0, end - 1) + 1
            if value := content[begin:end].removesuffix(b"\n"):
                records.append(LogRecord(0, file.begin + begin, b"", value, written_ms))
            end = begin
        return records[::-1]

    def written_ms(self, file: ListedFile) -> int:
        """When *file* was written, at the latest, epoch ms."""
        # A copy was modified later than its records were written, and the demo's log has a clock of its own.
        # A time in the future does not count: the query has refused such a tick, and so does a replay.
        try:
            modified_ns = (self.folder / file.name).stat().st_mtime_ns
        except OSError:  # it was deleted, as old files are
            modified_ns = 0
        modified_ms = min(modified_ns, time.time_ns()) // 1_000_000
        return min(modified_ms, self._end_of(file, modified_ms))

    def _end_of(self, file: ListedFile, otherwise: int) -> int:
        """The last ms before the interval that follows the one that *file* is named after.

        After the newest interval one as long as the one before it is assumed; of a single interval nothing is known.
        """
        interval, known = names.interval_in(file.name), self._intervals
        if self.topic in NUMBERED or interval is None:
            return otherwise
        at = bisect_right(known, interval)
        if at < len(known):
            return known[at] - 1
        return 2 * interval - known[-2] - 1 if len(known) > 1 else otherwise

    def _with_headers(self, file: ListedFile, content: bytes) -> Iterator[LogRecord]:
        headers, value = header_of(content)
        if headers is not None:
            written_ms = interval_of(headers) or min(self.written_ms(file), self._next_interval(file))
            yield LogRecord(0, file.begin, b"", value, written_ms, headers)

    def _next_interval(self, file: ListedFile) -> int:
        """The interval of the first record behind *file* that has one; now where none has: a copy has later times."""
        for other in self.files(file.behind):
            headers, _ = header_of(self._content(other) or b"")
            if interval := interval_of(headers or {}):
                return interval
        return time.time_ns() // 1_000_000

    def _content(self, file: ListedFile, *, needed: bool = False) -> bytes | None:
        """What *file* holds; None where it is no plain file, or was deleted, as old files are, and is not *needed*."""
        path = self.folder / file.name
        try:
            about = path.stat()
            if self.topic not in WITH_HEADERS and not stat.S_ISREG(about.st_mode):
                names.warn_no_file(path)
                return None
            if about.st_size > _OFFSETS:
                raise TrimtabError(f"{path}: too large for a log file: more than {_OFFSETS} bytes")
            return content_of(path)
        except FileNotFoundError as error:
            if needed or self.topic == "journal":
                raise TrimtabError(
                    f"{path}: was deleted since the log was listed, as old files are ([log.folder] retention_hours,"
                    " [journal] retention_days)"
                ) from error
            return None
        except OSError as error:
            failure = JournalError if self.topic in WITH_HEADERS else TrimtabError
            raise failure(f"{path}: cannot be read: {error.strerror}") from error
