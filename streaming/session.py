"""The Spark session, as trimtab needs it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from streaming import jvm

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
#: What suits one machine; the settings may say otherwise.
_DEFAULT: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def start_session(
    master: str,
    shuffle_partitions: int,
    conf: Mapping[str, object],
    jars: Sequence[Path] = (),
) -> SparkSession:
    """Start Spark on *master*; *conf* are further options under Spark's names, *jars* the Kafka connector's."""
    # Without it workers take whatever python3 the PATH finds.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("trimtab").master(master)
    options = {
        **_DEFAULT,
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        **{name: str(value) for name, value in conf.items()},
        **_FIXED,
    }
    options["spark.jars"] = ",".join(map(str, (jvm.jar(), *jars)))
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    jvm.register(spark)
    return spark
