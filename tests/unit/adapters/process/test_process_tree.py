"""What a process tree has used is read from /proc, and all of it is killed."""

import os
import subprocess
import sys

import pytest

from controller.adapters.process.process_tree import descendants, kill_descendants, usage

_SPENT_SECONDS = 0.1
_SPENDS = f"import time\nwhile time.process_time() < {_SPENT_SECONDS}: pass\nprint(flush=True)\ninput()"


@pytest.mark.slow
def test_usage_counts_the_process_and_its_descendants() -> None:
    before = usage(os.getpid())
    with subprocess.Popen([sys.executable, "-c", _SPENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in descendants(os.getpid())
        after, alone = usage(os.getpid()), usage(child.pid)
        child.communicate(b"\n")
    # The kernel counts in hundredths of a second.
    assert alone.cpu_seconds >= _SPENT_SECONDS - 0.02
    assert after.cpu_seconds - before.cpu_seconds >= alone.cpu_seconds - 0.02
    assert after.resident_bytes >= alone.resident_bytes > 1_000_000


@pytest.mark.slow
def test_usage_keeps_the_time_of_a_child_that_has_ended() -> None:
    before = usage(os.getpid())
    subprocess.run([sys.executable, "-c", _SPENDS], input=b"\n", stdout=subprocess.DEVNULL, check=True)
    assert usage(os.getpid()).cpu_seconds - before.cpu_seconds >= _SPENT_SECONDS - 0.02


def test_usage_of_a_process_that_has_ended_is_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert usage(child.pid) == (0.0, 0)


_STARTS_ANOTHER = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "print(flush=True); input()"])
"""


def test_what_was_stopped_is_killed_though_that_took_all_of_the_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _STARTS_ANOTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        [below] = descendants(child.pid)
        kill_descendants(child.pid, seconds=0)
        # Where it was stopped alone, this would never end.
        assert child.wait(30) == 0
        assert below not in descendants(os.getpid())
