"""Progress of long work: what a line says, and where it goes."""

import io
import logging
import os
import subprocess
import sys
import time

import pytest

from controller.adapters import long_work


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line comes at once."""
    monkeypatch.setattr(long_work, "_EVERY_SECONDS", 0.001)


@pytest.mark.parametrize(
    ("total", "done", "seconds", "usual", "line"),
    [
        (61e6, 0.0, 5.0, 0.0, "fetching: 0 MB of 61 MB, 5 s so far"),
        (60e6, 15e6, 10.0, 0.0, "fetching: 15 MB of 60 MB, about 30 s left"),
        (60e6, 2e6, 10.0, 0.0, "fetching: 2 MB of 60 MB, about 5 min left"),
        (60e6, 1e6, 10.0, 0.0, "fetching: 1 MB of 60 MB, 10 s so far"),
        (60e6, 1e7, 3600.0, 0.0, "fetching: 10 MB of 60 MB, about 5.0 h left"),
        (0.0, 0.0, 7.0, 0.0, "fetching: 7 s so far"),
        (0.0, 0.0, 7.0, 20.0, "fetching: 7 s so far, usually 20 s"),
        (0.0, 2e6, 7.0, 0.0, "fetching: 2 MB in 7 s"),
    ],
)
def test_a_line_says_how_far_it_is_and_how_long_the_rest_takes(
    total: float, done: float, seconds: float, usual: float, line: str
) -> None:
    assert long_work.work_line("fetching", total, done, long_work.megabytes, seconds, usual) == line


def _lines(monkeypatch: pytest.MonkeyPatch) -> str:
    """What is written to standard error where no log has a handler."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    deadline = time.monotonic() + 10
    with long_work.long_work("measuring", 4) as done:
        done(3)
        while "3 of 4" not in stderr.getvalue() and time.monotonic() < deadline:
            time.sleep(0.001)
    return stderr.getvalue()


def test_the_first_line_comes_sooner_than_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "_FIRST_SECONDS", 0.1)
    monkeypatch.setattr(long_work, "_EVERY_SECONDS", 60.0)
    assert "measuring: 3 of 4" in _lines(monkeypatch)


def test_where_nothing_is_logged_lines_go_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "trimtab: measuring: 3 of 4, about" in _lines(monkeypatch)


def test_a_live_view_takes_the_lines() -> None:
    told: list[str] = []
    with long_work.shown_by(told.append), long_work.long_work("measuring", 4):
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.001)
    assert told[0].startswith("measuring: 0 of 4, ")


def test_how_much_is_done_may_be_looked_up_and_an_error_of_that_does_no_harm() -> None:
    told: list[str] = []
    answers = iter([1.0, 2.0])
    with long_work.shown_by(told.append), long_work.long_work("closing", 4, look=lambda: next(answers)):
        deadline = time.monotonic() + 10
        while len(told) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.01)
    assert [line.partition(",")[0] for line in told] == ["closing: 1 of 4", "closing: 2 of 4"]


def test_of_work_within_work_the_innermost_is_shown() -> None:
    told: list[str] = []
    with long_work.shown_by(told.append), long_work.long_work("measuring", 4), long_work.long_work("starting Spark"):
        before = len(told)  # a slow machine has shown the outer one by now
        deadline = time.monotonic() + 10
        while len(told) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        shown = told[before + 1 :]
    assert shown
    assert all(line.startswith("starting Spark: ") for line in shown)


def test_a_bar_is_shown_on_a_terminal_and_results_in_a_pipe_stay_there() -> None:
    program = (
        "from controller.adapters.long_work import long_work\n"
        "with long_work('measuring', 4) as done:\n"
        "    done(3)\n"
        "    print('result')"
    )
    master, slave = os.openpty()
    run = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=slave,
        check=True,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(slave)
    shown = os.read(master, 10_000)
    os.close(master)
    assert run.stdout == b"result\n"
    assert b"measuring: " in shown
    assert b"result" not in shown


def test_quiet_shows_nothing() -> None:
    told: list[str] = []
    long_work.set_quiet(True)
    with long_work.shown_by(told.append), long_work.long_work("measuring", 4) as done:
        done(2)
        time.sleep(0.02)
    assert told == []
