"""Servers shared by the workers of a run: one is started, all get it, and nothing outlives the run."""

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.shared_servers import RUN, end_run, shared


class Counted:
    """A server that leaves a line for each start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> None:
        self.folder.mkdir()
        with (self.folder / "starts").open("a") as starts:
            starts.write("started\n")


class Broken(Counted):
    def start(self) -> None:
        raise OSError("no room")


def test_a_server_is_started_once_and_everybody_finds_it(tmp_path: Path) -> None:
    first, second = (shared(tmp_path, "counted", Counted) for _ in range(2))
    assert first.folder == second.folder
    assert (first.folder / "starts").read_text() == "started\n"


def test_a_server_that_did_not_start_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no room"):
        shared(tmp_path, "counted", Broken)
    assert (shared(tmp_path, "counted", Counted).folder / "starts").read_text() == "started\n"


def test_the_end_of_a_run_kills_its_processes_and_tells_those_that_are_no_shared_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN, "a-run-of-this-test")
    server = tmp_path / "shared" / "server"
    server.parent.mkdir()
    server.touch()
    # The names of what they follow tell whose they are.
    left, of_shared_server = ["tail", "-f", "/dev/null"], ["tail", "-f", str(server)]
    with (
        subprocess.Popen(left) as first,
        subprocess.Popen(of_shared_server) as second,
        subprocess.Popen(left, env={**os.environ, RUN: "another"}) as other,
    ):
        told = end_run(tmp_path)
        ended = [not psutil.pid_exists(process.pid) for process in (first, second, other)]
        other.kill()
    assert ended == [True, True, False]
    assert told == [" ".join(left)]
