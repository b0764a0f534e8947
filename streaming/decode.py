"""From bytes to rows, all in the JVM: one function reads each record once and says what it is and what is in it.

Input, from streaming.sources: ``source, partition, offset, file, append_time (ms), value (bytes)``.

    value --record_rows--> suspect, refused, rows --explode--> one row a record and shard

Topics never leave the JVM one by one: the function (streaming.jvm) adds them up within their record; only bundles near
a split keep them.  A refused record is refused whole; why, in words, controller.wire finds out when it becomes a dead
letter.

Cost: one look at each byte of a record; what leaves grows with bundles in bytes, and in rows with brokers times shards.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from controller.aggregate.shard import DetailLimits
from controller.wire.dead_letter import KEPT_BYTES
from streaming.jvm import record_rows


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """What decoding needs to know."""

    cluster: str
    period_ms: int
    max_record_bytes: int
    shards: int
    #: From where on a bundle's topics are kept one by one.
    detail: DetailLimits


def rows(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """The good records of our cluster as streaming.schemas.ROW, with their places and the ``body`` of facts."""
    where = ("source", "partition", "offset", "file")
    told = F.col("r.suspect") & ~F.col("r.refused")
    body = F.when(told, F.col("value").cast("string")).alias("body")
    # Not the plain explode, which brings a filter: pushed below the function, that would have each record read twice.
    found = _judged(records, options).select(*where, body, F.posexplode_outer("r.rows").alias("nth", "row"))
    return found.where(F.col("nth").isNotNull()).select(*where, "body", "row.*")


def suspects(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """Records that controller.wire must look at: those ``refused`` here, and all facts and ticks.

    ``value`` is null where the record is too large to look at.
    """
    fits = F.length("value") <= options.max_record_bytes
    return (
        _judged(records, options)
        .where(F.col("r.suspect"))
        .select(
            "source",
            "partition",
            "offset",
            "file",
            "append_time",
            F.col("r.refused").alias("refused"),
            F.when(fits, F.col("value")).alias("value"),
            F.length("value").alias("size"),
            F.sha2("value", 256).alias("sha256"),
            F.substring("value", 1, KEPT_BYTES).alias("head"),
        )
    )


def _judged(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """*records* with ``r``, RECORD_ROWS."""
    made = record_rows(
        F.when(F.length("value") <= options.max_record_bytes, F.col("value")),
        F.col("source"),
        F.col("append_time"),
        cluster=options.cluster,
        period_ms=options.period_ms,
        shards=options.shards,
        limits=options.detail,
    )
    return records.select("*", made.alias("r"))
