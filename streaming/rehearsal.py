"""A standby runs the query once while it waits, on made-up records, and decides nothing.

A JVM that has never run them spends most of a takeover loading classes, planning and compiling.  After a rehearsal, and
a look at the log, all of that is done.  Records, state and checkpoint lie in a folder that is deleted.
"""

import logging
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controller.adapters.long_work import long_work
from streaming import made_up
from streaming.query import QueryOptions, decision_query
from streaming.sources import LogSource, folder_records
from streaming.spark.gateway import scratch_folder

log = logging.getLogger(__name__)

#: In two micro-batches: only the second one reads state.
_INTERVALS: Final = 2
#: Its usual duration.
_USUAL_SECONDS: Final = 10.0


def rehearse(spark: SparkSession, options: QueryOptions, source: LogSource) -> None:
    """Run the query that a leader runs, with *options*, and look at the log of *source*.

    An error is only logged: the leader meets the same error and reports it.
    """
    try:
        with (
            long_work("rehearsing the query", usual_seconds=_USUAL_SECONDS),
            TemporaryDirectory(
                prefix="trimtab-rehearsal-", dir=scratch_folder(), ignore_cleanup_errors=True
            ) as scratch,
        ):
            _run_query(spark, replace(options, files=True), Path(scratch))
            source.peek(spark)
    except (PySparkException, Py4JJavaError) as error:
        why = str(error).partition("\n\tat ")[0]  # without the JVM's trace
        log.warning("the rehearsal failed, so a takeover may take longer: %s", why)
    else:
        log.info("this controller stands by")


def _run_query(spark: SparkSession, options: QueryOptions, folder: Path) -> None:
    files = made_up.publish(
        folder, cluster=options.decode.cluster, period_ms=options.decode.period_ms, intervals=_INTERVALS
    )
    records, checkpoint = folder_records(spark, folder, files_per_trigger=files // 2 + 1), str(folder / "checkpoint")
    decision_query(records, options, _read, checkpoint=checkpoint).trigger(availableNow=True).start().awaitTermination()


def _read(batch: DataFrame, _: int) -> None:
    """As the decision sink does."""
    batch.toArrow()
