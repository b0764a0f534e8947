"""Spark's classes as an archive that a JVM maps into memory: its start takes half of the processor time.

It is a dynamic archive of class data sharing, made by streaming.make_class_archive, in the folder of fetched
jars.  Its name says which Java and which jars it is of: a JVM would not use one of another version, or of other
jars, and start as if there were none.
"""

import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars

log = logging.getLogger(__name__)

#: Environment variable: options of Spark's JVM, also those that users set.
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_WRITE: Final = "-XX:ArchiveClassesAtExit="
#: After a start without an archive one is made, once the start has been over for so long.
_MADE_AFTER_SECONDS: Final = 60.0
#: Making one takes less than half of this.
_MEMORY_BYTES: Final = 3 << 30
#: After a try that failed, the next one; seconds.
_AGAIN_AFTER_SECONDS: Final = 86_400
#: The shell ends at once, so that what it has started is no child of this process: whoever ends kills its children, and
#: a command that ends within two minutes would never get an archive.
_IN_BACKGROUND: Final = (
    *("sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh"),
    *("nice", "-n", "19", sys.executable, "-m", "streaming.make_class_archive"),
)
_MACHINE: Final = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def path(home: Path, folder: Path = jars.FOLDER) -> Path:
    """Where the archive lies of the jars in *home*, a folder that Spark is started from, if it has been made."""
    content = jars.fingerprint(sorted((home / "jars").glob("*.jar")))
    return folder / "trimtab" / f"spark-{version('pyspark')}-{content}.jsa"


def option_to_read(archive: Path) -> str:
    """The JVM options that use *archive*; none where there is no archive, or where this JVM writes one."""
    if is_written() or not archive.exists():
        return ""
    return f'"-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:cds*=off'


def option_to_write(archive: Path) -> str:
    """The JVM options of the environment, and those that write *archive* when the JVM ends."""
    return f'{os.environ.get(OPTIONS, "")} "{_WRITE}{archive}" -Xlog:cds*=off'.strip()


def is_written() -> bool:
    """Whether the JVM of this process writes an archive."""
    return _WRITE in os.environ.get(OPTIONS, "")


def make_in_background(archive: Path) -> None:
    """Have another process make *archive*, later and with low priority; only where there is none, and memory for it."""
    if is_written() or archive.exists():
        return
    later = threading.Timer(_MADE_AFTER_SECONDS, _make, args=[archive])
    later.daemon = True
    later.start()


def lock_of(archive: Path) -> Path:
    """Whoever makes *archive* holds this lock."""
    return archive.with_suffix(".lock")


def failure_of(archive: Path) -> Path:
    """Says why *archive* could not be made."""
    return archive.with_suffix(".none")


def is_to_be_made(archive: Path, now: float | None = None) -> bool:
    """Whether there is no *archive*, no process makes it now, it can be written, and no try failed in the last day."""
    if archive.exists():
        return False
    with suppress(OSError):  # none has failed
        if (time.time() if now is None else now) - failure_of(archive).stat().st_mtime < _AGAIN_AFTER_SECONDS:
            return False
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with lock_of(archive).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by another process; or nothing can be written there
        return False
    return True


def free_memory(machine: Path = _MACHINE, limit: Path = _LIMIT, used: Path = _USED) -> int:
    """Bytes that this machine has, and its container's limit leaves; 0 where Linux does not say."""
    try:
        available = next(line for line in machine.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = int(available.split()[1]) << 10
        maximum = limit.read_text().strip() if limit.exists() else "max"
        return free if maximum == "max" else min(free, int(maximum) - int(used.read_text()))
    except (OSError, StopIteration, ValueError):
        return 0


def _make(archive: Path) -> None:
    if free_memory() < _MEMORY_BYTES or not is_to_be_made(archive):
        return
    log.info(
        "making an archive of Spark's classes in the background, once: later starts take half the time; "
        "it continues if this command ends first"
    )
    with suppress(OSError):  # it is tried again after the next start
        subprocess.run(_IN_BACKGROUND, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)
