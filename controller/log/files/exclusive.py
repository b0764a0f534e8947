"""A topic with one writer at a time, in a folder: files with numbers as names.

    journal/<n>.jsonl   ticks/<n>.jsonl    a record with its headers each
    commands/<n>.jsonl                     a record a line, all that follows from one decision

Each file is created under the next number, and the first process to do so wins.  A new writer creates a mark under that
number.  So the writer before it, even one that hangs and comes back, finds its next name in use.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder import names
from controller.adapters.folder.line_files import as_lines, refuse_line_breaks
from controller.adapters.process.own_process import own_process
from controller.log.files.listing import WITH_HEADERS, ListedFile, Listing
from controller.log.files.record_file import mark_file, record_file
from controller.log.port import LogRecord, LogTopic, Out, Position
from controller.model.errors import DamagedJournalError, JournalError, LeadershipLostError

_TRIES: Final = 100


class ExclusiveFiles:
    """Exclusive on *topic* of the log in *folder*."""

    def __init__(self, folder: Path, topic: LogTopic) -> None:
        """Take it over."""
        self._log, self._topic, self._folder = folder, topic, folder / topic
        #: The number of the file that this process created last: of its mark, at first.
        self._last = create_next(folder, topic, mark_file(own_process()) if topic in WITH_HEADERS else b"")
        self._mark = self._last

    def append(self, outs: Sequence[Out]) -> None:
        """See Exclusive."""
        for content in contents(self._topic, outs):
            path = self._path(self._last + 1)
            try:
                files.create(path, content)
                fenced = not self._path(self._last).exists()  # so much was pruned since that the name is free again
                if fenced:
                    path.unlink()
            except FileExistsError:
                fenced = True
            except OSError as error:
                raise JournalError(f"{path}: {error.strerror}") from error
            if fenced:
                raise LeadershipLostError(f"{path}: another process writes {self._folder} now")
            self._last += 1

    def check(self) -> None:
        """LeadershipLostError where another process has taken the topic over."""
        if self._path(self._last + 1).exists() or not self._path(self._last).exists():
            raise LeadershipLostError(f"{self._folder}: another process writes it now")

    def before(self, about: int | None) -> Iterator[LogRecord]:
        """See Exclusive."""
        listing = Listing(self._log, self._topic)
        listing.refresh()
        there = [file for file in listing.files() if file.number <= self._mark]
        for one, other in pairwise(there):
            # Of commands and ticks old files are deleted by their times.
            if self._topic == "journal" and one.number + 1 != other.number:
                raise DamagedJournalError(
                    f"{self._folder}: files between {one.name} and {other.name} are missing: restore "
                    f"them, or move all files from {other.name} on out of the journal"
                )
        if about is not None:
            newest = listing.read_backwards(ListedFile(self._mark, "").begin, about)
            there = [file for file in there if newest and file.behind > newest[0].position]
        for file in there:
            yield from listing.records(file)

    def prune_before(self, first: Position) -> None:
        """See Exclusive."""
        self.check()
        listing = Listing(self._log, self._topic)
        listing.refresh()
        try:
            # The oldest first: if this is interrupted, the remaining files have no gap.
            for file in listing.files(0, first):
                if file.behind <= first and file.number < self._last:
                    (self._folder / file.name).unlink(missing_ok=True)
        except OSError as error:
            raise JournalError(f"{error.filename}: {error.strerror}") from error

    def close(self) -> None:
        """See Exclusive."""

    def _path(self, number: int) -> Path:
        return self._folder / names.numbered(number)


def create_next(folder: Path, topic: LogTopic, content: bytes) -> int:
    """Create the next file of *topic*, also while others do; returns its number."""
    place = folder / topic
    try:
        place.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES):
            # Numbers keep growing if all files were deleted: executors have stored positions.
            number = (names.newest_number(place) or int(time.time())) + 1
            try:
                files.create(place / names.numbered(number), content)
            except FileExistsError:
                continue
            return number
    except OSError as error:
        raise JournalError(f"{error.filename or place}: {error.strerror}") from error
    raise JournalError(f"{place}: cannot find a free file name in {_TRIES} tries")


def contents(topic: LogTopic, outs: Sequence[Out]) -> list[bytes]:
    """The contents of the files that hold *outs*."""
    if topic in WITH_HEADERS:
        return [record_file(out.headers, out.value) for out in outs]
    refuse_line_breaks([out.value for out in outs])
    return [as_lines(out.value for out in outs)]
