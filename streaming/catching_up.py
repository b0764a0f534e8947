"""Catching up: while a query is far behind, its batches are cut by intervals rather than by a fixed number of records.

The snapshots and claims of an interval are the same whatever the number of its records, so it is intervals that memory
is needed for.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import SparkSession

from controller.adapters.kafka_backlog import Offsets, backlog
from controller.settings.trimtab_toml import Settings
from streaming.assembly import now_ms

log = logging.getLogger(__name__)

#: While the query catches up, more comes: each turn reads that of the turn before.  Whatever is left then is read as
#: usual, and closed a few intervals at a time.
_TURNS: Final = 5
#: Of Spark's offset log.
_VERSION: Final = "v1"


def offsets_a_batch(spark: SparkSession, settings: Settings, checkpoint: str) -> Iterator[int]:
    """While the query with this *checkpoint* is far behind: what one batch may read, until it has read what there was.

    A log in a folder is no different when it is behind: its batches are cut by files.
    """
    log_settings = settings.log.kafka if settings.log.kind == "kafka" else None
    few = settings.intervals.close_at_most
    for _ in range(_TURNS if log_settings else 0):
        assert log_settings is not None, "or there would be no turn"
        ahead = backlog(
            log_settings,
            cluster=settings.cluster.name,
            period_ms=settings.intervals.period_ms,
            read=offsets_read(spark, checkpoint),
            now_ms=now_ms(),
            few=few,
        )
        most = ahead.offsets_a_batch(few, settings.spark.max_offsets_per_trigger)
        if most is None:
            return
        log.info("catches up on %d intervals: reads %d records a batch", ahead.intervals, most)
        yield most


def offsets_read(spark: SparkSession, checkpoint: str) -> Offsets | None:
    """How far the query with this *checkpoint* has come in Kafka; None where it has not begun, or does not say."""
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
    files = folder.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(folder):
        return None
    names = [status.getPath().getName() for status in files.listStatus(folder)]
    batches = [int(name) for name in names if name.isdecimal()]
    if not batches:
        return None
    stream = files.open(jvm.org.apache.hadoop.fs.Path(folder, str(max(batches))))
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    return _offsets_in(text)


def _offsets_in(text: str) -> Offsets | None:
    """The offsets in a file of Spark's offset log: its version, a line about the batch, and one for each source."""
    version, _, *sources = text.splitlines()
    if version != _VERSION or len(sources) != 1:
        return None
    told: dict[str, dict[str, int]] = json.loads(sources[0])
    return {topic: {int(partition): at for partition, at in of.items()} for topic, of in told.items()}
