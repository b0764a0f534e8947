"""Where records come from: ``source, partition, offset, file, append_time (ms), value (bytes)``.

From Kafka there is one column more, ``refusal``: null, or why the row stands for a batch of records that was not
unpacked; its value is the batch as it lies in the log.

``source_of`` is the one place where ``[log] kind`` says how Spark reads the log.  A new log system gets a LogSource.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, assert_never

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from controller.adapters.disk import jars
from controller.adapters.folder.line_files import files_of, warn_of_large_files
from controller.adapters.kafka.client import ANSWER_MS, PATIENCE_SECONDS
from controller.adapters.kafka.java_options import java_options, refusal
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span
from controller.log.files.tick_watch import FolderTickWatch
from controller.log.kafka.backlog import backlog, offsets_of
from controller.log.kafka.log import KafkaLog
from controller.log.ticked import LogTickWatch
from controller.model.backlog import Backlog
from controller.model.errors import TrimtabError
from controller.settings.log import KafkaLogSettings, LogInFolder, LogInKafka, LogInPulsar
from controller.settings.trimtab_toml import Settings
from streaming.batches.gate import GATED_FOLDER, GATED_KAFKA, Ticks, open_gate
from streaming.pulsar.log import PulsarSource
from streaming.schemas import REFUSAL
from streaming.spark.paths import for_spark

#: Not as text: Spark would start its parser of SQL for nothing else.
_FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)
#: One character a byte, so that a line is cut out of a file as the bytes it was.
_BYTES = "ISO-8859-1"
#: So many files of a folder log are read in one micro-batch at most.
FILES_PER_TRIGGER = 1_000
#: How Spark reads a folder.
_FOLDER = {
    "pathGlobFilter": "*.jsonl",
    # Spark never reads a file that is so much older than the newest one it has read.  Of a file whose time of
    # modification lies in the future that would be every other one, for good.
    "maxFileAge": f"{(1 << 63) - 1}ms",
    "fs.file.impl": "trimtab.FilesOfFolder",
    "fs.file.impl.disable.cache": "true",  # Hadoop would take the class that it has used before
}
#: How long Spark asks where the log ends before the query fails.
_ASK_MS: Final = 180_000
#: The set of conf/jars.lock that Spark needs to read Kafka.
CONNECTOR = "connector"
#: What stands for other characters in a path that Spark is given.
_GLOB = re.compile(r"[\\{}\[\]*?]")
_ESCAPED = r"\\\g<0>"


class LogSource(Protocol):
    """The log, as Spark reads it."""

    @property
    def files(self) -> bool:
        """Whether records lie in files.  Nobody may ever tick those again: what they hold is closed when it is read."""
        ...

    @property
    def topics(self) -> Mapping[int, str]:
        """The role of a record's source (METRICS, RESULTS) -> the topic's name; empty where there are no topics."""
        ...

    def jars(self) -> Sequence[Path]:
        """What Spark needs to read it, fetched where it is missing."""
        ...

    def records(self, spark: SparkSession, max_offsets: int, now_ms: int) -> DataFrame:
        """The records as a stream, *max_offsets* of a batch at most; without a checkpoint it begins before *now_ms*."""
        ...

    def again(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        """The records of *spans*, one for each partition or file; not a stream.  Less where Kafka has deleted some."""
        ...

    def ticks(self) -> Ticks:
        """The ticks as they come, for the gate before ``records``."""
        ...

    def open_gate(self, spark: SparkSession) -> None:
        """Let the query read everything that is in the log now."""
        ...

    def peek(self, spark: SparkSession) -> None:
        """Read a record or two and forget them, so that Spark has met this log."""
        ...

    def backlog(self, read: Callable[[], Any], now_ms: int) -> Backlog | None:
        """What lies ahead of the query; None where batches need no other limit to catch up.

        *read* looks up how far the query has come: an offset as its checkpoint has it, None where it has not begun.
        """
        ...

    def refusal(self, error: str) -> TrimtabError | None:
        """The right that is missing, where Spark's *error* says so."""
        ...


def source_of(settings: Settings) -> LogSource:
    """The source that the settings name."""
    match settings.log:
        case LogInKafka(kafka=log):
            return KafkaSource(log, settings)
        case LogInPulsar(pulsar=log):
            return PulsarSource(log, settings)
        case LogInFolder(folder=log):
            return FolderSource(Path(log.path), settings)
        case other:
            assert_never(other)


class KafkaSource:
    """LogSource of a log in Kafka."""

    files = False

    def __init__(self, log: KafkaLogSettings, settings: Settings) -> None:
        self._log, self._cluster = log, settings.cluster.name
        self._period_ms, self._threshold = settings.intervals.period_ms, settings.intervals.close_at_most
        self._batch_bytes = settings.intervals.max_batch_bytes

    @property
    def topics(self) -> Mapping[int, str]:
        """See LogSource."""
        return {METRICS: self._log.metrics_topic, RESULTS: self._log.results_topic}

    def jars(self) -> Sequence[Path]:
        """See LogSource.  Spark's Kafka connector."""
        return jars.fetch(CONNECTOR)

    def records(self, spark: SparkSession, max_offsets: int, now_ms: int) -> DataFrame:
        """See LogSource."""
        options = kafka_options(self._log, self._batch_bytes)
        return kafka_records(spark, self._log, options, max_offsets=max_offsets, now_ms=now_ms)

    def again(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        """See LogSource."""
        return kafka_records_again(spark, self._log, kafka_options(self._log, self._batch_bytes), spans)

    def ticks(self) -> Ticks:
        """See LogSource."""
        return LogTickWatch(lambda: KafkaLog(self._log, cluster=self._cluster), cluster=self._cluster)

    def open_gate(self, spark: SparkSession) -> None:
        """See LogSource."""
        open_gate(spark)

    def peek(self, spark: SparkSession) -> None:
        """See LogSource."""
        options = kafka_options(self._log, self._batch_bytes)
        spark.read.format(GATED_KAFKA).options(**options).load().limit(2).collect()

    def backlog(self, read: Callable[[], Any], now_ms: int) -> Backlog | None:
        """See LogSource."""
        cluster, period_ms, threshold = self._cluster, self._period_ms, self._threshold
        return backlog(
            self._log, cluster=cluster, period_ms=period_ms, read=offsets_of(read()), now_ms=now_ms, limit=threshold
        )

    def refusal(self, error: str) -> TrimtabError | None:
        """See LogSource."""
        return refusal(self._log.bootstrap, self._log.client, error)


class FolderSource:
    """LogSource of a log in a folder: its batches are cut by files, also when the query is far behind."""

    files = True
    topics: Mapping[int, str] = {}

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._cluster = folder, settings.cluster.name
        self._close_at_most, self._period_ms = settings.intervals.close_at_most, settings.intervals.period_ms

    def jars(self) -> Sequence[Path]:
        """See LogSource."""
        return ()

    def records(self, spark: SparkSession, max_offsets: int, now_ms: int) -> DataFrame:  # noqa: ARG002
        """See LogSource.  It begins with the first file."""
        warn_of_large_files(self._folder)
        max_files = files_of(self._folder, self._close_at_most) or FILES_PER_TRIGGER
        return folder_records(spark, self._folder, files_per_trigger=min(FILES_PER_TRIGGER, max_offsets, max_files))

    def again(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        """See LogSource."""
        return folder_records_again(spark, self._folder, spans)

    def ticks(self) -> Ticks:
        """See LogSource."""
        return FolderTickWatch(self._folder, cluster=self._cluster, period_ms=self._period_ms)

    def open_gate(self, spark: SparkSession) -> None:
        """See LogSource."""
        open_gate(spark)

    def peek(self, spark: SparkSession) -> None:
        """See LogSource.  The rehearsal has read files already."""

    def backlog(self, read: Callable[[], Any], now_ms: int) -> Backlog | None:  # noqa: ARG002
        """See LogSource."""
        return None

    def refusal(self, error: str) -> TrimtabError | None:  # noqa: ARG002
        """See LogSource."""
        return None


def kafka_options(log: KafkaLogSettings, batch_bytes: int) -> dict[str, str]:
    """Options of GATED_KAFKA for the metrics and result topics; *batch_bytes*: a batch may unpack to so many."""
    client = {"request.timeout.ms": str(ANSWER_MS), **java_options(log.client)}
    answer_ms = client["request.timeout.ms"]
    return {
        "kafka.bootstrap.servers": log.bootstrap,
        "subscribe": f"{log.metrics_topic},{log.results_topic}",
        # A gap is seen by its missing ticks, and journalled; stopping would not bring the records back.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        # A batch ends at the log's end and would otherwise wait there for most of a second.
        "kafka.fetch.max.wait.ms": "20",
        # Unpacked it is larger; a batch that is longer than this comes whole all the same.
        "kafka.max.partition.fetch.bytes": str(4 << 20),
        # Kafka's admin client waits for an answer as long as for all its attempts, whatever request.timeout.ms says:
        # a call is one attempt, and Spark makes the others, each with a new client.
        "kafka.default.api.timeout.ms": answer_ms,
        "fetchOffset.numRetries": str(max(1, _ASK_MS // int(float(answer_ms)))),
        "fetchOffset.retryIntervalMs": "100",
        "maxBatchBytes": str(batch_bytes),
        "patienceMs": str(int(PATIENCE_SECONDS * 1_000)),
        **{f"kafka.{name}": value for name, value in client.items()},
    }


def start_options(log: KafkaLogSettings, now_ms: int) -> dict[str, str]:
    """Where a query without a checkpoint begins; Spark does not look at these where there is one."""
    since = log.start_ms(now_ms)
    if since is None:
        return {"startingOffsets": log.start_at}
    # A partition without a record since then begins at its end.
    return {"startingTimestamp": str(since), "startingOffsetsByTimestampStrategy": "latest"}


def kafka_records(
    spark: SparkSession, log: KafkaLogSettings, options: Mapping[str, str], *, max_offsets: int, now_ms: int
) -> DataFrame:
    """The records of the metrics and the result topic, as a stream that begins where ``start_at`` says.

    It waits for streaming.batches.gate, but where it reads what there is and ends.
    """
    reader = spark.readStream.format(GATED_KAFKA).options(**options, **start_options(log, now_ms))
    return located(reader.option("maxOffsetsPerTrigger", max_offsets).load(), log.results_topic)


def kafka_records_again(
    spark: SparkSession, log: KafkaLogSettings, options: Mapping[str, str], spans: Sequence[Span]
) -> DataFrame:
    """The records of *spans*, one for each partition; less where Kafka has deleted some."""
    topics = {METRICS: log.metrics_topic, RESULTS: log.results_topic}
    first: dict[str, dict[str, int]] = {topics[span.source]: {} for span in spans}
    end: dict[str, dict[str, int]] = {topic: {} for topic in first}
    for span in spans:
        first[topics[span.source]][str(span.partition)] = span.first
        end[topics[span.source]][str(span.partition)] = span.last + 1
    chosen = {name: value for name, value in options.items() if name != "subscribe"} | {
        "assign": json.dumps({topic: sorted(map(int, partitions)) for topic, partitions in first.items()}),
        "startingOffsets": json.dumps(first),
        "endingOffsets": json.dumps(end),
    }
    return located(spark.read.format(GATED_KAFKA).options(**chosen).load(), log.results_topic)


def located(records: DataFrame, results_topic: str) -> DataFrame:
    """What GATED_KAFKA gives, batch or stream, under our names."""
    return records.select(
        F.when(F.col("topic") == results_topic, RESULTS).otherwise(METRICS).alias("source"),
        "partition",
        "offset",
        F.lit("").alias("file"),
        F.unix_millis("timestamp").alias("append_time"),
        # A record without a value is an empty one, and refused as such.
        F.coalesce("value", F.lit(b"")).alias("value"),
        F.col("key").cast("string").alias(REFUSAL),
    )


def folder_records(spark: SparkSession, folder: Path, *, files_per_trigger: int = FILES_PER_TRIGGER) -> DataFrame:
    """The lines of a folder log, as a stream: metrics/ and results/ are one partition each."""
    reader = spark.readStream.format(GATED_FOLDER).schema(_FILES).option("maxFilesPerTrigger", files_per_trigger)
    # The path names folders and not files: Spark lists two folders, and does not look at each file by itself.
    return _lines(reader.options(**_FOLDER).load(f"{for_spark(str(folder))}/{{metrics,results}}"))


def folder_records_again(spark: SparkSession, folder: Path, spans: Sequence[Span]) -> DataFrame:
    """The lines of the files that *spans* name, one for each file."""
    parts = {METRICS: "metrics", RESULTS: "results"}
    root = for_spark(str(folder))
    paths = [f"{root}/{parts[span.source]}/{_GLOB.sub(_ESCAPED, span.file)}" for span in spans]
    reader = spark.read.format("binaryFile").schema(_FILES)
    return _lines(reader.load(paths))


def _lines(files: DataFrame) -> DataFrame:
    """The lines of *files*, each a record.

    A record was appended when its file was modified, but never after the batch that reads it began: a wrong clock, or
    anybody, may have given the file a time of the future.  In a stream Spark keeps when a batch began in the
    checkpoint, so a batch that runs again judges as before.
    """
    appended = F.least(F.col("modificationTime"), F.current_timestamp())
    lines = files.select(
        "path",
        F.unix_millis(appended).alias("append_time"),
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
