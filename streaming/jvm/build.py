"""``python -m streaming.jvm.build``: compile the query's Java, unless that has been done.

The Java uses classes of PySpark's jars and of Spark's Kafka connector.
"""

import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.disk.java_compiler import compile_java
from controller.adapters.long_work import long_work
from controller.model.errors import TrimtabError
from streaming.jvm import SOURCES, java_files, path

#: What is wrong in our sources although it compiles.
_WARNINGS: Final = "raw,unchecked,unusedImport,unusedLocal,unusedPrivate,static-access,fallthrough"
#: Beside PySpark's jars; a log in a folder or in Pulsar is read without it.
_CONNECTOR: Final = "connector"
#: Files of a jar have no time of their own: the same sources give the same bytes.
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)


def build(folder: Path = SOURCES) -> Path:
    """Compile the Java files of *folder* into a jar beside them, in place of older ones; returns it.

    TrimtabError, with the compiler's words, where they do not compile.
    """
    target = path(folder)
    if not target.exists():
        with TemporaryDirectory(dir=folder, prefix=".build-") as scratch, long_work("compiling the query's Java"):
            made = _compiled(folder, Path(scratch))
            for older in folder.glob("query-*.jar"):
                older.unlink(missing_ok=True)  # another process may compile, too
            made.replace(target)  # at once, so that nobody finds half of it
    return target


def _compiled(folder: Path, scratch: Path) -> Path:
    classes, archive = scratch / "classes", scratch / "classes.jar"
    options = ["-g", f"-warn:{_WARNINGS}", "-failOnWarning"]
    used = [*sorted(jars.pyspark_jars().glob("*.jar")), *jars.fetch(_CONNECTOR)]
    compile_java(java_files(folder), used, classes, options)
    with zipfile.ZipFile(archive, "w") as out:
        for compiled in sorted(classes.rglob("*.class")):
            out.writestr(zipfile.ZipInfo(compiled.relative_to(classes).as_posix(), _NO_TIME), compiled.read_bytes())
    return archive


if __name__ == "__main__":
    try:
        build()
    except TrimtabError as error:
        sys.exit(f"trimtab: {error}")
