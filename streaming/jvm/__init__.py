"""The one function that Spark does not have: a record's rows, its topics added up in one look at its bytes.

PySpark ships a Java compiler, Janino, so the sources beside this file need nothing but a JRE.  They are compiled once
for each content, into the git-ignored folder where fetched jars lie.
"""

import hashlib
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyspark
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from controller.adapters import jars
from controller.adapters.long_work import long_work
from controller.aggregate.shard import DetailLimits
from controller.model.errors import TrimtabError
from streaming.schemas import RECORD_ROWS

_SOURCES: Final = Path(__file__).parent
_NAME: Final = "record_rows"
_COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
_PYSPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"


def jar(folder: Path = jars.FOLDER, sources: Path = _SOURCES) -> Path:
    """The function compiled from the Java files in *sources*, as a jar below *folder*.

    Compiles where that has not been done; TrimtabError, naming the file, where that fails.
    """
    files = sorted(sources.glob("*.java"))
    content = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    target = folder / "trimtab" / f"{_NAME}-{content[:16]}.jar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as scratch, long_work("compiling the query's Java (once)"):
            _compile(files, Path(scratch)).replace(target)  # at once, so that nobody finds half of it
    return target


def register(spark: SparkSession) -> None:
    """Make the function known to *spark*, which was started with the :func:`jar`."""
    # Not registerJavaFunction: it asks for the type parameters of the interface, which Janino leaves out.
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    session.udf().register(_NAME, jvm.trimtab.RecordRows(), session.parseDataType(RECORD_ROWS.json()))


def record_rows(
    value: Column,
    source: Column,
    append_time: Column,
    *,
    cluster: str,
    period_ms: int,
    shards: int,
    limits: DetailLimits,
) -> Column:
    """The RECORD_ROWS of the record whose bytes *value* holds; of a refused one, and null is one, without rows."""
    near = (limits.topics, limits.sessions, limits.msg_rate, limits.throughput)
    constants = (cluster, period_ms, shards, *map(float, near))
    return F.call_function(_NAME, value, source, append_time, *map(F.lit, constants))


def _compile(files: Sequence[Path], scratch: Path) -> Path:
    classes, archive = scratch / "classes", scratch / "classes.jar"
    classes.mkdir()
    used = ":".join(str(path) for path in sorted(_PYSPARK_JARS.glob("*.jar")))
    command = [
        jars.java(),
        "-cp",
        f"{_PYSPARK_JARS}/*",
        _COMPILER,
        "-classpath",
        used,
        "-d",
        str(classes),
        *map(str, files),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    compiled = sorted(classes.rglob("*.class"))
    if run.returncode or not compiled:
        raise TrimtabError(f"{', '.join(map(str, files))} does not compile: {run.stdout}{run.stderr}")
    with zipfile.ZipFile(archive, "w") as out:
        for path in compiled:
            out.write(path, path.relative_to(classes))
    return archive
