"""What reaches Python of an interval grows with brokers, bundles and shards, and not with topics."""

from dataclasses import dataclass, replace
from math import inf

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from controller.aggregate.columns.rows import METRICS, TOPICS
from controller.aggregate.shard.fold import DetailLimits
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records
from controller.wire.base import encode
from controller.wire.metrics import Partitions, RosterEntry, TickRecord
from controller.wire.packed_rows import rows_from_columns
from streaming import decode
from streaming.decode import DecodeOptions

pytestmark = pytest.mark.integration

_NOW = 1_735_689_600_000
_NONE_NEAR = DetailLimits(topics=inf, sessions=inf, msg_rate=inf, throughput=inf)
_OPTIONS = DecodeOptions(cluster="lab", period_ms=60_000, max_record_bytes=1 << 23, shards=4, detail=_NONE_NEAR)
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"


@dataclass(frozen=True)
class Reached:
    rows: int
    size: int


def table(spark: SparkSession, options: DecodeOptions, *, brokers: int, bundles: int, topics: int) -> pa.Table:
    """The columns that the stateful operator hands to Python for one interval, all shards together."""
    shape = ClusterShape(brokers=brokers, empty_brokers=0, bundles=bundles, topics=topics)
    sweeps = list(ModelledCluster(shape, seed=1, name="lab").sweeps(_NOW))
    roster = tuple(RosterEntry(broker=sweep.broker, sweep_id=sweep.sweep_id) for sweep in sweeps)
    last = encode(TickRecord(cluster="lab", interval=_NOW, partitions=Partitions(metrics=1, results=1), roster=roster))
    values = [*(value for sweep in sweeps for _, value in json_records(sweep)), last]
    data = [(METRICS, 0, offset, "", _NOW, value) for offset, value in enumerate(values)]
    return decode.rows(spark.createDataFrame(data, _SCHEMA).coalesce(1), options).toArrow()


def reached(spark: SparkSession, options: DecodeOptions = _OPTIONS, **shape: int) -> Reached:
    found = table(spark, options, **shape)
    return Reached(found.num_rows, found.nbytes)


@pytest.fixture(scope="module")
def usual(spark: SparkSession) -> Reached:
    return reached(spark, brokers=6, bundles=192, topics=2_000)


def most_rows(brokers: int, shards: int) -> int:
    """One a sweep, one a tick and shard, and one for a broker's bundles in a shard."""
    return brokers + shards + brokers * shards


def test_a_row_a_broker_and_shard_a_broker_and_a_shard(usual: Reached) -> None:
    assert 6 + 4 < usual.rows <= most_rows(6, 4)


def test_ten_times_the_topics_of_the_same_bundles_are_the_same_rows_and_bytes(
    spark: SparkSession, usual: Reached
) -> None:
    more = reached(spark, brokers=6, bundles=192, topics=20_000)
    assert more.rows == usual.rows
    assert more.size == pytest.approx(usual.size, rel=0.02)


def test_rows_grow_with_brokers_and_shards_and_bytes_with_bundles(spark: SparkSession, usual: Reached) -> None:
    more_bundles = reached(spark, brokers=6, bundles=384, topics=2_000)
    assert more_bundles.rows <= most_rows(6, 4)
    # A name, seven numbers of eight bytes.
    assert 192 * 7 * 8 < more_bundles.size - usual.size < 2 * 192 * 7 * 8
    assert reached(spark, brokers=12, bundles=384, topics=2_000).rows <= most_rows(12, 4)
    assert reached(spark, replace(_OPTIONS, shards=2), brokers=6, bundles=192, topics=2_000).rows <= most_rows(6, 2)


def test_topics_come_one_by_one_only_for_bundles_near_a_split(spark: SparkSession, usual: Reached) -> None:
    """20,000 topics are about 104 a bundle; some have a few more."""
    some_near = replace(_OPTIONS, detail=replace(_NONE_NEAR, topics=105))
    found = table(spark, some_near, brokers=6, bundles=192, topics=20_000)
    columns = {str(name): column.to_numpy() for name, column in found.to_pandas().items()}
    rows = rows_from_columns(columns, cluster="lab", period_ms=60_000, files=False)
    sizes, topics = rows.detail_size.tolist(), rows.stats[:, TOPICS].tolist()
    assert sizes == [count if count >= 105 else 0 for count in topics]
    assert 0 < sum(sizes) < 20_000
    # A place on the ring, the scalable topic that it is a segment of, and four rates, of eight bytes each.
    assert found.nbytes == pytest.approx(usual.size + sum(sizes) * 6 * 8, rel=0.1)
