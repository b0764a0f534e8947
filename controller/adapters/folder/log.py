"""The log in a folder: no server, for one machine.

    metrics/<T>-<n>.jsonl   results/<T>-<n>.jsonl    records and ticks, a line each
    commands/<T>.jsonl                               the commands of T, see controller.adapters.folder.journal
    dead_letters/<batch>-<part>-<which>.jsonl

Every folder is one partition, read in the order of names, then lines.  A file never changes once it has a
name without a leading dot.
"""

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.folder.disk_errors import lines_in
from controller.adapters.folder.names import (
    DIGITS,
    command_files,
    in_future,
    interval_and_number,
    record_files,
    written_files,
)
from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError
from controller.ports.log import IssuedEvent
from controller.wire.base import encode
from controller.wire.dead_letter import DeadLetter, Source
from controller.wire.metrics import Partitions, RosterEntry, TickRecord

log = logging.getLogger(__name__)

_ONE_EACH: Final = Partitions(metrics=1, results=1)
#: Of those who write results: a file, since NFS locks no folders.
_LOCK: Final = ".lock"
#: So long one process waits for another that writes results: ticks do not depend on an executor that hangs.
_TURN_SECONDS: Final = 0.5
#: Bytes of a file at most: Spark reads a whole one at once, and with a driver of 1 GB one of 128 MiB ends it.
_LARGEST: Final = 32 << 20
_MUCH: Final = 64 << 20


class FolderMetricsLog:
    """MetricsLog on a folder; one process writes to it, beside an executor's results: see write_results."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._cluster, self._folder = cluster, folder
        self._metrics = _LineFiles(folder / "metrics")
        self._results = _LineFiles(folder / "results")

    def publish(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._metrics.append([value for _, value in records])

    def results(self, records: Iterable[tuple[str, bytes]]) -> None:
        """See MetricsLog."""
        self._results.append([value for _, value in records])

    def has_tick(self, interval: int) -> bool:
        """Whether *interval* was ticked, with its roster, when it was the newest one."""
        return self._metrics.begun_with(interval).exists()

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See MetricsLog."""
        tick = TickRecord(cluster=self._cluster, interval=interval, partitions=_ONE_EACH)
        entries = tuple(RosterEntry(broker=broker, sweep_id=roster[broker]) for broker in sorted(roster))
        with _turn(self._folder / "results"):
            self._results.append([encode(tick)], interval)
        self._metrics.append([encode(tick.model_copy(update={"roster": entries}))], interval)


def write_results(folder: Path, values: Sequence[bytes]) -> None:
    """Append *values* to the results of the log in *folder*, behind all that others have written."""
    # A result that comes behind a tick for who reads now must not lie before it for who replays the log.
    with _turn(folder / "results"):
        _LineFiles(folder / "results").append(values)


class _LineFiles:
    """Files of lines, each named after the last interval ticked, with a number."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._go_on()

    def _go_on(self) -> None:
        """Behind the last file that is there, but for those that ``is_ahead``."""
        self._interval, self._number, self._modified_ms = 0, 0, 0
        written = written_files(self._folder)
        if written:
            (self._interval, self._number), path = written[-1]
            modified_ms = path.stat().st_mtime_ns // 1_000_000
            self._modified_ms = 0 if in_future(modified_ms) else modified_ms

    def append(self, lines: Sequence[bytes], interval: int = 0) -> None:
        """Write *lines* to new files, the last by name; *interval* is the one they tick, if any."""
        if not lines:
            return
        if any(b"\n" in line or b"\r" in line for line in lines):
            raise TrimtabError(
                "a log in a folder holds one JSON record a line, so a record has no line breaks and is not Arrow"
            )
        if in_future(self._interval) or in_future(self._modified_ms):  # the clock was set back
            self._go_on()
        if interval > self._interval:
            self._interval, self._number = interval, -1
        for part in _parts(lines):
            self._number += 1
            # Spark's file source reads by time of modification, in ms: let that be the order of names, too.
            self._modified_ms = max(time.time_ns() // 1_000_000, self._modified_ms + 1)
            files.create(self._path(self._interval, self._number), as_lines(part), modified_ms=self._modified_ms)

    def begun_with(self, interval: int) -> Path:
        """The file that the tick of *interval* begins."""
        return self._path(interval, 0)

    def _path(self, interval: int, number: int) -> Path:
        return self._folder / f"{interval:0{DIGITS}d}-{number:06d}.jsonl"


def _parts(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """*lines*, in files of _LARGEST bytes at most; a longer line has one of its own."""
    begin = size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _LARGEST and number > begin:
            yield lines[begin:number]
            begin, size = number, len(line) + 1
    yield lines[begin:]


def tell_large_files(folder: Path) -> None:
    """Tell of files among metrics and results that are so large that reading them may end the query."""
    found = [path for part in ("metrics", "results") for path in record_files(folder / part) if _is_large(path)]
    if found:
        log.warning(
            "%s has more than %d MiB, of which Spark needs several times as much at once (spark.driver.memory)%s: if"
            " the controller ends without a reason, move it out of the log",
            found[0],
            _MUCH >> 20,
            f", and so have {len(found) - 1} more" if len(found) > 1 else "",
        )


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > _MUCH
    except OSError:  # it is gone again, or who reads it says what is wrong
        return False


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """The turn to write to *folder*: one process after the other, but none waits for long for one that hangs."""
    folder.mkdir(parents=True, exist_ok=True)
    lock, soon = folder / _LOCK, Deadline.after(_TURN_SECONDS)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:  # another user's: a local file system locks it all the same
        # A named pipe is locked, too; but who opens one to read waits until somebody opens it to write.
        descriptor = os.open(lock, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while _is_anothers(lock, descriptor) and not soon.passed:
            time.sleep(_TURN_SECONDS / 100)
        yield
    finally:
        os.close(descriptor)


def _is_anothers(lock: Path, descriptor: int) -> bool:
    """Whether another one has the *lock*; else it is taken, or this file system locks nothing."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        _tell_unlocked(lock, error.strerror)
    return False


@cache
def _tell_unlocked(lock: Path, why: str) -> None:
    """Tell once in a process that ticks and results are not kept apart."""
    log.warning(
        "%s cannot be locked: %s: a result that is written while an interval ends may come to lie before its tick, so"
        " that a replay settles it an interval earlier; have the file system lock files (`trimtab doctor` looks)",
        lock,
        why,
    )


def files_of(folder: Path, intervals: int) -> int | None:
    """About so many files of the log at *folder* hold so many *intervals*; None where it holds no more than that.

    By their names, as FolderMetricsLog gives them; others do not count.
    """
    paths = (path for part in ("metrics", "results") for path in (folder / part).glob("*-*.jsonl"))
    named = [found for path in paths if (found := interval_and_number(path))]
    ticked = {interval for interval, _ in named}
    return None if len(ticked) <= intervals else max(1, intervals * len(named) // len(ticked))


class FolderCommandLog:
    """CommandLog on a folder, from its first command on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_to = ""

    def read(self) -> Iterator[IssuedEvent]:
        """See CommandLog.  Where a file is read, all of it counts as read."""
        for path in command_files(self._folder):
            if path.name <= self._read_to:
                continue
            lines = lines_in(path)
            self._read_to = path.name
            for number, line in enumerate(lines):
                yield IssuedEvent(Source(file=str(path), offset=number), line)

    def poll(self) -> list[bytes]:
        """See CommandLog."""
        return [event.value for event in self.read()]


class FolderDeadLetterLog:
    """DeadLetterLog on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "dead_letters"
        self._folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:
        """See DeadLetterLog.  A new checkpoint counts batches anew, so the name also says which records they are."""
        if letters:
            places = sorted(encode(letter.source) for letter in letters)
            which = hashlib.sha256(b"\n".join(places)).hexdigest()[:16]
            files.replace(self._folder / f"{batch:0{DIGITS}d}-{part}-{which}.jsonl", as_lines(map(encode, letters)))


def as_lines(values: Iterable[bytes]) -> bytes:
    """*values* as the content of a file, a line each."""
    return b"".join(value + b"\n" for value in values)
