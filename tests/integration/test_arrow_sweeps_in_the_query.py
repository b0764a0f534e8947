"""Arrow sweeps through the query: the rows of their JSON form, bit for bit, and dead letters where they are spoilt."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from controller.adapters.folder.leadership import FileLeadership
from controller.aggregate.columns.rows import METRICS, REFUSED, RESULTS
from controller.aggregate.places import Span
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import KeyValue, arrow_records, json_records, namespace_record
from controller.wire.base import encode
from controller.wire.journal import encode_entry
from controller.wire.metrics import Partitions, RosterEntry, TickRecord
from controller.wire.packed_rows import rows_from_columns
from streaming.assembly import Assembly
from streaming.dead_letters import DeadLetters
from streaming.decode import DecodeOptions, rows
from streaming.query import decision_query
from tests.folders import entries_in
from tests.integration.test_query_cuts import write_settings
from tests.integration.test_rows_in_spark_and_python import Kept, plain
from tests.records import as_bytes, tick
from tests.unit.wire.test_wire_arrow import respun, with_column

pytestmark = pytest.mark.integration

Form: TypeAlias = Callable[[ModelledSweep], Iterator[KeyValue]]

_NOW, _PERIOD, _CLUSTER = 1_735_689_600_000, 60_000, "demo"
#: About half of the bundles reach one.
_LIMITS = DetailLimits(topics=9, sessions=1e9, msg_rate=1_200, throughput=1e12)
_OPTIONS = DecodeOptions(cluster=_CLUSTER, period_ms=_PERIOD, max_record_bytes=1_000_000, shards=3, detail=_LIMITS)
#: Whatever the records are that are read again.
EVERYWHERE = [Span(METRICS, 0, "", 0, 0)]
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"


def modelled() -> list[ModelledSweep]:
    return list(ModelledCluster(ClusterShape(brokers=3, bundles=24, topics=200), seed=3, name=_CLUSTER).sweeps(_NOW))


def frame(spark: SparkSession, values: list[bytes], source: int = METRICS) -> DataFrame:
    data = [(source, 0, offset, "", _NOW, value) for offset, value in enumerate(values)]
    return spark.createDataFrame(data, _SCHEMA).coalesce(1)


def read(spark: SparkSession, values: list[bytes], options: DecodeOptions) -> Any:
    found = rows(frame(spark, values), options).toPandas()
    columns = {str(name): found[name].to_numpy() for name in found.columns}
    return rows_from_columns(columns, cluster=_CLUSTER, period_ms=_PERIOD, files=False), found


def letters(spark: SparkSession, values: list[bytes], options: DecodeOptions, source: int = METRICS) -> list[str]:
    kept = Kept()
    DeadLetters(kept, options, {}, lambda _: frame(spark, values, source)).store_suspects(EVERYWHERE, 0)
    return kept.reasons


def test_arrow_and_json_give_the_same_rows_bit_for_bit(spark: SparkSession) -> None:
    sweeps = modelled()
    of_json = [value for sweep in sweeps for _, value in json_records(sweep)]
    of_arrow = [value for sweep in sweeps for _, value in arrow_records(sweep)]
    assert len(of_json) == len(of_arrow) == 3
    from_json, json_columns = read(spark, of_json, _OPTIONS)
    from_arrow, arrow_columns = read(spark, of_arrow, _OPTIONS)
    assert plain(from_arrow) == plain(from_json)
    assert 0 < len(from_json.detail_position) < 200
    shards = [
        {
            (bundle, shard)
            for names, shard in zip(found["bundles"], found["shard"], strict=True)
            for bundle in names.split("\n")
        }
        for found in (json_columns, arrow_columns)
    ]
    assert shards[0] == shards[1]
    assert {shard for _, shard in shards[0]} == {0, 1, 2}
    assert arrow_columns.columns.tolist() == json_columns.columns.tolist()


def test_chunks_that_divide_a_bundle_close_an_interval_as_the_whole_sweep_does(spark: SparkSession) -> None:
    snapshots = []
    for max_bytes in (900_000, 13_000):
        sweeps = modelled()
        values = [value for sweep in sweeps for _, value in arrow_records(sweep, max_bytes=max_bytes)]
        roster = [{"broker": sweep.broker, "sweepId": sweep.sweep_id} for sweep in sweeps]
        values.append(as_bytes(tick(_NOW, partitions={"metrics": 1, "results": 0}, roster=roster)))
        found, _ = read(spark, values, replace(_OPTIONS, shards=1))
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
    "half": (respun()[:400], "not_json: not an Arrow stream"),
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
    found = letters(spark, [*values, good, foreign], _OPTIONS)
    assert len(found) == len(_SPOILT)
    for told, (_, reason) in zip(found, _SPOILT.values(), strict=True):
        assert told.startswith(reason)
    assert set(read(spark, [*values, good, foreign], _OPTIONS)[0].offset.tolist()) == {len(values)}


def test_arrow_that_is_too_large_is_not_looked_at(spark: SparkSession) -> None:
    found = letters(spark, [respun()], replace(_OPTIONS, max_record_bytes=1000))
    assert len(found) == 1
    assert found[0].startswith("too_large: ")


def test_the_result_topic_has_no_arrow(spark: SparkSession) -> None:
    (found,) = letters(spark, [respun()], _OPTIONS, RESULTS)
    assert found.startswith("not_json: ")
    (row,) = rows(frame(spark, [respun()], RESULTS), _OPTIONS).collect()
    assert (row.kind, row.body) == (REFUSED, None)


def decided(spark: SparkSession, folder: Path, form: Form) -> list[bytes]:
    """The journal that the real query writes for a log of three intervals in *form*."""
    settings = write_settings(folder)
    cluster = ModelledCluster(ClusterShape(brokers=3, bundles=18, topics=120), seed=1, name="lab")
    offset = 0
    for interval in range(_NOW, _NOW + 3 * _PERIOD, _PERIOD):
        published = list(cluster.sweeps(interval))
        values = [namespace_record("lab", state)[1] for state in cluster.changed_namespaces()]
        values += [value for sweep in published for _, value in form(sweep)]
        roster = tuple(RosterEntry(broker=sweep.broker, sweep_id=sweep.sweep_id) for sweep in published)
        partitions = Partitions(metrics=1, results=0)
        values.append(encode(TickRecord(cluster="lab", interval=interval, partitions=partitions, roster=roster)))
        data = [(METRICS, 0, offset + i, "", interval, value) for i, value in enumerate(values)]
        offset += len(values)
        spark.createDataFrame(data, _SCHEMA).coalesce(1).write.mode("append").parquet(str(folder / "records"))
        cluster.advance()
    leader = FileLeadership(folder / "election")
    assert leader.acquire(lambda: False)
    assembly = Assembly(settings)
    options = replace(assembly.options, files=False)
    records = spark.readStream.schema(_SCHEMA).parquet(str(folder / "records"))
    sink = assembly.decision_sink(leader, assembly.control_store(), assembly.dead_letters(spark))
    query = decision_query(records, options, sink, checkpoint=settings.checkpoint.path)
    query.trigger(availableNow=True).start().awaitTermination()
    leader.release()
    return [encode_entry(entry) for entry in entries_in(folder / "log")]


def test_a_stream_of_arrow_decides_byte_for_byte_as_one_of_json(spark: SparkSession, tmp_path: Path) -> None:
    of_json = decided(spark, tmp_path / "json", json_records)
    of_arrow = decided(spark, tmp_path / "arrow", arrow_records)
    assert len(of_json) == 3
    assert b"trimtab.unload" in b"".join(of_json)
    assert of_arrow == of_json
