"""Where records come from: ``source, partition, offset, file, append_time (ms), value (bytes)``."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from controller.adapters.kafka.java_options import java_options
from controller.aggregate.rows import METRICS, RESULTS
from controller.settings.log import KafkaLogSettings

_FILES = "path string, modificationTime timestamp, length long, content binary"
#: One character a byte, so that a line is cut out of a file as the bytes it was.
_BYTES = "ISO-8859-1"
#: So many files of a folder log are read in one micro-batch at most.
FILES_PER_TRIGGER = 1_000


def kafka_options(log: KafkaLogSettings) -> dict[str, str]:
    """Options of Spark's Kafka source for the metrics and result topics."""
    return {
        "kafka.bootstrap.servers": log.bootstrap,
        "subscribe": f"{log.metrics_topic},{log.results_topic}",
        # A gap is seen by its missing ticks, and journalled; stopping would not bring the records back.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        # A batch ends at the log's end and would otherwise wait there for most of a second.
        "kafka.fetch.max.wait.ms": "20",
        "kafka.max.partition.fetch.bytes": str(16 << 20),
        **{f"kafka.{name}": value for name, value in java_options(log.client).items()},
    }


def start_options(log: KafkaLogSettings, now_ms: int) -> dict[str, str]:
    """Where a query without a checkpoint begins; Spark does not look at these where there is one."""
    since = log.start_ms(now_ms)
    if since is None:
        return {"startingOffsets": log.start_at}
    # A partition without a record since then begins at its end.
    return {"startingTimestamp": str(since), "startingOffsetsByTimestampStrategy": "latest"}


def kafka_records(spark: SparkSession, log: KafkaLogSettings, *, max_offsets: int, now_ms: int) -> DataFrame:
    """The records of the metrics and the result topic, as a stream that begins where ``start_at`` says."""
    reader = spark.readStream.format("kafka").options(**kafka_options(log), **start_options(log, now_ms))
    return located(reader.option("maxOffsetsPerTrigger", max_offsets).load(), log.results_topic)


def peek(spark: SparkSession, log: KafkaLogSettings) -> None:
    """Read a record or two of the log and forget them, so that Spark has met this Kafka."""
    spark.read.format("kafka").options(**kafka_options(log)).load().limit(2).collect()


def located(records: DataFrame, results_topic: str) -> DataFrame:
    """What Spark's Kafka source gives, batch or stream, under our names."""
    return records.select(
        F.when(F.col("topic") == results_topic, RESULTS).otherwise(METRICS).alias("source"),
        "partition",
        "offset",
        F.lit("").alias("file"),
        F.unix_millis("timestamp").alias("append_time"),
        # A record without a value is an empty one, and refused as such.
        F.coalesce("value", F.lit(b"")).alias("value"),
    )


def folder_records(spark: SparkSession, folder: Path, *, files_per_trigger: int = FILES_PER_TRIGGER) -> DataFrame:
    """The lines of a folder log, as a stream: metrics/ and results/ are one partition each."""
    reader = spark.readStream.format("binaryFile").schema(_FILES).option("maxFilesPerTrigger", files_per_trigger)
    files = reader.load(f"{folder}/{{metrics,results}}/*.jsonl")
    lines = files.select(
        "path",
        F.unix_millis("modificationTime").alias("append_time"),
        F.posexplode_outer(F.split(F.decode("content", _BYTES), "\n")).alias("offset", "line"),
    ).where(F.length("line") > 0)
    return lines.select(
        F.when(F.col("path").rlike("/results/[^/]+$"), RESULTS).otherwise(METRICS).alias("source"),
        F.lit(0).alias("partition"),
        F.col("offset").cast("long").alias("offset"),
        F.regexp_extract("path", "[^/]+$", 0).alias("file"),
        "append_time",
        F.encode("line", _BYTES).alias("value"),
    )
