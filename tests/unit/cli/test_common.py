"""The log format, quiet and colours."""

import logging
import re
from collections.abc import Iterator

import pytest
from urllib3 import HTTPConnectionPool

from controller.adapters import long_work
from controller.cli.shared.console import console, start_logging


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which gets its level back."""
    root = logging.getLogger()
    level = root.level
    yield root
    root.setLevel(level)


def test_a_line_of_the_log_begins_with_the_time_in_utc_and_the_level(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "handlers", [])  # as a new process has it
    start_logging()
    record = {
        "name": "trimtab",
        "levelname": "INFO",
        "levelno": logging.INFO,
        "msg": "starts",
        "created": 0.25,
        "msecs": 250,
    }
    root.handle(logging.makeLogRecord(record))
    assert capsys.readouterr().err == "1970-01-01T00:00:00.250Z INFO trimtab: starts\n"


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_log_has_warnings_and_a_chatty_library_has_no_more_than_those(
    quiet: bool, root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "handlers", [])
    long_work.set_quiet(quiet)
    start_logging("kazoo")
    assert root.isEnabledFor(logging.WARNING)
    assert root.isEnabledFor(logging.INFO) != quiet
    assert not logging.getLogger("kazoo").isEnabledFor(logging.INFO)


def test_connections_that_are_closed_since_enough_are_kept_open_are_not_told_of(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(root, "handlers", [])
    start_logging()
    logging.getLogger(HTTPConnectionPool.__module__).warning("Connection pool is full, discarding connection")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_switches_colours_off(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    console().print("hot", style="red")
    assert bool(re.search(r"\x1b\[3\dm", capsys.readouterr().out)) == coloured
