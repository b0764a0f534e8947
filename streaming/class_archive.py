"""Spark's classes as an archive that a JVM maps into memory: it starts in about two thirds of the time.

It is a dynamic archive of class data sharing, made by streaming.make_class_archive, in the git-ignored folder of
fetched jars.  A JVM of another version, or with other jars, does not use it, and starts as if there were none.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Final

from controller.adapters import jars

#: Environment variable: options of Spark's JVM, also those that users set.
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_WRITE: Final = "-XX:ArchiveClassesAtExit="


def path(folder: Path = jars.FOLDER) -> Path:
    """Where the archive of the installed PySpark lies, if it has been made."""
    return folder / "trimtab" / f"spark-{version('pyspark')}.jsa"


def option_to_read(archive: Path) -> str:
    """The JVM options that use *archive*; none where there is no archive, or where this JVM writes one."""
    if _WRITE in os.environ.get(OPTIONS, "") or not archive.exists():
        return ""
    return f'"-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:cds*=off'


def option_to_write(archive: Path) -> str:
    """The JVM options of the environment, and those that write *archive* when the JVM ends."""
    return f'{os.environ.get(OPTIONS, "")} "{_WRITE}{archive}" -Xlog:cds*=off'.strip()
