"""Spark's log goes to a file of its own; lines that an operator must see are forwarded to trimtab's log.

log4j2.properties has the rules.  Output of the JVM itself and of its Python workers goes to the file, too.
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
_FORWARDED: Final = "trimtab|"
_LEVELS: Final = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
#: In what a JVM prints by itself when it is about to end.
_FATAL: Final = ("OutOfMemoryError", "# A fatal error", "insufficient memory")
#: Of a line as much goes to trimtab's log.
_LONGEST_LINE: Final = 500
#: How Spark's line ends on a query that failed.
_ENDED: Final = "terminated with error"
_LINES_KEPT: Final = 15
#: How the lines of a trace of Java begin, below the error that it is of.
_FRAMES: Final = ("\tat ", "\t... ")
#: A line that repeats the last forwarded one is forwarded again only after so many seconds; the file has each.
_AGAIN_SECONDS: Final = 10.0
#: Log files of earlier processes that are kept: of this machine, and of all others.  Each pod of Kubernetes is another
#: machine, and they share the folder.
_FILES_KEPT: Final = 5
_OTHERS_KEPT: Final = 20


def new_file(folder: Path | None, otherwise: Path) -> Path:
    """Where Spark of this process logs: a file in *folder*; in *otherwise* where there is none, or none can be made.

    The oldest files of earlier processes are deleted, of this machine and of others.
    """
    prefix = f"spark-{socket.gethostname()}"
    name = f"{prefix}-{os.getpid()}.log"
    if folder is None:
        return otherwise / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        earlier = [path for path in folder.glob("spark-*.log*") if not path.name.startswith(name)]
        ours = {path for path in earlier if path.name.startswith(f"{prefix}-")}
        _delete_oldest(ours, _FILES_KEPT)
        _delete_oldest(set(earlier) - ours, _OTHERS_KEPT)
    except OSError as error:
        log.warning("%s: %s; Spark's log of this process is not stored: set spark.log_path", folder, error.strerror)
        return otherwise / name
    return folder / name


def _delete_oldest(files: Iterable[Path], count: int) -> None:
    by_age = sorted(files, key=_modified, reverse=True)
    for path in by_age[count:]:
        path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    """When it was written last; 0 where another process has just deleted it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def java_options(file: Path) -> str:
    """The JVM options that make Spark log to *file*."""
    return f'"-Dlog4j2.configurationFile={_CONFIGURATION.as_uri()}" "-Dtrimtab.spark.log={file}"'


class OutputReader:
    """Reads what the JVM prints, in a thread: the JVM would stand still if nobody did."""

    def __init__(self, output: Iterable[bytes], file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._output, self._file, self._now = output, file, now
        #: The line forwarded last, and when.
        self._last_forwarded, self._forwarded_at = "", 0.0
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
            if line.startswith(_FORWARDED):
                self._tell(line)
            else:
                self._keep(line)

    def _tell(self, line: str) -> None:
        now = self._now()
        if line == self._last_forwarded and now - self._forwarded_at < _AGAIN_SECONDS:
            return
        self._last_forwarded, self._forwarded_at = line, now
        _, level, logger, text = [*line.split("|", 3), "", ""][:4]
        if text.startswith("Query ") and text.endswith(_ENDED):
            return  # the file has it, and who runs the query says why it ended
        log.log(_LEVELS.get(level, logging.ERROR), "%s: %.*s; see %s", logger, _LONGEST_LINE, text, self._file)

    def _keep(self, line: str) -> None:
        if any(sign in line for sign in _FATAL):
            log.critical("%.*s; see %s", _LONGEST_LINE, line, self._file)
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError:
            return  # a full disk; Spark meets it as well, and says so
