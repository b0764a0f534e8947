"""The Spark session, as trimtab needs it."""

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from controller.adapters.long_work import long_work
from controller.model.errors import SettingsError, TrimtabError
from streaming import jvm
from streaming.spark import gateway
from streaming.spark.shipped_code import with_code

#: What the query depends on; the settings cannot change these.
_FIXED: Mapping[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Batches to Python end by their number of rows alone.  This number switches the limit in bytes off: for that one
    # Spark measures all columns anew for each row, and it takes most of the time there is.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "streaming.daemon",
}
#: What has a setting of its own in [spark].
_SETTINGS: Mapping[str, str] = {
    "spark.master": "master",
    "spark.sql.shuffle.partitions": "shuffle_partitions",
}
#: What suits one machine; the settings may say otherwise.
_DEFAULT: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark keeps for its user interface, also without one: by default a thousand finished jobs, stages and queries
    # with their plans.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Otherwise Spark reads each shard's state a second time, to count the shards.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # How often a query with nothing to do asks the log for its end.  Spark's own 10 ms keep a quarter of a core busy;
    # each asking takes a millisecond of processor time.
    "spark.sql.streaming.pollingDelay": "250ms",
    # Otherwise Spark looks at more than 32 files by a job of its own, with a task for each file.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # A streaming query has no use for it, and collecting its rows would be planned twice.
    "spark.sql.adaptive.enabled": "false",
    # Hadoop's own starts processes, dozens in each micro-batch.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "trimtab.LocalFiles",
    # Otherwise Spark starts a second Python daemon for functions of SQL: each loads pandas, Arrow and the fold anew.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Otherwise YARN and Kubernetes end a Spark that has lost three executors, be it within a year.
    "spark.executor.failuresValidityInterval": "1h",
}


#: How long Spark mostly takes to start.
_USUAL_SECONDS: Final = 8.0
#: What Spark says of a master that is none.
_NO_MASTER: Final = "Could not parse Master URL"
#: Of an error's causes, so many are told.
_CAUSES: Final = 4


def start_session(
    master: str,
    shuffle_partitions: int,
    conf: Mapping[str, object],
    jars: Sequence[Path] = (),
    log_folder: Path | None = None,
) -> SparkSession:
    """Start Spark on *master*; *conf* are further options under Spark's names, *jars* the Kafka connector's.

    *log_folder*: where Spark's log is kept.  SettingsError where *conf* has an option that the query does not work
    with, or Spark does not start with it; TrimtabError where the JVM ends while Spark starts, or a cluster's master
    may be away.
    """
    options = _options(master, shuffle_partitions, conf, jars)
    with long_work("starting Spark", usual_seconds=_USUAL_SECONDS):
        gateway.ensure_jvm(options, log_folder)
        try:
            spark = SparkSession.builder.config(map={**options}).getOrCreate()
        except Py4JJavaError as error:
            problem = f"Spark does not start with [spark] master = {master!r} and conf: {_why(error.java_exception)}"
            if master.startswith("local") or _NO_MASTER in problem:
                raise SettingsError(problem) from error
            raise TrimtabError(problem) from error
        except (Py4JError, ConnectionError) as error:
            raise TrimtabError(gateway.why_it_ended()) from error
    # In a thread: the daemon loads what its workers need while the JVM prepares the queries.
    threading.Thread(target=_start_python_daemon, args=(spark,), name="python-daemon", daemon=True).start()
    return spark


def _why(java_exception: Any) -> str:
    """The messages of the exception and its causes: only a cause names a master that does not answer."""
    messages = list[str]()
    cause = java_exception
    while cause is not None and len(messages) < _CAUSES:
        messages.append(" ".join(str(cause.getMessage() or cause).split()))
        cause = cause.getCause()
    return ": ".join(dict.fromkeys(messages))


def start_jvm(
    master: str,
    shuffle_partitions: int,
    conf: Mapping[str, object],
    jars: Sequence[Path] = (),
    log_folder: Path | None = None,
) -> None:
    """Start the JVM for ``start_session``, which is to get the same arguments, and do not wait for it."""
    gateway.start_jvm(_options(master, shuffle_partitions, conf, jars), log_folder)


def _options(
    master: str, shuffle_partitions: int, conf: Mapping[str, object], jars: Sequence[Path]
) -> Mapping[str, str]:
    # Without it workers take whatever python3 the PATH finds.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = with_code(master, spark_options(shuffle_partitions, conf, (jvm.jar(), *jars)))
    return {"spark.app.name": "trimtab", "spark.master": master, **options}


def _start_python_daemon(spark: SparkSession) -> None:
    with suppress(Exception):  # the first query meets the same error, and reports it
        spark.sparkContext.parallelize([0], 1).count()


def spark_options(shuffle_partitions: int, conf: Mapping[str, object], jars: Sequence[Path]) -> dict[str, str]:
    """All options of the session: ours, and those of *conf*, which may add jars to *jars*.

    SettingsError where *conf* changes one that the query depends on, or one that is a setting of [spark].
    """
    chosen = {name: _text(value) for name, value in conf.items()}
    for name, value in chosen.items():
        if name in _SETTINGS:
            raise SettingsError(f'spark.conf."{name}" = {value!r}: set spark.{_SETTINGS[name]} instead')
        if _FIXED.get(name, value) != value:
            raise SettingsError(
                f'spark.conf."{name}" = {value!r}: trimtab works with {_FIXED[name]!r} only; remove this option'
            )
    theirs = [jar.strip() for jar in chosen.pop("spark.jars", "").split(",") if jar.strip()]
    return {
        **_DEFAULT,
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        **chosen,
        **_FIXED,
        "spark.jars": ",".join([*map(str, jars), *theirs]),
    }


def _text(value: object) -> str:
    """*value* as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
