"""A controller that finds a day of backlog in a real Kafka decides all of it, a few intervals in each batch."""

import logging
import re
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.adapters.kafka.specs import create_topics
from controller.adapters.kafka.writer import Producer
from controller.lab.servers import KafkaServer
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records
from controller.wire.readable import utc
from tests.controllers import run_until
from tests.kafka_log import as_toml, named_topics, read_journal
from tests.records import as_bytes, tick

pytestmark = pytest.mark.integration

_PERIOD, _INTERVALS, _PARTITIONS = 600_000, 144, 2
_AT_MOST = 20
#: Its own: whoever writes the journal of a cluster in the shared Kafka fences others off.
_CLUSTER = "behind"
_COUNTS = {"metrics": _PARTITIONS, "results": _PARTITIONS}


def publish_a_day(log: KafkaLogSettings) -> list[int]:
    """A day up to now, all of it appended now; returns its intervals."""
    create_topics(log)
    cluster = ModelledCluster(ClusterShape(brokers=2, empty_brokers=0, bundles=4, topics=8), seed=1, name=_CLUSTER)
    producer = Producer(log.bootstrap)
    last = int(time.time() * 1000) // _PERIOD * _PERIOD
    intervals = [last - n * _PERIOD for n in reversed(range(_INTERVALS))]
    for interval in intervals:
        sweeps = list(cluster.sweeps(interval))
        for key, value in (record for sweep in sweeps for record in json_records(sweep)):
            producer.send(log.metrics_topic, value, key=key.encode())
        roster = [{"broker": sweep.broker, "sweepId": sweep.sweep_id} for sweep in sweeps]
        for topic in (log.results_topic, log.metrics_topic):
            for partition in range(_PARTITIONS):
                first = (topic, partition) == (log.metrics_topic, 0)
                record = tick(interval, cluster=_CLUSTER, partitions=_COUNTS, roster=roster if first else None)
                producer.send(topic, as_bytes(record), partition=partition)
    producer.flush()
    return intervals


@pytest.fixture
def conf(tmp_path: Path, kafka: KafkaServer) -> Path:
    (tmp_path / "broker.conf").write_text("")
    file = tmp_path / "trimtab.toml"
    file.write_text(
        f"""
        [cluster]
        name = "{_CLUSTER}"
        [intervals]
        period_seconds = 600
        shards = 2
        stalled_after_seconds = 1200
        close_at_most = {_AT_MOST}
        stale_after_seconds = 3_153_600_000
        [checkpoint]
        path = "checkpoint"
        [log]
        kind = "kafka"
        [log.kafka]
        {as_toml(named_topics(kafka.bootstrap, _PARTITIONS))}
        [election]
        kind = "file"
        path = "election"
        """
    )
    return file


def test_a_day_of_backlog_is_decided_a_few_intervals_at_a_time(
    conf: Path, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    settings = read_settings(conf)
    assert settings.log.kafka is not None
    intervals = publish_a_day(settings.log.kafka)
    with caplog.at_level(logging.INFO):
        run_until(lambda: f"interval {utc(intervals[-1])}:" in caplog.text, settings, spark)
    assert re.search(rf"catching up on {_INTERVALS} intervals, with \d+ records a batch", caplog.text)
    assert [entry.interval for entry in read_journal(settings.log.kafka, cluster=_CLUSTER)] == intervals
    batches = [int(path.name) for path in (tmp_path / "checkpoint/decisions-s2/commits").glob("[0-9]*")]
    # Four fifths of what a batch may close are read in one; one that closed more would leave fewer batches.
    assert max(batches) + 1 >= _INTERVALS / _AT_MOST
