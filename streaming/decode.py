"""From bytes to rows, all in the JVM: one look at each record says what it is and what is in it.

Input, from streaming.sources: ``source, partition, offset, file, append_time (ms), value (bytes)``.

    record --PartitionRows--> one row a record and shard; many topic_stats records in one row

Topics never leave the JVM one by one: of sweeps they are added up within their record, and only bundles near a split
keep them; those of topic_stats records are packed.  A refused record is refused whole; why, in words, controller.wire
finds out when it becomes a dead letter.

Cost: one look at each byte of a record; what leaves grows with bundles (and topic_stats records) in bytes, and in rows
with brokers times shards.
"""

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from controller.aggregate.shard.fold import DetailLimits
from controller.wire.dead_letter import KEPT_BYTES
from streaming.schemas import PLACED_ROW, RECORD, REFUSAL

#: What streaming/jvm/SuspectRecords.java says of a record.
_SUSPECT, _REFUSED = 1, 2
_SUSPICION: Final = "suspicion"


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
    """The records of our cluster as streaming.schemas.PLACED_ROW, in any order; refused ones as kind REFUSED."""
    spark = records.sparkSession
    java: Any = spark._jvm
    encoder = java.org.apache.spark.sql.Encoders.row(spark._jsparkSession.parseDataType(PLACED_ROW.json()))
    function = java.trimtab.PartitionRows(_reader(java, options))
    return DataFrame(records.select(*RECORD)._jdf.mapPartitions(function, encoder), spark)


def suspects(records: DataFrame, options: DecodeOptions) -> DataFrame:
    """Records that controller.wire must look at: those ``refused`` here, and all facts and ticks.

    ``value`` is null where the record is too large to look at, and ``refusal`` says why something was not unpacked.
    """
    if REFUSAL not in records.columns:
        records = records.withColumn(REFUSAL, F.lit(None).cast("string"))
    fits = F.length("value") <= options.max_record_bytes
    return (
        records.withColumn(_SUSPICION, _suspicion(records, options))
        .where((F.col(_SUSPICION) >= _SUSPECT) | F.col(REFUSAL).isNotNull())
        .select(
            "source",
            "partition",
            "offset",
            "file",
            "append_time",
            REFUSAL,
            (F.col(_SUSPICION) == _REFUSED).alias("refused"),
            F.when(fits, F.col("value")).alias("value"),
            F.length("value").alias("size"),
            F.sha2("value", 256).alias("sha256"),
            F.substring("value", 1, KEPT_BYTES).alias("head"),
        )
    )


def _suspicion(records: DataFrame, options: DecodeOptions) -> Column:
    """What SuspectRecords says of each of *records*."""
    spark = records.sparkSession
    java: Any = spark._jvm
    function = java.trimtab.SuspectRecords(_reader(java, options))
    spark._jsparkSession.udf().register(_SUSPICION, function, spark._jsparkSession.parseDataType('"integer"'))
    return F.call_function(_SUSPICION, "value", "source", "append_time")


def _reader(java: Any, options: DecodeOptions) -> Any:
    """The RecordRows of *options*, in the JVM *java*."""
    near = (options.detail.topics, options.detail.sessions, options.detail.msg_rate, options.detail.throughput)
    bytes_at_most = options.max_record_bytes
    return java.trimtab.RecordRows(options.cluster, options.period_ms, options.shards, bytes_at_most, *map(float, near))
