"""Programs that are not ours and end with the process that started them."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from controller.adapters.process.tied_child import foreign, tied_child

#: Starts the program of its arguments behind the first, prints its pid, and waits; so many files are open before.
_PARENT = """
import os, sys, time
from controller.adapters.process.tied_child import foreign, tied_child
files = [os.dup(2) for _ in range(int(sys.argv[1]))]
words = foreign(sys.argv[2:])
with tied_child(words, stdout=sys.stderr.buffer, stderr=sys.stderr.buffer, environment=os.environ) as child:
    print(child.pid, flush=True)
    time.sleep(600)
"""
_SECONDS = 20.0


def _runs(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _wait(pid: int, name: bytes) -> None:
    """Until *pid* has become the program *name*."""
    ends = time.monotonic() + _SECONDS
    while name not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize("files", [0, 1_100])
def test_a_program_ends_when_the_process_that_started_it_is_killed_however_many_files_that_has_open(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = (max(soft, min(hard, 2_000)), hard)
    words = [sys.executable, "-c", _PARENT, str(files), "sleep", "600"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        _wait(pid, b"sleep")
        parent.send_signal(signal.SIGKILL)
        ends = time.monotonic() + _SECONDS
        while _runs(pid):
            assert time.monotonic() < ends
            time.sleep(0.01)


def test_a_program_that_ends_first_has_its_own_exit_code_and_leaves_no_process() -> None:
    with (
        open(os.devnull, "wb") as nowhere,
        tied_child(
            foreign(["sh", "-c", "exit 7"]),
            stdout=nowhere,
            stderr=nowhere,
            environment=os.environ,
            new_session=True,
        ) as child,
    ):
        assert child.wait(_SECONDS) == 7
        ends = time.monotonic() + _SECONDS
        while _in_group(child.pid):
            assert time.monotonic() < ends
            time.sleep(0.01)


def _in_group(group: int) -> list[int]:
    """Processes of the process group *group* that run."""
    pids = [int(each.name) for each in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if _runs(pid) and _group(pid) == group]


def _group(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0
