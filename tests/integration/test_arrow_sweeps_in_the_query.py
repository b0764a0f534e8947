"""Arrow sweeps through the query: the rows of their JSON form, bit for bit, and dead letters where they are spoilt."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from controller.aggregate.rows import METRICS, RESULTS
from controller.aggregate.shard import DetailLimits, FoldOptions, ShardState, fold
from controller.simulator.cluster import BrokerSweep, ClusterShape, ModelledCluster
from controller.simulator.encode import arrow_records, json_records
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_columns, rows_from_records
from streaming.dead_letters import DeadLetterSink
from streaming.decode import DecodeOptions, rows, suspects
from tests.integration.test_rows_in_spark_and_python import Kept, plain
from tests.records import as_bytes, tick
from tests.unit.test_wire_arrow import respun, with_column

pytestmark = pytest.mark.integration

_NOW, _PERIOD, _CLUSTER = 1_735_689_600_000, 60_000, "demo"
#: About half of the bundles reach one.
_LIMITS = DetailLimits(topics=9, sessions=1e9, msg_rate=1_200, throughput=1e12)
_JSON = DecodeOptions(cluster=_CLUSTER, period_ms=_PERIOD, max_record_bytes=1_000_000, shards=3, detail=_LIMITS)
_ARROW = replace(_JSON, sweeps="arrow")
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"


def modelled() -> list[BrokerSweep]:
    return list(ModelledCluster(ClusterShape(brokers=3, bundles=24, topics=200), seed=3, name=_CLUSTER).sweeps(_NOW))


def frame(spark: SparkSession, values: list[bytes], source: int = METRICS) -> DataFrame:
    data = [(source, 0, offset, "", _NOW, value) for offset, value in enumerate(values)]
    return spark.createDataFrame(data, _SCHEMA).coalesce(1)


def read(spark: SparkSession, values: list[bytes], options: DecodeOptions) -> Any:
    found = rows(frame(spark, values), options).toPandas()
    columns = {str(name): found[name].to_numpy() for name in found.columns}
    return rows_from_columns(columns, cluster=_CLUSTER, period_ms=_PERIOD, files=False), found


def located(values: list[bytes]) -> Iterator[Located]:
    for offset, value in enumerate(values):
        record = decode_metric(value, cluster=_CLUSTER, period_ms=_PERIOD)
        yield Located(source=METRICS, partition=0, offset=offset, record=record)


def letters(spark: SparkSession, values: list[bytes], options: DecodeOptions, source: int = METRICS) -> list[str]:
    kept = Kept()
    DeadLetterSink(kept, options, {})(suspects(frame(spark, values, source), options).where(F.col("suspect")), 0)
    return kept.reasons


def test_arrow_and_json_give_the_same_rows_bit_for_bit(spark: SparkSession) -> None:
    sweeps = modelled()
    of_json = [value for sweep in sweeps for _, value in json_records(sweep)]
    of_arrow = [value for sweep in sweeps for _, value in arrow_records(sweep)]
    assert len(of_json) == len(of_arrow) == 3
    from_json, json_columns = read(spark, of_json, _JSON)
    from_arrow, arrow_columns = read(spark, of_arrow, _ARROW)
    assert plain(from_arrow) == plain(from_json)
    assert 0 < len(from_json.detail_position) < 200
    order = ["offset", "kind", "bundle"]
    shards = [columns.sort_values(order)["shard"].tolist() for columns in (json_columns, arrow_columns)]
    assert shards[0] == shards[1]
    assert set(shards[0]) == {0, 1, 2}
    assert arrow_columns.columns.tolist() == json_columns.columns.tolist()


def test_rows_of_decoded_arrow_are_those_of_the_query_and_of_json() -> None:
    for sweep in modelled():
        of_json, of_arrow = ([value for _, value in form(sweep)] for form in (json_records, arrow_records))
        in_json = plain(rows_from_records(located(of_json), _LIMITS))
        assert plain(rows_from_records(located(of_arrow), _LIMITS)) == in_json


def test_topics_out_of_order_are_added_up_in_the_order_of_their_rows() -> None:
    (value,) = (value for _, value in arrow_records(modelled()[0]))
    with pa.ipc.open_stream(value) as reader:
        batch = reader.read_next_batch()
    shuffled = np.random.default_rng(1).permutation(batch.num_rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch.take(shuffled))
    straight, turned = (rows_from_records(located([one]), _LIMITS) for one in (value, sink.getvalue().to_pybytes()))
    assert turned.bundle == straight.bundle
    assert turned.stats.tolist() == straight.stats.tolist()
    assert turned.detail_size.tolist() == straight.detail_size.tolist()
    assert set(turned.detail_position.tolist()) == set(straight.detail_position.tolist())


def test_chunks_that_divide_a_bundle_close_an_interval_as_the_whole_sweep_does(spark: SparkSession) -> None:
    snapshots = []
    for max_bytes in (900_000, 13_000):
        sweeps = modelled()
        values = [value for sweep in sweeps for _, value in arrow_records(sweep, max_bytes=max_bytes)]
        roster = [{"broker": sweep.broker, "sweepId": sweep.sweep_id} for sweep in sweeps]
        values.append(as_bytes(tick(_NOW, partitions={"metrics": 1, "results": 0}, roster=roster)))
        found, _ = read(spark, values, replace(_ARROW, shards=1))
        fold_options = FoldOptions(bundle_ttl_ms=_PERIOD, detail=_LIMITS)
        _, (snapshot,) = fold(ShardState(shard=0, shards=1), found, fold_options)
        snapshots.append((len(values), snapshot))
    (few, whole), (many, cut) = snapshots
    assert few == 4 < many
    assert cut.names == whole.names
    np.testing.assert_allclose(cut.load, whole.load, rtol=1e-9)
    assert cut.detail_size.tolist() == whole.detail_size.tolist()
    assert sum(whole.detail_size) > 0
    assert cut.detail_position.tolist() == whole.detail_position.tolist()


_SPOILT: dict[str, tuple[bytes, str]] = {
    "half": (respun()[:400], "not_json: nor an Arrow stream"),
    "misaligned": (respun(interval=_NOW + 1), "misaligned_interval: "),
    "far ahead": (respun(interval=_NOW + 2 * _PERIOD), "future_interval: "),
    "another version": (respun(v=2), "unknown_version: "),
    "a rate that is none": (respun(with_column("msgRateIn", pa.array([1.0, float("nan"), 2.0]))), "bad_value: column"),
    "an impossible bundle": (
        respun(with_column("bundle", pa.array(["x"] * 3).dictionary_encode())),
        "impossible_bundle: ",
    ),
}


def test_spoilt_arrow_becomes_dead_letters_with_their_reasons_and_no_rows(spark: SparkSession) -> None:
    values = [value for value, _ in _SPOILT.values()]
    good, foreign = respun(), respun(cluster="other")
    found = letters(spark, [*values, good, foreign], _ARROW)
    assert len(found) == len(_SPOILT)
    for told, (_, reason) in zip(found, _SPOILT.values(), strict=True):
        assert told.startswith(reason)
    assert set(read(spark, [*values, good, foreign], _ARROW)[0].offset.tolist()) == {len(values)}


def test_arrow_that_is_too_large_is_not_looked_at(spark: SparkSession) -> None:
    found = letters(spark, [respun()], replace(_ARROW, max_record_bytes=1000))
    assert len(found) == 1
    assert found[0].startswith("too_large: ")


def test_where_sweeps_are_json_an_arrow_record_is_a_dead_letter_that_names_the_setting(spark: SparkSession) -> None:
    assert letters(spark, [respun()], _JSON) == [
        'not_json: an Arrow sweep, and [log] sweeps = "json"; "arrow" reads both'
    ]
    assert len(read(spark, [respun()], _JSON)[0]) == 0


def test_the_result_topic_has_no_arrow(spark: SparkSession) -> None:
    (found,) = letters(spark, [respun()], _ARROW, RESULTS)
    assert found.startswith("not_json: ")
    assert rows(frame(spark, [respun()], RESULTS), _ARROW).count() == 0
