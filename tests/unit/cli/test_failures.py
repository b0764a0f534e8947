"""However a command fails, it says so on one line; --debug adds the trace."""

import logging
import sys
import threading
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import CliRunner

from controller.cli.app import app
from controller.cli.shared import failures
from controller.cli.shared.console import console
from controller.model.errors import LeadershipLostError, SettingsError, TrimtabError
from tests.forked import trimtab


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SettingsError("conf: no such key"), "conf: no such key"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "/x: No such file or directory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "not enough memory: give this process more, or ask for less"),
        (
            KeyError("a\nb"),
            "unexpected error, please report it: KeyError: 'a\\nb'; --debug shows where it happened",
        ),
        (
            ValueError("two\nlines"),
            "unexpected error, please report it: ValueError: two lines; --debug shows where it happened",
        ),
    ],
)
def test_every_error_is_one_line(error: Exception, told: str) -> None:
    assert failures.in_words(error) == told


@pytest.mark.parametrize(
    "text",
    [
        "a query ended: it\nfailed\n\tat org.apache.spark.Some(Some.scala:1)\n\tat b",
        "a query ended: it failed\n=== Streaming Query ===\nIdentifier: decisions",
        "a query ended: it failed\nTraceback (most recent call last):\n  File x",
    ],
)
def test_the_trace_in_a_text_is_cut_off(text: str) -> None:
    assert failures.without_trace(text) == failures.in_words(TrimtabError(text)) == "a query ended: it failed"


def test_lines_without_a_trace_stay_as_they_are() -> None:
    assert failures.without_trace("conf: one\nconf: two") == "conf: one\nconf: two"


#: What a server answered, in an error: it clears the screen, and claims to be another line of the log.
_STEERING = "it answers \x1b[2J\x9b31m\r\n2026-01-01T00:00:00.000Z INFO all is well\x07\u2028x"


def test_what_a_server_answers_steers_no_terminal_and_is_no_line_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures.say(_STEERING)
    console().print(Text(_STEERING))
    shown = capsys.readouterr()
    record = logging.LogRecord("a", logging.ERROR, "a.py", 1, "%s", (_STEERING,), None)
    logged = failures.LineFormatter("%(message)s").format(record)
    for text in (shown.err, shown.out, logged):
        assert "all is well" in text
        assert text.replace("\n", "").isprintable()
    assert [line[:2] for line in logged.split("\n")] == ["it", "  "]


def test_no_name_turns_the_direction_in_which_a_line_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    # A terminal that obeys shows the brokers exchanged.
    turned = "move \u202e2-rekorb ot 1-rekorb morf\u2066 \u200f"
    failures.say(turned)
    console().print(Text(turned))
    shown = capsys.readouterr()
    assert (shown.err + shown.out).replace("\n", "").isprintable()
    assert "2-rekorb ot 1-rekorb morf" in shown.out


def test_a_log_record_has_no_trace() -> None:
    try:
        raise ValueError("odd")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "a.py", 1, "it failed", None, sys.exc_info())
    assert failures.LineFormatter("%(message)s").format(record) == "it failed"


def test_errors_have_their_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.exit_code_of(LeadershipLostError("gone")) == 75
    assert failures.exit_code_of(SettingsError("wrong")) == 2
    assert failures.exit_code_of(ValueError("odd")) == 1
    assert capsys.readouterr().err.count("\n") == 3


def test_debug_adds_the_trace(tmp_path: Path) -> None:
    run = trimtab("status", "--debug", "--conf", str(tmp_path / "none.toml"))
    assert run.returncode == 2
    assert run.stderr.startswith("Traceback (most recent call last)")
    what_to_do = "--conf names the settings file, `trimtab init` writes one"
    told = f"trimtab: {tmp_path / 'none.toml'}: No such file or directory; {what_to_do}"
    assert run.stderr.splitlines()[-1] == told


def test_what_the_system_refuses_is_one_line_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "recording").mkdir()
    sample = Path(__file__).parents[2] / "samples" / "load_report_1.json"
    (tmp_path / "recording" / "report.json").write_bytes(sample.read_bytes())
    run = trimtab("ticks", str(tmp_path / "recording"), "--into", "/proc/x")
    assert run.returncode == 1
    why = "No such file or directory; choose another folder with --into"
    assert run.stderr.splitlines() == [f"trimtab: the new log cannot be written to /proc/x: {why}"]


@pytest.mark.parametrize("words", ["options", "options --json"])
def test_a_reader_that_goes_away_is_no_error_to_tell(words: str) -> None:
    run = trimtab(*words.split(), read=False)
    assert (run.returncode, run.stderr) == (failures.READER_GONE, "")


def test_a_server_that_hangs_up_is_an_error_to_tell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="utf-8") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert failures.exit_code_of(BrokenPipeError(32, "Broken pipe")) == 1
    assert capsys.readouterr().err == "trimtab: Broken pipe\n"


def test_on_a_terminal_what_is_said_breaks_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    failures.say("Kafka cannot be reached\nnor ZooKeeper-on-a-long-name")
    assert capsys.readouterr().err == "trimtab: Kafka\ncannot be reached\nnor\nZooKeeper-on-a-long-name\n"


def test_what_a_library_logs_in_a_command_without_a_log_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging, "lastResort", last)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    failures.no_traces_from_threads()
    try:
        raise ValueError("odd")
    except ValueError:
        last.handle(logging.LogRecord("a", logging.ERROR, "a.py", 1, "it failed", None, sys.exc_info()))
    assert capsys.readouterr().err == "trimtab: it failed\n"


def test_a_character_that_the_terminal_lacks_is_replaced() -> None:
    run = trimtab("options", encoding="ascii")
    assert (run.returncode, run.stderr) == (0, "")
    assert "----" in run.stdout or "?" in run.stdout


def test_help_shows_brackets_as_they_are() -> None:
    assert "[pulsar]" in CliRunner().invoke(app, ["lookup", "--help"]).output


def test_a_demo_that_cannot_write_says_so_before_it_starts_anything(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "file")]).exception
    assert isinstance(error, TrimtabError)
    assert str(error) == f"{tmp_path / 'file'} is not a folder; choose another folder with --folder"
