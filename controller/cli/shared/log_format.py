"""The two forms of the log of `trimtab run`, `collect` and `execute`: lines of text, or a JSON object on each line."""

import json
import logging
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import typer

from controller.cli.shared.failures import LineFormatter, traces_are_shown, without_trace
from controller.settings.redaction import redacted_log

_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_TEXT_LINE: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
_OPTION: Final = "--log-format"
#: What a record of the log may have beside its text, by ``extra=``: the interval's start in UTC, the leader's epoch,
#: the id of a command, the bundle.
FIELDS: Final = ("interval", "epoch", "command", "bundle")


class LogFormat(StrEnum):
    """What --log-format may say."""

    TEXT = "text"
    JSON = "json"


#: The option --log-format, as ``log_format: LogFormatOption = LogFormat.TEXT``.
LogFormatOption: TypeAlias = Annotated[
    LogFormat,
    typer.Option(_OPTION, help="Form of the log on standard error: lines of text, or a JSON object on each line."),
]


def format_in(words: Sequence[str]) -> LogFormat:
    """The form that the arguments *words* ask for; text where what they ask for is unknown: the command refuses it."""
    return LogFormat.JSON if option_in(words, _OPTION) == LogFormat.JSON.value else LogFormat.TEXT


def option_in(words: Sequence[str], option: str) -> str:
    """The last value of *option* in the arguments *words*, before Typer has read them; "" where it is not given."""
    value = ""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            value = after
        elif word.startswith(f"{option}="):
            value = word.removeprefix(f"{option}=")
    return value


def formatter(form: LogFormat) -> logging.Formatter:
    """Formats the records of a log as *form*; times are UTC."""
    is_json = form is LogFormat.JSON
    created = _JsonFormatter(datefmt=_TIME) if is_json else LineFormatter(_TEXT_LINE, _TIME)
    created.converter = time.gmtime
    return created


class _JsonFormatter(logging.Formatter):
    """A JSON object of one line: time, level, logger, message, then those of FIELDS that the record has."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": without_trace(redacted_log(record.getMessage())),
        }
        line.update((name, value) for name in FIELDS if (value := getattr(record, name, None)) is not None)
        if record.exc_info and traces_are_shown():
            line["trace"] = redacted_log(self.formatException(record.exc_info))
        return json.dumps(line, default=str)
