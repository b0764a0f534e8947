"""Poison of every kind between good records: the real query decides every interval as if it were not there.

Each poisoned record becomes a dead letter with its reason, and a restart on the same checkpoint goes on.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from controller.adapters.folder.leadership import FileLeadership
from controller.aggregate.columns.rows import METRICS
from controller.aggregate.places import Span
from controller.model.errors import WireError
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.wire.base import encode
from controller.wire.journal import encode_entry
from controller.wire.metrics import Partitions, RosterEntry, TickRecord, decode_metric
from streaming.assembly import Assembly
from streaming.dead_letters import DeadLetters
from streaming.query import decision_query
from tests.folders import entries_in, letters_in
from tests.integration.test_query_cuts import write_settings
from tests.integration.test_rows_in_spark_and_python import BAD, SPOILT_FACTS
from tests.records import PERIOD, T, as_bytes

pytestmark = pytest.mark.integration

_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"
_MAX_BYTES = 100_000
_INTERVALS = 4


def poison() -> list[bytes]:
    """Every bad record of the readers' table, as if it were of this cluster; a name of the same length."""
    found = {**BAD, **SPOILT_FACTS}.values()
    values = [record if isinstance(record, bytes) else as_bytes(record) for record in found]
    return [value.replace(b'"demo"', b'"lab" ') for value in values]


def reasons(values: list[bytes]) -> list[str]:
    """Why controller.wire refuses those of *values* that it refuses."""
    found = []
    for value in values:
        try:
            decode_metric(value, cluster="lab", period_ms=PERIOD, append_time_ms=T, max_bytes=_MAX_BYTES)
        except WireError as error:
            found.append(error.reason)
    return found


def decided(spark: SparkSession, folder: Path, spoilt: list[bytes]) -> tuple[list[bytes], list[str]]:
    """The journal and the dead letters' reasons, with *spoilt* before the records of each interval; started anew."""
    settings = write_settings(folder)
    cluster = ModelledCluster(ClusterShape(brokers=3, bundles=18, topics=120), seed=1, name="lab")
    offset = 0
    for number in range(_INTERVALS):
        interval = T + number * PERIOD
        sweeps = list(cluster.sweeps(interval))
        good = [namespace_record("lab", state)[1] for state in cluster.changed_namespaces()]
        good += [value for sweep in sweeps for _, value in json_records(sweep)]
        roster = tuple(RosterEntry(broker=sweep.broker, sweep_id=sweep.sweep_id) for sweep in sweeps)
        tick = TickRecord(cluster="lab", interval=interval, partitions=Partitions(metrics=1, results=0), roster=roster)
        values = [(T, value) for value in spoilt] + [(interval, value) for value in [*good, encode(tick)]]
        data = [(METRICS, 0, offset + i, "", appended, value) for i, (appended, value) in enumerate(values)]
        offset += len(values)
        spark.createDataFrame(data, _SCHEMA).coalesce(1).write.mode("append").parquet(str(folder / "records"))
        cluster.advance()
        if number % 2:
            run(spark, folder)
    letters = [
        json.loads(line)["reason"]
        for file in sorted((folder / "log" / "dead_letters").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    assert settings.log.folder is not None
    return [encode_entry(entry) for entry in entries_in(folder / "log")], letters


def run(spark: SparkSession, folder: Path) -> None:
    """Start the query on what is there, on the folder's one checkpoint, and wait until they have read it."""
    settings = write_settings(folder)
    leader = FileLeadership(folder / "election")
    assert leader.acquire(lambda: False)
    assembly = Assembly(settings)
    decode = replace(assembly.options.decode, max_record_bytes=_MAX_BYTES)
    options = assembly.options = replace(assembly.options, files=False, decode=decode)
    records = spark.readStream.schema(_SCHEMA).parquet(str(folder / "records"))

    def again(spans: Sequence[Span]) -> DataFrame:
        found = spark.read.schema(_SCHEMA).parquet(str(folder / "records"))
        return reduce(DataFrame.union, (found.where(F.col("offset").between(span.first, span.last)) for span in spans))

    letters = DeadLetters(letters_in(folder / "log"), options.decode, {}, again)
    decisions = assembly.decision_sink(leader, assembly.control_store(), letters)
    query = decision_query(records, options, decisions, checkpoint=settings.checkpoint.path)
    query.trigger(availableNow=True).start().awaitTermination()
    leader.release()


def test_poison_of_every_kind_becomes_dead_letters_and_every_interval_is_decided_as_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    spoilt = poison()
    undisturbed, nothing = decided(spark, tmp_path / "without", [])
    assert len(undisturbed) == _INTERVALS
    assert nothing == []
    journal, letters = decided(spark, tmp_path / "with", spoilt)
    assert journal == undisturbed
    wanted = reasons(spoilt)
    assert len(wanted) > 200
    assert sorted(letters) == sorted(wanted * _INTERVALS)
