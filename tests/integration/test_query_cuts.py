"""The same log decides the same, byte for byte, however the query cuts it: DESIGN, "State"."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from controller.adapters.folder.leadership import FileLeadership
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.wire.journal import encode_entry
from streaming.assembly import Assembly
from streaming.query import decision_query
from streaming.sources import folder_records
from tests.folders import entries_in, metrics_in

pytestmark = pytest.mark.integration

_START, _PERIOD, _INTERVALS = 1_735_689_600_000, 60_000, 3
_BROKER_CONF = """
loadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight
loadBalancerBrokerThresholdShedderPercentage=5
loadBalancerHistoryResourcePercentage=0.2
"""
_SETTINGS = """
cluster.name = "lab"
intervals.shards = 3
intervals.stale_after_seconds = 3_153_600_000
log.kind = "folder"
log.folder.path = "log"
election.kind = "file"
election.path = "log/election"
checkpoint.path = "checkpoint"
decisions.mode = "active"
guardrails.brokers_balance_unknown = "ignore"
"""


def write_settings(folder: Path) -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broker.conf").write_text(_BROKER_CONF)
    (folder / "trimtab.toml").write_text(_SETTINGS)
    return read_settings(folder / "trimtab.toml")


def write_log(folder: Path) -> Settings:
    """A log of a few intervals, four files each: the sweeps lie in two, the ticks of both topics in one each."""
    settings = write_settings(folder)
    cluster = ModelledCluster(ClusterShape(brokers=3, bundles=18, topics=120), seed=1, name="lab")
    metrics = metrics_in(folder / "log", cluster="lab")
    for number in range(1, _INTERVALS + 1):
        sweeps = list(cluster.sweeps(_START + number * _PERIOD))
        states = [namespace_record("lab", state) for state in cluster.changed_namespaces()]
        metrics.publish([*states, *json_records(sweeps[0])])
        metrics.publish(record for sweep in sweeps[1:] for record in json_records(sweep))
        metrics.tick(_START + number * _PERIOD, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        cluster.advance()
    return settings


@contextmanager
def shuffled(spark: SparkSession, partitions: int) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        yield
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def decide(spark: SparkSession, settings: Settings, *, files_per_trigger: int, stop_after: int | None = None) -> int:
    """Run the query over the log as it is, or until it has made *stop_after* batches; the number it made."""
    assert settings.log.folder is not None
    leader = FileLeadership(Path(settings.election.path))
    assert leader.acquire(lambda: False)
    assembly = Assembly(settings)
    sink = assembly.decision_sink(leader, assembly.control_store(), assembly.dead_letters(spark))
    made = 0

    def stopping(batch: Any, batch_id: int) -> None:
        nonlocal made
        if made == stop_after:
            raise StopHere
        sink(batch, batch_id)
        made += 1

    records = folder_records(spark, Path(settings.log.folder.path), files_per_trigger=files_per_trigger)
    query = decision_query(records, assembly.options, stopping, checkpoint=settings.checkpoint.path)
    running = query.trigger(availableNow=True).start()
    try:
        running.awaitTermination()
    except Exception:
        if made != stop_after:
            raise
    finally:
        leader.release()
    return made


class StopHere(Exception):  # noqa: N818
    """Ends a query in the middle of its log."""


def journal(settings: Settings) -> list[bytes]:
    assert settings.log.folder is not None
    return [encode_entry(entry) for entry in entries_in(Path(settings.log.folder.path))]


@pytest.fixture(scope="module")
def at_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    settings = write_log(tmp_path_factory.mktemp("at-once"))
    assert decide(spark, settings, files_per_trigger=1000) == 1
    return journal(settings)


def test_the_log_is_one_that_moves_something(at_once: list[bytes]) -> None:
    assert len(at_once) == _INTERVALS
    assert sum(entry.count(b"trimtab.unload") for entry in at_once) > 0


def test_one_file_a_batch_decides_as_all_files_at_once(
    spark: SparkSession, tmp_path: Path, at_once: list[bytes]
) -> None:
    settings = write_log(tmp_path)
    assert decide(spark, settings, files_per_trigger=1) == 4 * _INTERVALS
    assert journal(settings) == at_once


def test_two_shuffle_partitions_decide_as_one(spark: SparkSession, tmp_path: Path, at_once: list[bytes]) -> None:
    settings = write_log(tmp_path)
    with shuffled(spark, 2):
        decide(spark, settings, files_per_trigger=1000)
    assert journal(settings) == at_once


def test_stopped_in_the_middle_and_restarted_it_decides_as_if_nothing_had_happened(
    spark: SparkSession, tmp_path: Path, at_once: list[bytes]
) -> None:
    settings = write_log(tmp_path)
    decide(spark, settings, files_per_trigger=3, stop_after=2)
    assert 0 < len(journal(settings)) < _INTERVALS
    decide(spark, settings, files_per_trigger=5)
    assert journal(settings) == at_once
