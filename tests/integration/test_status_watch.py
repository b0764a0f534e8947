"""`trimtab status --watch`, as processes that signals end."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.modelled_log import settings_in
from tests.unit.status.test_status_health import journal

pytestmark = pytest.mark.integration


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return settings_in(tmp_path, more='decisions.mode = "active"')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_appends_a_line_each_time_and_ends_in_order(conf: Path, number: int) -> None:
    words = [sys.executable, "-m", "controller.cli", "status", "--watch", "--every", "1", "--conf", str(conf)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(2)]
        watching.send_signal(number)
        assert watching.wait(10) == 0
    assert all("  needs attention: no controller leads" in line for line in lines)
    assert lines[0] < lines[1]


def test_watch_goes_on_while_the_log_cannot_be_read(conf: Path) -> None:
    journal(conf.parent)
    place = conf.parent / "log" / "journal"
    words = [sys.executable, "-m", "controller.cli", "status", "--watch", "--every", "1", "--conf", str(conf)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "decided 2025" in watching.stdout.readline()
        newest = max(place.glob("*.jsonl"))
        whole = newest.read_bytes()
        newest.write_bytes(b"{")
        _line_with("cannot be read: ", watching)
        newest.write_bytes(whole)
        _line_with("decided 2025", watching)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0


def _line_with(text: str, process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    for _ in range(20):
        if text in process.stdout.readline():
            return
    raise AssertionError(text)


def test_watch_in_json_is_a_line_each_time(conf: Path) -> None:
    words = [sys.executable, "-m", "controller.cli", "status", "--watch", "--every", "1", "--json", "--conf", str(conf)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        line = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0
    assert "no-leader" in [each["code"] for each in line["problems"]]


def test_a_terminal_shows_the_status_in_place(conf: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "controller.cli", "status", "--watch", "--every", "1", "--conf", str(conf)]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "50"}
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as watching:
        os.close(theirs)
        shown = b""
        while shown.count(b"Ctrl-C ends") < 2:
            shown += os.read(ours, 4096)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0
    os.close(ours)
    assert b"\x1b[1A" in shown  # back to the first line
    assert b"health     needs attention: no controller leads" in shown
