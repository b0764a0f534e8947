"""The folder that Spark is started from: PySpark's, without the jars that only make a start slower.

Spark loads every extension of its sessions that it finds in a jar.  Spark's machine learning has one, whose functions
start Scala's reflection: a sixth of a start's processor time, and trimtab uses none of it.  PySpark's zip of its own
sources is left out, too: Python workers would compile them anew in each start, and load them from the environment now.
"""

import hashlib
import os
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from controller.adapters.disk import jars

#: Environment variable: where Spark is.  What users set is used as it is.
VARIABLE: Final = "SPARK_HOME"
#: Environment variable: what YARN copies to its executors for Python.
_ARCHIVES: Final = "PYSPARK_ARCHIVES_PATH"
#: Nothing that Spark SQL needs depends on it.
_LEFT_OUT: Final = "spark-mllib_*.jar"


def spark_home(folder: Path = jars.FOLDER) -> Path:
    """The folder to start Spark from, made below *folder* where that has not been done.

    It holds links to PySpark's files.  It is PySpark's own where none can be made, and SPARK_HOME where that is set.
    """
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    shipped = jars.pyspark_jars()
    needed = [jar for jar in sorted(shipped.glob("*.jar")) if not fnmatch(jar.name, _LEFT_OUT)]
    content = hashlib.sha256("\n".join(map(str, needed)).encode()).hexdigest()
    # Resolved: an archive of classes is of one path, whichever link leads to the folder.
    home = folder.resolve() / "trimtab" / f"spark-{version('pyspark')}-{content[:16]}"
    if not home.is_dir():
        try:
            _make(home, shipped.parent, needed)
        except OSError:
            return shipped.parent
    return home


def for_yarn(master: str) -> dict[str, str]:
    """What else Spark's environment needs for *master*: YARN wants PySpark's zips, which the folder does not have."""
    if master != "yarn" or os.environ.get(_ARCHIVES):
        return {}
    zips = sorted((jars.pyspark_jars().parent / "python" / "lib").glob("*.zip"))
    return {_ARCHIVES: ",".join(map(str, zips))}


def _make(home: Path, pyspark: Path, jars: list[Path]) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home.parent, prefix=".home-", ignore_cleanup_errors=True) as scratch:
        new = Path(scratch) / home.name
        (new / "jars").mkdir(parents=True)
        for name in ("bin", "conf"):
            (new / name).symlink_to(pyspark / name)
        for jar in jars:
            (new / "jars" / jar.name).symlink_to(jar)
        try:
            new.rename(home)  # at once, so that nobody finds half of it
        except OSError:
            if not home.is_dir():  # else another process was quicker
                raise
