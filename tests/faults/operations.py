"""What operators do to a site, and what happens to its log: pause, partitions added or offline, a day behind."""

import subprocess
import sys
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.faults.clock import eventually, now_ms
from tests.faults.kafka_brokers import NODE, SecondBroker
from tests.faults.site import Site

#: Partitions that are added to the metrics topic.
_ADDED = 2
#: Of a backlog of a day.
_BACKLOG_SECONDS = 900.0


class Around(Protocol):
    """What these faults need besides the site."""

    @property
    def backlog_intervals(self) -> int:
        """How many intervals a backlog has."""
        ...

    @property
    def second(self) -> SecondBroker:
        """A second Kafka broker."""
        ...


def pause_takeover(site: Site, _: object, __: int) -> float:
    """`trimtab pause`, then `kill -9` of the leader: the next one issues nothing until `trimtab resume`."""
    _trimtab(site, "pause")
    try:
        leader, at = site.leader(), now_ms()
        leader.kill()
        first = site.wait_for_decision(site.publish())
        second = site.wait_for_decision(site.publish())
        for decided in (first, second):
            assert decided.entry.controls.paused
            assert decided.entry.decision.commands == ()
    finally:
        _trimtab(site, "resume")
    site.pile_up()
    resumed = site.wait_for_decision(site.publish())
    assert not resumed.entry.controls.paused
    assert resumed.entry.decision.commands
    return (first.at_ms - at) / 1000


def added_partitions(site: Site, _: object, __: int) -> float:
    """More partitions for the metrics topic while everything runs: whatever lies in them counts."""
    topic, admin = site.kafka.metrics_topic, AdminClient({"bootstrap.servers": site.kafka.bootstrap})
    wanted = _partitions(admin, topic) + _ADDED
    at = now_ms()
    [added] = admin.create_partitions([NewPartitions(topic, wanted)]).values()
    added.result(30)
    eventually(lambda: _partitions(admin, topic) == wanted, f"{topic} has {wanted} partitions")
    decided = site.wait_for_decision(site.publish())
    again = site.wait_for_decision(site.publish())
    bundles, brokers = len(site.pulsar.cluster.bundle_loads()), len(site.pulsar.cluster.brokers)
    assert f"{bundles} bundles on {brokers} brokers" in again.entry.decision.summary
    return (decided.at_ms - at) / 1000


def offline_partition(site: Site, around: Around, __: int) -> float:
    """A partition of the dead-letter topic without a leader: intervals are decided all the same."""
    topic, admin = site.kafka.dead_letters_topic, AdminClient({"bootstrap.servers": site.kafka.bootstrap})
    if around.second.pid() is None:
        around.second.start()
    if _partitions(admin, topic) == 1:
        [added] = admin.create_partitions([NewPartitions(topic, 2, replica_assignment=[[NODE]])]).values()
        added.result(30)
    eventually(lambda: _leader(admin, topic) == NODE, "the second broker leads its partition")
    around.second.stop()
    try:
        eventually(lambda: _leader(admin, topic) == -1, "the partition is offline")
        at = now_ms()
        decided = site.wait_for_decision(site.publish())
    finally:
        around.second.start()
    eventually(lambda: _leader(admin, topic) == NODE, "the partition is online")
    return (decided.at_ms - at) / 1000


def backlog(site: Site, around: Around, _: int) -> float:
    """Intervals published while both controllers are down: all of them are decided, a few a batch."""
    site.come_to_rest()
    for service in site.controllers:
        service.pause()
    last = site.publish_many(around.backlog_intervals)
    at, batches = now_ms(), site.batches()
    for service in site.controllers:
        service.go_on()
    decided = site.wait_for_decision(last, _BACKLOG_SECONDS)
    most = site.settings.intervals.close_at_most
    assert site.batches() - batches >= around.backlog_intervals // most, f"more than {most} intervals in a batch"
    return (decided.at_ms - at) / 1000


def _trimtab(site: Site, command: str) -> None:
    words = [sys.executable, "-m", "controller.cli", command, "--conf", str(site.folder / "controller.toml")]
    done = subprocess.run([*words, "--reason", "a fault"], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def _partitions(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=30).topics[topic].partitions)


def _leader(admin: AdminClient, topic: str) -> int | None:
    """Of partition 1; None: not known now, as a broker has not heard of it yet, or ends while it is asked."""
    try:
        found = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(1)
    except KafkaException:
        return None
    return None if found is None else int(found.leader)
