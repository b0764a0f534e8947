"""The processes that one process has started, and those that they have started.

Read from /proc, so Linux alone.  No library: signal handlers call this before the rest of trimtab is loaded.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from controller.adapters.network.deadline import Deadline

#: After this long, :func:`kill_descendants` waits no more for the kernel.
_KILL_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
#: States of a process that has ended and whose exit code nobody has read.
_ENDED: Final = "ZX"
#: Processes that are stopped, and about to be killed.
_STOPPED: Final[set[int]] = set()


class _Process(NamedTuple):
    pid: int
    parent: int
    state: str


def descendants(pid: int) -> list[int]:
    """Every process that *pid* has started, and those that they have; parents come first."""
    children: dict[int, list[int]] = {}
    for process in _processes():
        if process.state not in _ENDED:
            children.setdefault(process.parent, []).append(process.pid)
    processes = [pid]
    for each in processes:
        processes += children.get(each, [])
    return processes[1:]


class Usage(NamedTuple):
    """What a process and its descendants have used, and hold."""

    #: Of those that run, and of their children that have ended.
    cpu_seconds: float
    #: Pages that several of them share count several times.
    resident_bytes: int


def usage(pid: int) -> Usage:
    """What *pid*, and all that it has started, have used up to now.  A process that ends meanwhile is left out."""
    ticks = pages = 0
    for each in (pid, *descendants(pid)):
        with suppress(OSError):
            # Fields as proc(5) counts them, from the third on: 14 to 17 are times, 24 is the resident set.
            fields = _after_name(Path(f"/proc/{each}/stat"))
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


def kill_descendants(pid: int, seconds: float = _KILL_SECONDS) -> None:
    """SIGKILL every process that *pid* has started, and those that they have; returns when they have ended.

    All of them are stopped first: none sees another one end, and none prints an error about it.  And none starts one
    more that has no parent then, and is not found.  Whoever was stopped is killed, also where that took all of the
    *seconds* on a busy machine: a process that stays stopped holds its memory for ever.
    """
    deadline = Deadline.after(seconds)
    while new := set(descendants(pid)) - _STOPPED:
        _STOPPED.update(new)
        _send([*new], signal.SIGSTOP)
        if deadline.passed:
            break
    _kill_stopped()
    while pids := descendants(pid):
        _send(pids, signal.SIGKILL)
        if deadline.passed:
            break
        time.sleep(_POLL_SECONDS)


def _kill_stopped() -> None:
    """SIGKILL what ``kill_descendants`` has stopped and not killed yet, in whichever thread it is called."""
    while _STOPPED:
        with suppress(KeyError):  # another thread was faster
            _send([_STOPPED.pop()], signal.SIGKILL)


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _processes() -> Iterator[_Process]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = _after_name(stat)[:2]
        except (OSError, ValueError):
            continue  # ended meanwhile
        yield _Process(int(stat.parent.name), int(parent), state)


def _after_name(stat: Path) -> list[str]:
    """The fields behind the name: "pid (name) state parent ...", and the name may hold anything."""
    return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
