"""The streaming query, assembled from parts.  Nothing starts here."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.state import GroupStateTimeout

from controller.aggregate.shard.fold import FoldOptions
from streaming.decode import DecodeOptions, rows
from streaming.schemas import SHARD_OUTPUT, SHARD_STATE
from streaming.spark.paths import for_spark
from streaming.state import shard_update

BatchSink = Callable[[DataFrame, int], None]


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What the query needs to know besides its source."""

    decode: DecodeOptions
    fold: FoldOptions
    #: The source is a folder log.
    files: bool


def folded(records: DataFrame, options: QueryOptions) -> DataFrame:
    """SHARD_OUTPUT: one row a shard and closed interval, and one for each place where refused records lie.

    The columnar state is keyed by shard, never by bundle.
    """
    decode = options.decode
    update = shard_update(
        cluster=decode.cluster,
        period_ms=decode.period_ms,
        shards=decode.shards,
        files=options.files,
        options=options.fold,
    )
    return (
        rows(records, decode)
        .groupBy("shard")
        .applyInPandasWithState(
            update,
            outputStructType=SHARD_OUTPUT,
            stateStructType=SHARD_STATE,
            outputMode="update",
            timeoutConf=GroupStateTimeout.NoTimeout,
        )
    )


def decision_checkpoint(checkpoint: str, options: QueryOptions) -> str:
    """Where the query keeps its state: the number of shards is in the name, for another one must not meet it."""
    return f"{checkpoint}/decisions-s{options.decode.shards}"


def decision_query(records: DataFrame, options: QueryOptions, sink: BatchSink, *, checkpoint: str) -> DataStreamWriter:
    """The query, unstarted: the caller picks the trigger."""
    return (
        folded(records, options)
        .writeStream.queryName("trimtab-decisions")
        .outputMode("update")
        .option("checkpointLocation", for_spark(decision_checkpoint(checkpoint, options)))
        .foreachBatch(sink)
    )
