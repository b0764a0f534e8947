"""The query on records that lie in Parquet files, as fast as it goes: for the replay of a recording."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from controller.adapters.recordings.manifest import RecordedSettings
from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.wire.json_sweeps import RecordText
from streaming.decode import DecodeOptions
from streaming.query import QueryOptions, decision_query
from streaming.sink import snapshots_in

_COLUMNS: Final = pa.schema(
    [
        ("source", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("append_time", pa.int64()),
        ("value", pa.binary()),
    ]
)
_INT, _LONG = IntegerType(), LongType()
_SCHEMA: Final = StructType(
    [
        StructField("source", _INT),
        StructField("partition", _INT),
        StructField("offset", _LONG),
        StructField("file", StringType()),
        StructField("append_time", _LONG),
        StructField("value", BinaryType()),
    ]
)
#: In place of the time of a record that has none, as what was known before: nothing in it is of a later time.
_UNDATED: Final = 1 << 62
#: Seconds since the epoch.  Spark reads files in the order of their times: each is a second later than the one before.
_FIRST_FILE: Final = 1_000_000_000


def write_files(batches: Iterable[Sequence[RecordText]], folder: Path) -> None:
    """Write *batches*, of each of which one micro-batch is made, to *folder*."""
    folder.mkdir(parents=True)
    for number, batch in enumerate(batches):
        columns = [
            [each.source for each in batch],
            [each.partition for each in batch],
            [each.offset for each in batch],
            [""] * len(batch),
            [_UNDATED if each.append_time_ms is None else each.append_time_ms for each in batch],
            [each.whole for each in batch],
        ]
        path = folder / f"{number:06d}.parquet"
        pq.write_table(pa.table(columns, schema=_COLUMNS), path, compression="zstd", compression_level=1)
        os.utime(path, (_FIRST_FILE + number,) * 2)


def run_on_files(
    spark: SparkSession, folder: Path, options: QueryOptions, decide: Callable[[Sequence[Snapshot]], None]
) -> None:
    """Run the query on the files in *folder*/records to their end; *decide* takes the shards of one interval at a time.

    Raises what *decide* raises.
    """
    failures: list[Exception] = []

    def sink(batch: DataFrame, _: int) -> None:
        try:
            for snapshots in _by_interval(snapshots_in(batch.toArrow())):
                decide(snapshots)
        except Exception as error:
            failures.append(error)
            raise

    records: Any = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "records"))
    query = decision_query(records, options, sink, checkpoint=str(folder / "checkpoint"))
    try:
        query.trigger(availableNow=True).start().awaitTermination()
    except Exception as error:
        raise (failures[0] if failures else error) from error


def replay_options(settings: RecordedSettings, policy: Policy) -> QueryOptions:
    """What the query needs to know, from the *settings* of a recording and the *policy* that they name."""
    shards = settings.intervals.shards
    fold = settings.fold_options(policy, shards=shards)
    decode = DecodeOptions(
        cluster=policy.cluster,
        period_ms=policy.period_ms,
        max_record_bytes=settings.intervals.max_record_bytes,
        shards=shards,
        detail=fold.detail,
    )
    return QueryOptions(decode=decode, fold=fold, files=False)


def _by_interval(snapshots: Iterable[Snapshot]) -> Iterator[list[Snapshot]]:
    by_interval: dict[int, list[Snapshot]] = {}
    for snapshot in snapshots:
        by_interval.setdefault(snapshot.interval, []).append(snapshot)
    for interval in sorted(by_interval):
        yield by_interval[interval]
