"""Spark's log goes to a file of its own; what an operator must know comes through in trimtab's.

log4j2.properties says what goes where.  What the JVM itself and its Python workers print goes to the file, too.
"""

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

log = logging.getLogger("spark")

_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
#: How a line begins that log4j2.properties sends to trimtab's log: then level, logger and text follow.
_TOLD: Final = "trimtab|"
_LEVELS: Final = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
#: In what a JVM prints by itself when it is about to end.
_FATAL: Final = ("OutOfMemoryError", "# A fatal error", "insufficient memory")
#: Of a line as much goes to trimtab's log.
_SHOWN: Final = 500
_LINES_KEPT: Final = 15
#: How the lines of a trace of Java begin, below the error that it is of.
_FRAMES: Final = ("\tat ", "\t... ")
#: A line that repeats the one told last is told again after so many seconds, not earlier: the file has each.
_AGAIN_SECONDS: Final = 10.0
#: Log files of earlier processes that are kept.
_FILES_KEPT: Final = 5


def new_file(folder: Path | None, otherwise: Path) -> Path:
    """Where Spark of this process logs: a file in *folder*; in *otherwise* where there is none, or none can be made.

    The oldest files of earlier processes of this machine are deleted.
    """
    prefix = f"spark-{socket.gethostname()}"
    name = f"{prefix}-{os.getpid()}.log"
    if folder is None:
        return otherwise / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        _delete_oldest([path for path in folder.glob(f"{prefix}-*.log*") if not path.name.startswith(name)])
    except OSError as error:
        log.warning("%s: %s; Spark's log of this process is not kept: set spark.log_path", folder, error.strerror)
        return otherwise / name
    return folder / name


def _delete_oldest(files: Iterable[Path]) -> None:
    by_age = sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_FILES_KEPT:]:
        path.unlink(missing_ok=True)


def java_options(file: Path) -> str:
    """The JVM options that make Spark log to *file*."""
    return f'"-Dlog4j2.configurationFile={_CONFIGURATION.as_uri()}" "-Dtrimtab.spark.log={file}"'


class OutputReader:
    """Reads what the JVM prints, in a thread: the JVM would stand still if nobody did."""

    def __init__(self, output: Iterable[bytes], file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._output, self._file, self._now = output, file, now
        #: What was told last, and when.
        self._told, self._told_at = "", 0.0
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)
        self._thread = threading.Thread(target=self._read, name="spark-output", daemon=True)
        self._thread.start()

    def last_lines(self) -> str:
        """The end of what was printed, but for traces; waits for the rest, which a JVM that has ended leaves soon."""
        self._thread.join(1.0)
        return "\n".join(self._last)

    def _read(self) -> None:
        for raw in self._output:
            line = raw.decode(errors="replace").rstrip()
            if not line.startswith(_FRAMES):  # else a trace leaves no room for what it is about
                self._last.append(line)
            if line.startswith(_TOLD):
                self._tell(line)
            else:
                self._keep(line)

    def _tell(self, line: str) -> None:
        now = self._now()
        if line == self._told and now - self._told_at < _AGAIN_SECONDS:
            return
        self._told, self._told_at = line, now
        _, level, logger, text = [*line.split("|", 3), "", ""][:4]
        log.log(_LEVELS.get(level, logging.ERROR), "%s: %.*s; see %s", logger, _SHOWN, text, self._file)

    def _keep(self, line: str) -> None:
        if any(sign in line for sign in _FATAL):
            log.critical("%.*s; see %s", _SHOWN, line, self._file)
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError:
            return  # a full disk; Spark meets it as well, and says so
