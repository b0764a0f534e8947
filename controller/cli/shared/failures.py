"""How a command fails: on one line, with what happened and what to do.  A trace is for those who ask by ``--debug``."""

import errno
import logging
import os
import re
import select
import shutil
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from controller.adapters.process.tied_child import NOTHING_FOUND_VARIABLE
from controller.model.errors import NothingFoundError, TrimtabError
from controller.model.lookalikes import revealed
from controller.model.names import NO_NAME_HAS
from controller.settings.redaction import redacted_log

#: Packages that pyproject.toml leaves out of the wheel.
_IN_CHECKOUT_ALONE = ("controller.bench", "controller.lab")
#: Packages of the extra trimtab[web].
_OF_WEB = ("jinja2", "jwt", "starlette", "uvicorn")


@contextmanager
def needs_checkout(what: str) -> Iterator[None]:
    """Where an import in the block fails, raise TrimtabError: *what* needs a checkout, or the extra trimtab[web]."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _OF_WEB:
            raise TrimtabError(f"`{what}` needs {error.name}: pip install 'trimtab[web]'") from error
        if not (error.name or "").startswith(_IN_CHECKOUT_ALONE):
            raise
        raise TrimtabError(f"`{what}` is not part of the installed package: run it in a checkout of trimtab") from error


log = logging.getLogger(__name__)

_FAILED: Final = 1
#: As a shell says of a command that SIGPIPE ended.
READER_GONE: Final = 141
#: Set once ``--debug`` is given.
_TRACES: Final = threading.Event()
#: What a trace begins with, in the text of an error of Spark, and in a log record.
_TRACE_SIGNS: Final = ("\n\tat ", "\nTraceback (most recent", "\n=== Streaming Query", "\nJVM stacktrace", "\n\nJVM")
#: What would steer a terminal, or begin a line: whatever a server answers may be in an error.
_STEERS: Final = re.compile(rf"(?!\n)[{NO_NAME_HAS}]")
#: Of an unexpected error's text as much is shown.
_LONGEST_LINE: Final = 300


def show_traces(is_on: bool) -> None:
    """Print the trace of every error from now on, where *is_on*."""
    if is_on:
        _TRACES.set()


def traces_are_shown() -> bool:
    """Whether ``--debug`` is given."""
    return _TRACES.is_set()


def exit_code_of(error: Exception, *, logged: bool = False) -> int:
    """Print *error*, which ended the command, to standard error, or log it.  Returns the exit code."""
    code = error.exit_code if isinstance(error, TrimtabError) else _FAILED
    if isinstance(error, NothingFoundError):
        code = int(os.environ.get(NOTHING_FOUND_VARIABLE, code))
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        _forget_output()  # as `trimtab options | head`: nobody reads the rest
        return READER_GONE
    if _TRACES.is_set():
        sys.stderr.write(redacted_log("".join(traceback.format_exception(error))))
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        _forget_output()
    if logged:
        log.critical("ended: %s; exit code %d", in_words(error), code)
        return code
    try:
        say(in_words(error))
    except OSError:
        _forget_output()
    return code


def say(text: str) -> None:
    """Print *text*, as trimtab's, to standard error; on a terminal its lines break between words."""
    lines = harmless(redacted_log(f"trimtab: {text}")).splitlines()
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in _broken(line, width)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _broken(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]


def in_words(error: BaseException) -> str:
    """*error* on one line; a TrimtabError in its own words, which may take several."""
    if isinstance(error, TrimtabError):
        return without_trace(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory: give this process more, or ask for less"
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    again = "" if _TRACES.is_set() else "; --debug shows where it happened"
    return f"unexpected error, please report it: {message:.{_LONGEST_LINE}}{again}"


def without_trace(text: str) -> str:
    """*text* up to the trace of Java or Python in it, on one line where there is one; all of it after ``--debug``."""
    if _TRACES.is_set():
        return text
    begin = min((at for sign in _TRACE_SIGNS if (at := text.find(sign)) >= 0), default=-1)
    return text if begin < 0 else " ".join(text[:begin].split())


def harmless(text: str) -> str:
    """*text* with a blank for each control character but line breaks, so that a terminal only shows it; and what would
    mislead its reader revealed: a plan that a person approves must read as it is."""
    return revealed(_STEERS.sub(" ", text))


class LineFormatter(logging.Formatter):
    """Formats a record without traces, unless ``--debug`` is given; its second line and all others are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        return harmless(without_trace(redacted_log(super().format(record)))).replace("\n", "\n  ")


def no_traces_from_threads() -> None:
    """From now on an error that ends a thread, or that nobody can handle, is one line in the log.

    What libraries log in a command that keeps no log is one line, too.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("trimtab: %(message)s"))
    threading.excepthook = _thread_failed
    sys.unraisablehook = _not_raisable


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is None or isinstance(failed.exc_value, SystemExit):
        return
    name = failed.thread.name if failed.thread is not None else "?"
    trace = failed.exc_value if _TRACES.is_set() else None
    log.error("thread %s ended: %s", name, in_words(failed.exc_value), exc_info=trace)


def _not_raisable(failed: Any) -> None:
    if failed.exc_value is not None:
        trace = failed.exc_value if _TRACES.is_set() else None
        log.debug("ignored: %s", in_words(failed.exc_value), exc_info=trace)


def _reader_is_gone() -> bool:
    """Whether who read the standard output, through a pipe, has ended."""
    looks = select.poll()
    try:
        looks.register(sys.stdout.fileno(), 0)
        return any(events & (select.POLLERR | select.POLLHUP) for _, events in looks.poll(0))
    except (OSError, ValueError):
        return True


def _forget_output() -> None:
    """Let the interpreter flush what is left to nowhere when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
