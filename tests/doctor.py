"""A healthy cluster, to be spoilt at will, for tests of the doctor."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.adapters.kafka.inspect import TopicFacts
from controller.doctor.checks import judge
from controller.doctor.facts import (
    BrokerFacts,
    Facts,
    FolderFacts,
    KafkaFacts,
    MeasuredClock,
    PulsarFacts,
    ZooKeeperFacts,
)
from controller.doctor.finding import Finding
from controller.settings.election import ElectionInZooKeeper
from controller.settings.log import KafkaLogSettings, LogInKafka
from controller.settings.trimtab_toml import Settings

NOW = 1_735_689_630_000
A, B, C = "a:8080", "b:8080", "c:8080"
OFF = {
    "clusterName": "demo",
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
}
#: Cores of 100 %, network cards in kbit/s.
LIMITS = {"cpu": 800.0, "bandwidthIn": 1e7, "bandwidthOut": 1e7}
EXACT = MeasuredClock(ahead_ms=0, give_or_take_ms=10)


def settings(**changed: Any) -> Settings:
    """On Kafka, ZooKeeper and Pulsar."""
    values: dict[str, Any] = {
        "cluster": {"name": "demo"},
        "log": {"kind": "kafka", "kafka": {"bootstrap": "kafka:9092"}},
        "election": {
            "kind": "zookeeper",
            "hosts": "zk:2181",
            "path": "/trimtab",
            "auth": {"scheme": "sasl", "user": "trimtab", "password_file": "/zookeeper.password"},
        },
        "checkpoint": {"path": "hdfs://checkpoint"},
        "journal": {"verdicts_path": "/verdicts"},
        "decisions": {"mode": "active"},
        "pulsar": {"admin_url": ["http://a:8080"]},
    }
    return Settings.model_validate({**values, **changed})


def report(limits: Mapping[str, float] = LIMITS, usage: float = 0.5) -> dict[str, Any]:
    """A load report whose usages are this share of their limits."""
    return {resource: {"usage": usage * limit, "limit": limit} for resource, limit in limits.items()}


def broker(name: str, **changed: Any) -> BrokerFacts:
    facts = BrokerFacts(name=name, version="4.0.8", clock=EXACT, settings=OFF, report=report(), report_ahead_ms=-1_000)
    return replace(facts, **changed)


def topic(partitions: int = 4, replication: int = 3, **config: str) -> TopicFacts:
    """Config in Kafka's names, with _ for a dot."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    usual = {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": "1048588",
        "compression.type": "zstd",
        "min.insync.replicas": str(max(1, replication - 1)),
    }
    return TopicFacts(partitions=partitions, replication=replication, config={**usual, **given})


JOURNAL = topic(1, retention_ms="-1")


def pulsar(*brokers: BrokerFacts, **changed: Any) -> PulsarFacts:
    """Of three healthy brokers unless others are given."""
    those = brokers or (broker(A), broker(B), broker(C))
    return replace(PulsarFacts(clusters=("demo",), brokers=those, dynamic={}), **changed)


def kafka(**changed: Any) -> KafkaFacts:
    """*changed*: fields, or topics by the last word of their names, None for one that does not exist."""
    topics: dict[str, TopicFacts | None] = {
        "metrics": topic(),
        "results": topic(),
        "commands": topic(),
        "journal": JOURNAL,
        "dead-letters": topic(1),
        "summaries": topic(1),
    }
    topics |= {key: changed.pop(key) for key in list(changed) if key in topics}
    there = {f"trimtab-{name}": facts for name, facts in topics.items() if facts is not None}
    return replace(KafkaFacts(log=kafka_log(settings()), topics=there, clock=EXACT), **changed)


def zookeeper(ours: Settings | None = None, **changed: Any) -> ZooKeeperFacts:
    """Of the election of *ours*."""
    election = (ours or settings()).election
    assert isinstance(election, ElectionInZooKeeper)
    return replace(ZooKeeperFacts(election=election, granted_ms=10_000), **changed)


def kafka_log(ours: Settings) -> KafkaLogSettings:
    """Where its log lies."""
    assert isinstance(ours.log, LogInKafka)
    return ours.log.kafka


def facts(**changed: Any) -> Facts:
    """Nothing wrong with it."""
    ours = changed.get("settings", settings())
    healthy = Facts(
        settings=ours,
        now_ms=NOW,
        pulsar=pulsar(),
        kafka=kafka(log=kafka_log(ours)),
        zookeeper=zookeeper(ours),
        folders=(FolderFacts(purpose="checkpoint", path="/checkpoint"),),
        last_tick=NOW - 30_000,
    )
    return replace(healthy, **changed)


def problems(**changed: Any) -> list[Finding]:
    """What is found where all but *changed* is well."""
    return [finding for finding in judge(facts(**changed)) if finding.severity != "ok"]


def only(**changed: Any) -> Finding:
    """The one thing that is found where all but *changed* is well."""
    (finding,) = problems(**changed)
    return finding
