"""Topics that several processes write to, in a folder: files of lines, in the order of their names.

    metrics/<T>-<n>.jsonl   results/<T>-<n>.jsonl

T is the interval that was ticked last, n a number.  A file never changes once it has a name without a leading dot.
"""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.names import DIGITS, in_future, interval_and_number, record_files, written_files
from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError
from controller.wire.readable import utc

log = logging.getLogger(__name__)

#: A file, because NFS cannot lock folders. It contains the name of the last file written.
_LOCK: Final = ".lock"
#: How long a process waits for another writer, so that ticks do not depend on an executor that hangs.
_TURN_SECONDS: Final = 0.5
#: Bytes of a file at most: Spark reads a whole one at once, and with a driver of 1 GB one of 128 MiB ends it.
_LARGEST: Final = 32 << 20
_MUCH: Final = 64 << 20
_TRIES: Final = 100


class LineFiles:
    """Writes to *folder*, after everything that any process has written there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._interval, self._number, self._modified_ms = 0, -1, 0
        #: Of the file that this object wrote last, and when the folder had changed then.
        self._name, self._changed = b"", 0

    def append(self, lines: Sequence[bytes], interval: int = 0, before: Callable[[], None] = lambda: None) -> None:
        """Write *lines* to new files, the last by name; *interval* is the one that they tick, if any.

        An interval never gets a second tick, whatever this host's clock says.  *before* is called when this
        process has its turn to write.
        """
        refuse_line_breaks(lines)
        with _turn(self._folder) as lock:
            known = lock and self._is_last(lock) and not in_future(self._interval) and not in_future(self._modified_ms)
            for part in _parts(lines) if lines else ():
                for _ in range(_TRIES):
                    before()
                    if not known:
                        self._go_on()
                    if interval and self._path(interval, 0).exists():
                        log.warning(
                            "interval %s already has a tick: this host's clock is behind, or was ahead earlier",
                            utc(interval),
                        )
                        return
                    # Else another process wrote meanwhile, since this one hung, or nothing can be locked here.
                    if known := self._create(part, interval):
                        break
                else:
                    raise TrimtabError(f"{self._folder}: cannot find a free file name in {_TRIES} tries")
                interval = 0  # the first part ticks it
            if lock and lines:
                _set_content(lock, self._name)
                self._changed = self._folder.stat().st_mtime_ns

    def _is_last(self, lock: int) -> bool:
        """Whether no other process has written since. Cheaper than listing ten thousand files."""
        return _content(lock) == self._name and self._folder.stat().st_mtime_ns == self._changed

    def _go_on(self) -> None:
        """After the last existing file, ignoring those of the future."""
        self._interval, self._number, self._modified_ms = 0, -1, 0
        written = written_files(self._folder)
        if written:
            (self._interval, self._number), path = written[-1]
            with suppress(FileNotFoundError):
                modified_ms = path.stat().st_mtime_ns // 1_000_000
                self._modified_ms = 0 if in_future(modified_ms) else modified_ms

    def _create(self, lines: Sequence[bytes], interval: int) -> bool:
        """Create the next file, of *lines*; False where there is one of that name."""
        if interval > self._interval:
            self._interval, self._number = interval, -1
        # Spark's file source reads by modification time in ms, so names must have the same order.
        modified_ms = max(time.time_ns() // 1_000_000, self._modified_ms + 1)
        path = self._path(self._interval, self._number + 1)
        try:
            files.create(path, as_lines(lines), modified_ms=modified_ms)
        except FileExistsError:
            return False
        self._number, self._modified_ms, self._name = self._number + 1, modified_ms, path.name.encode()
        return True

    def _path(self, interval: int, number: int) -> Path:
        return self._folder / f"{interval:0{DIGITS}d}-{number:06d}.jsonl"


def refuse_line_breaks(lines: Sequence[bytes]) -> None:
    """TrimtabError where one of *lines* would be several."""
    if any(b"\n" in line or b"\r" in line for line in lines):
        raise TrimtabError(
            "a log in a folder holds one JSON record a line, so a record has no line breaks and is not Arrow"
        )


def as_lines(values: Iterable[bytes]) -> bytes:
    """*values* as the content of a file, a line each."""
    return b"".join(value + b"\n" for value in values)


def _parts(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """*lines*, in files of _LARGEST bytes at most; a longer line has one of its own."""
    begin = size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _LARGEST and number > begin:
            yield lines[begin:number]
            begin, size = number, len(line) + 1
    yield lines[begin:]


def _content(lock: int) -> bytes:
    try:
        return os.pread(lock, 100, 0)
    except OSError:  # a named pipe in its place
        return b""


def _set_content(lock: int, content: bytes) -> None:
    with suppress(OSError):  # another user's, or the disk is full: then it holds the name of no file
        os.ftruncate(lock, 0)
        os.pwrite(lock, content, 0)


@contextmanager
def _turn(folder: Path) -> Iterator[int]:
    """The right to write to *folder*: one process at a time, but none waits long for one that hangs.

    The lock's descriptor; 0 where it was not locked.
    """
    lock, soon = folder / _LOCK, Deadline.after(_TURN_SECONDS)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:  # another user's: a local file system locks it all the same
        # A named pipe is locked, too; but who opens one to read waits until somebody opens it to write.
        descriptor = os.open(lock, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while (locked := _try_to_lock(lock, descriptor)) is False and not soon.passed:
            time.sleep(_TURN_SECONDS / 100)
        yield descriptor if locked else 0
    finally:
        os.close(descriptor)


def _try_to_lock(lock: Path, descriptor: int) -> bool | None:
    """Whether this process, and no other, has *lock* now; None if the file system does not support locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        _warn_unlocked(lock, error.strerror)
        return None
    return True


@cache
def _warn_unlocked(lock: Path, why: str) -> None:
    """Warn once in a process that ticks and results are not kept apart."""
    log.warning(
        "%s cannot be locked: %s: a result that is written while an interval ends may be stored before "
        "the interval's tick, and a replay would then settle it one interval earlier; use a file system "
        "that supports locks (`trimtab doctor` checks this)",
        lock,
        why,
    )


def warn_of_large_files(folder: Path) -> None:
    """Warn of files among metrics and results that are so large that reading them may end the query."""
    large = [path for part in ("metrics", "results") for path in record_files(folder / part) if _is_large(path)]
    if large:
        log.warning(
            "%s is larger than %d MiB, and Spark needs several times its size in memory "
            "(spark.driver.memory)%s: if the controller ends without a reason, move the file out of the log",
            large[0],
            _MUCH >> 20,
            f", and so are {len(large) - 1} more files" if len(large) > 1 else "",
        )


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > _MUCH
    except OSError:  # it is gone again, or who reads it says what is wrong
        return False


def files_of(folder: Path, intervals: int) -> int | None:
    """About so many files of the log at *folder* hold so many *intervals*; None where it holds no more than that.

    By their names, as LineFiles gives them; others do not count.
    """
    paths = (path for part in ("metrics", "results") for path in (folder / part).glob("*-*.jsonl"))
    named = [name for path in paths if (name := interval_and_number(path))]
    ticked = {interval for interval, _ in named}
    return None if len(ticked) <= intervals else max(1, intervals * len(named) // len(ticked))
