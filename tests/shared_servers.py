"""Servers that a test run starts once, for all workers or for each.  The first worker that needs one starts it.

Every process of a run has the run's name in its environment.  By that name the run finds, at its end, the servers and
whatever a failed or interrupted test has left running.
"""

import fcntl
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar
from uuid import uuid4

import psutil

#: The environment variable that names the run.
RUN: Final = "TRIMTAB_TEST_RUN"
_FOLDER: Final = "shared"
_END_SECONDS: Final = 10.0


class Startable(Protocol):
    """A server, or several in one."""

    def start(self) -> None:
        """Return when it serves."""


S = TypeVar("S", bound=Startable)


def begin_run() -> None:
    """Give this process, and all that it starts from now on, the name of a new run."""
    os.environ[RUN] = uuid4().hex


def shared(run_folder: Path, name: str, make: Callable[[Path], S]) -> S:
    """The server *name* of this run, started by *make* in a folder of its own unless another worker has started it."""
    folder = run_folder / _FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    described = folder / "server.pickle"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not described.exists():
            server = make(folder / "state")
            # Before its start it is folder and ports alone.
            content = pickle.dumps(server)
            server.start()
            described.write_bytes(content)
    found: S = pickle.loads(described.read_bytes())
    return found


def end_run(run_folder: Path) -> list[str]:
    """Kill every process of this run but this one; returns the command lines of those that no shared server is."""
    left = list(_processes(os.environ[RUN]))
    told = [line for process in left if (line := _command(process)) and str(run_folder / _FOLDER) not in line]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=_END_SECONDS)
    return told


def _processes(run: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(RUN) == run:
                yield process


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
