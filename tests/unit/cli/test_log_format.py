"""The forms of the log: text, and a JSON object on each line."""

import json
import logging
import sys
from pathlib import Path

import pytest

from controller.cli.shared.log_format import LogFormat, format_in, formatter
from tests.forked import trimtab


def _record(text: str = "starts", /, **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "trimtab", "levelname": "INFO", "levelno": logging.INFO, "msg": text, "created": 0.25, "msecs": 250}
        | fields
    )


def _line(record: logging.LogRecord) -> dict[str, object]:
    text = formatter(LogFormat.JSON).format(record)
    assert "\n" not in text
    found: dict[str, object] = json.loads(text)
    return found


def test_a_line_of_json_has_time_level_logger_and_message() -> None:
    assert _line(_record()) == {
        "time": "1970-01-01T00:00:00.250Z", "level": "INFO", "logger": "trimtab", "message": "starts"
    }  # fmt: skip


def test_what_the_record_is_about_has_fields_of_its_own() -> None:
    fields: dict[str, object] = {
        "interval": "2026-07-01 10:00:00Z",
        "epoch": 0,
        "command": "c-1",
        "bundle": "a/b/0x0_0x1",
    }
    assert _line(_record(**fields)).items() >= fields.items()
    assert "other" not in _line(_record(other="x"))


@pytest.mark.parametrize("text", ['"quoted" \\', "two\nlines", "\x1b[31m\x00", "\ud800", "é"])
def test_every_text_is_one_line_that_can_be_read_and_written(text: str) -> None:
    line = formatter(LogFormat.JSON).format(_record("%s", args=(text,)))
    assert json.loads(line)["message"] == text
    assert line.isprintable()
    assert line.encode()


def test_a_trace_is_left_out_unless_debug_asks_for_it() -> None:
    try:
        raise ValueError("x")
    except ValueError:
        record = _record("it failed\nTraceback (most recent call last):", exc_info=sys.exc_info())
    assert _line(record)["message"] == "it failed"
    assert "trace" not in _line(record)


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["run"], LogFormat.TEXT),
        (["run", "--log-format", "json"], LogFormat.JSON),
        (["run", "--log-format=json", "--conf", "x"], LogFormat.JSON),
        (["run", "--log-format=json", "--log-format", "text"], LogFormat.TEXT),
        (["run", "--log-format"], LogFormat.TEXT),
        (["run", "--log-format", "xml"], LogFormat.TEXT),
    ],
)
def test_the_arguments_say_the_form_before_they_are_checked(words: list[str], form: LogFormat) -> None:
    assert format_in(words) is form


def test_every_line_of_a_service_that_fails_is_json(tmp_path: Path) -> None:
    conf = tmp_path / "none.toml"
    words = ["execute", "--log-format=json", "--conf", str(conf)]
    done = trimtab(*words)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 2
    assert [line["level"] for line in lines] == ["INFO", "CRITICAL"]
    assert str(conf) in lines[-1]["message"]
