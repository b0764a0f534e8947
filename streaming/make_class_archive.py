"""``python -m streaming.make_class_archive``: make the archive of Spark's classes, once for each PySpark and Java.

It starts Spark, runs the query once on made-up records, loads the classes by which Spark reads Kafka, and has the
JVM write the classes that it has loaded.
"""

import fcntl
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from controller.adapters.disk import jars
from controller.adapters.disk.places import SHIPPED
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings
from streaming.assembly import Assembly
from streaming.sources import CONNECTOR
from streaming.spark import class_archive
from streaming.spark.gateway import end_in_order
from streaming.spark.session import start_session
from streaming.spark.spark_home import spark_home

_SCENARIO: Final = SHIPPED / "scenarios" / "demo.toml"
#: How long an archive is kept that is not the newest one.
_KEPT_SECONDS: Final = 30 * 86_400
#: After this long nobody works in a folder any more.
_LEFT_SECONDS: Final = 86_400
#: The packages of the connector that reading a topic loads classes of.
_KAFKA: Final = (
    "org/apache/kafka/clients/",
    "org/apache/kafka/common/",
    "org/apache/spark/sql/kafka010/",
    "org/apache/spark/kafka010/",
    "org/apache/commons/pool2/",
)


def make(target: Path) -> None:
    """Keep the classes at *target*, unless another process does that now; the JVM of this process ends.

    TrimtabError where none can be made.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = class_archive.lock_of(target).open("w")
    except OSError as error:
        raise TrimtabError(
            f"{target.parent}: {error.strerror}: cannot store an archive of Spark's classes there"
        ) from error
    with lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            _make(target)
            class_archive.failure_of(target).unlink(missing_ok=True)
        except Exception as error:
            class_archive.failure_of(target).write_text(f"{error}\n")
            raise


def _make(target: Path) -> None:
    _delete_old(target)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=_scratch(target)) as scratch:
        written = Path(scratch) / target.name
        os.environ[class_archive.OPTIONS] = class_archive.option_to_write(written)
        connector: Sequence[Path] = ()
        with suppress(TrimtabError):  # without a network there is an archive all the same
            connector = jars.fetch(CONNECTOR)
        _use(read_settings(_SCENARIO), connector)
        exit_code = end_in_order()
        if exit_code != 0 or not written.exists():
            raise TrimtabError(
                f"Spark's JVM wrote no archive of its classes (exit code {exit_code}): it was killed, the disk is full,"
                " or this Java has no class data sharing.  Spark starts without it, and more slowly"
            )
        written.replace(target)


def _scratch(target: Path) -> str:
    """How the names of folders begin that processes work in that make *target*."""
    return f".archive-{target.stem}-"


def _delete_old(newest: Path) -> None:
    """Delete what processes left that were killed, and archives of other jars and Javas after a month.

    One that is still used is made again.
    """
    for leftover in newest.parent.glob(".archive-*"):
        # Whoever has the lock of the newest one is the only one that makes it; others may make theirs.
        if leftover.name.startswith(_scratch(newest)) or _age(leftover) > _LEFT_SECONDS:
            shutil.rmtree(leftover, ignore_errors=True)
    for archive in newest.parent.glob("spark-*.jsa"):
        if archive != newest and _age(archive) > _KEPT_SECONDS:
            archive.unlink(missing_ok=True)


def _age(file: Path) -> float:
    """Seconds since *file* was changed; 0 where another process has just deleted it."""
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _use(settings: Settings, connector: Sequence[Path]) -> None:
    spark = settings.spark
    session = start_session(spark.master, spark.shuffle_partitions, spark.conf, connector)
    Assembly(settings).stand_by(session)
    _load(session, (name for jar in connector for name in _classes(jar)))
    session.stop()


def _classes(jar: Path) -> Iterator[str]:
    """The classes in *jar* that reading a topic may need."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith(_KAFKA) and name.endswith(".class"):
                yield name.removesuffix(".class").replace("/", ".")


def _load(session: SparkSession, names: Iterator[str]) -> None:
    jvm: Any = session._jvm
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    for name in names:
        with suppress(Py4JJavaError):  # of a library that is not here
            loader.loadClass(name).getDeclaredConstructors()  # links it: a class that is only loaded is not archived


if __name__ == "__main__":
    try:
        make(class_archive.path(spark_home()))
    except TrimtabError as error:
        sys.exit(str(error))
