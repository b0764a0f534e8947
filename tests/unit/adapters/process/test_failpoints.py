"""Failpoints: without the environment variable they do nothing, with it they kill the process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from controller.adapters.network.waiting import wait_for
from controller.adapters.process.failpoints import HANG_VARIABLE, VARIABLE, parse, torn_commits
from controller.model.errors import SettingsError


def run(script: str, failpoint: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if failpoint is not None:
        environment[VARIABLE] = failpoint
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_unknown_failpoint_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"after-lunch.*after-decide"):
        parse("after-lunch:2")


@pytest.mark.parametrize("count", ["", "0", "-1", "two", "1:2", " 1"])
def test_a_count_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(SettingsError, match="count"):
        parse(f"after-decide:{count}")


PASS_THREE_TIMES = """
from controller.adapters.process.failpoints import failpoint
for time in range(3):
    failpoint("after-decide")
    failpoint("after-commit")
    print(time, flush=True)
"""


def test_the_second_time_kills_where_the_second_is_asked_for() -> None:
    done = run(PASS_THREE_TIMES, "after-decide:2")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "0\n")


def test_a_process_hangs_where_that_is_asked_for() -> None:
    environment = os.environ | {HANG_VARIABLE: "after-commit:2"}
    with subprocess.Popen(
        [sys.executable, "-c", PASS_THREE_TIMES], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()


def test_an_unknown_name_ends_the_process_instead_of_testing_nothing() -> None:
    done = run(PASS_THREE_TIMES, "after-lunch")
    assert done.returncode == 1
    assert "SettingsError" in done.stderr


FAMILY = """
import subprocess
from controller.adapters.process.failpoints import failpoint
child = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline(), flush=True)
failpoint("before-spark-commit")
"""


def test_children_and_their_children_die_too() -> None:
    done = run(FAMILY, "before-spark-commit")
    assert done.returncode == -signal.SIGKILL
    family = [int(pid) for pid in done.stdout.split()]
    assert len(family) == 2
    wait_for(lambda: not any(map(alive, family)), 10, every=0.01)


def write_state(operator: Path, partition: int, name: str) -> None:
    folder = operator / str(partition)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()


class Watcher:
    """Collects what ``torn_commits`` of a folder yields from now on, until version 9, by which a test ends it."""

    def __init__(self, operator: Path) -> None:
        self._seen: list[int] = []
        self._torn = torn_commits(operator)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for version in self._torn:
            self._seen.append(version)
            if version == 9:
                return

    def sees(self, count: int) -> list[int]:
        """The versions seen, once there are *count*."""
        wait_for(lambda: len(self._seen) >= count, 10, every=0.005)
        return self._seen


@pytest.mark.parametrize("name", ["{}.changelog", "{}.zip", "{}_1f3a-22.changelog"])
def test_state_that_only_some_shards_have_written_is_noticed_once(tmp_path: Path, name: str) -> None:
    for partition in (0, 1):
        write_state(tmp_path, partition, name.format(1))
    watcher = Watcher(tmp_path)
    write_state(tmp_path, 0, name.format(2))
    assert watcher.sees(1) == [2]
    write_state(tmp_path, 1, name.format(2))
    write_state(tmp_path, 1, name.format(9))
    assert watcher.sees(2) == [2, 9]
