"""Spark's classes as an archive that a JVM maps into memory: its start takes half of the processor time.

It is a dynamic archive of class data sharing, made by streaming.make_class_archive, in the folder of fetched
jars.  Its name says which Java and which jars it is of: a JVM would not use one of another version, or of other
jars, and start as if there were none.
"""

import hashlib
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from controller.adapters import jars

log = logging.getLogger(__name__)

#: Environment variable: options of Spark's JVM, also those that users set.
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_WRITE: Final = "-XX:ArchiveClassesAtExit="
#: After a start without an archive one is made, once the start has been over for so long.
_MADE_AFTER_SECONDS: Final = 60.0
#: Making one takes less than half of this.
_MEMORY_BYTES: Final = 3 << 30
_MACHINE: Final = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def path(home: Path, folder: Path = jars.FOLDER) -> Path:
    """Where the archive lies of the jars in *home*, a folder that Spark is started from, if it has been made."""
    described = "\n".join([_described(_java()), *map(_described, sorted((home / "jars").glob("*.jar")))])
    content = hashlib.sha256(described.encode()).hexdigest()
    return folder / "trimtab" / f"spark-{version('pyspark')}-{content[:16]}.jsa"


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


def make_in_background(archive: Path, after_seconds: float = _MADE_AFTER_SECONDS) -> None:
    """Have another process make *archive*, later and with low priority; only where there is none, and memory for it."""
    if is_written() or archive.exists():
        return
    later = threading.Timer(after_seconds, _make, args=[archive])
    later.daemon = True
    later.start()


def free_memory(machine: Path = _MACHINE, limit: Path = _LIMIT, used: Path = _USED) -> int:
    """Bytes that this machine has, and its container's limit leaves; 0 where Linux does not say."""
    try:
        available = next(line for line in machine.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = int(available.split()[1]) << 10
        most = limit.read_text().strip() if limit.exists() else "max"
        return free if most == "max" else min(free, int(most) - int(used.read_text()))
    except (OSError, StopIteration, ValueError):
        return 0


def _make(archive: Path) -> None:
    if archive.exists() or free_memory() < _MEMORY_BYTES:
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "streaming.make_class_archive"]
    log.info("making an archive of Spark's classes in the background, once: later starts take half of the time")
    with suppress(OSError):  # it is tried again after the next start
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _java() -> Path:
    """A file that another version of Java has otherwise: its modules."""
    program = Path(jars.java_program()).resolve()
    modules = program.parents[1] / "lib" / "modules"
    return modules if modules.exists() else program


def _described(file: Path) -> str:
    """The file as JVMs compare it: path, size and time of its last change."""
    state = file.stat()
    return f"{file} {state.st_size} {state.st_mtime_ns}"
