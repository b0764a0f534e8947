"""The one function that Spark does not have: a record's topics, added up in one look at its bytes.

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
from pyspark.sql.types import BinaryType

from controller.adapters import jars
from controller.model.errors import TrimtabError

_SOURCES: Final = Path(__file__).parent
_NAME: Final = "topics_summed"
_COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
_PYSPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"
#: What the source imports.
_USED: Final = ("jackson-core-*.jar", "spark-sql-api_*.jar")


def jar(folder: Path = jars.FOLDER, sources: Path = _SOURCES) -> Path:
    """The function compiled from the Java files in *sources*, as a jar below *folder*.

    Compiles where that has not been done; TrimtabError, naming the file, where that fails.
    """
    files = sorted(sources.glob("*.java"))
    content = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    target = folder / "trimtab" / f"{_NAME}-{content[:16]}.jar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as scratch:
            _compile(files, Path(scratch)).replace(target)  # at once, so that nobody finds half of it
    return target


def register(spark: SparkSession) -> None:
    """Make the function known to *spark*, which was started with the :func:`jar`."""
    # Not registerJavaFunction: it asks for the type parameters of the interface, which Janino leaves out.
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    session.udf().register(_NAME, jvm.trimtab.TopicsSummed(), session.parseDataType(BinaryType().json()))


def topics_summed(value: str, topics: float, sessions: float, msg_rate: float, throughput: float) -> Column:
    """The bytes of the JSON record in column *value* with its topics summed; those of bundles at a limit are kept too.

    Null where it is not one JSON object.  The sources say in what form.
    """
    limits = (F.lit(float(limit)) for limit in (topics, sessions, msg_rate, throughput))
    return F.call_function(_NAME, F.col(value), *limits)


def _compile(files: Sequence[Path], scratch: Path) -> Path:
    classes, archive = scratch / "classes", scratch / "classes.jar"
    classes.mkdir()
    used = ":".join(str(path) for pattern in _USED for path in sorted(_PYSPARK_JARS.glob(pattern)))
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
