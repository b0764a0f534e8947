"""The doctor on a real Kafka and a real ZooKeeper with faults in them; `status` and `lookup` read the same log."""

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer
from typer.testing import CliRunner

from controller.adapters.kafka.specs import create_topics
from controller.adapters.kafka.topics import TopicSpec, ensure_topics
from controller.cli.lookup import lookup
from controller.cli.status import status
from controller.doctor.before_acting import refuse_producers_clocks
from controller.doctor.checks import judge
from controller.doctor.finding import Finding
from controller.doctor.gather import TimeLimits, gather
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.kafka.log import KafkaLog
from controller.log.tail import newest_first
from controller.model.errors import SettingsError
from controller.model.names import topic_hash
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings
from tests.journal_entries import UNLOAD, entry
from tests.kafka_log import journal_in, metrics_in, read_all
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T, as_bytes, broker_sweep, bundle_stats, namespace_state, result

pytestmark = pytest.mark.integration

TOPIC = "persistent://tenant/ns/orders"
HERE = LEFT if topic_hash(TOPIC) < 0x80000000 else RIGHT


def settings(kafka: str, zookeeper: str, prefix: str, **election: Any) -> Settings:
    names = {f"{name}_topic": f"{prefix}-{name}" for name in ("metrics", "results", "commands", "journal", "summaries")}
    return Settings.model_validate(
        {
            "cluster": {"name": CLUSTER},
            "log": {
                "kind": "kafka",
                "kafka": {"bootstrap": kafka, "partitions": 2, "dead_letters_topic": f"{prefix}-dead", **names},
            },
            "election": {"kind": "zookeeper", "hosts": zookeeper, "path": "/trimtab", **election},
            "checkpoint": {"path": "hdfs://checkpoint"},
            "journal": {"verdicts_path": "/verdicts"},
        }
    )


def log_of(settings: Settings) -> KafkaLogSettings:
    assert settings.log.kafka is not None
    return settings.log.kafka


def found(settings: Settings) -> dict[str, Finding]:
    """By code and topic, without what follows from the test's own set-up."""
    usual = {"pulsar-not-configured", "replication-factor", "metrics-not-flowing", "kafka-open", "zookeeper-open"}
    usual.add("broker-conf")  # there is none
    sick = [each for each in judge(gather(settings)) if each.severity != "ok" and each.code not in usual]
    return {f"{each.code} {each.objects[0].rpartition('-')[2]}": each for each in sick}


def test_what_trimtab_created_itself_is_fine_and_its_clock_is_ours(
    kafka: KafkaServer, zookeeper: ZooKeeperServer
) -> None:
    ours = settings(kafka.bootstrap, zookeeper.hosts, f"fine-{uuid4().hex[:8]}")
    assert set(found(ours)) == {
        f"topic-missing {name}" for name in ("metrics", "results", "commands", "journal", "dead", "summaries")
    }
    create_topics(log_of(ours))
    metrics_in(log_of(ours), cluster=CLUSTER).tick(now_ms() // PERIOD * PERIOD, {})
    assert found(ours) == {}
    facts = gather(ours)
    # These servers let everybody in.
    assert {"kafka-open", "zookeeper-open"} <= {each.code for each in judge(facts)}
    assert facts.kafka is not None
    assert facts.kafka.clock is not None
    assert abs(facts.kafka.clock.ahead_ms) < 1_000
    assert facts.zookeeper is not None
    assert facts.zookeeper.granted_ms == 10_000
    assert facts.last_tick == now_ms() // PERIOD * PERIOD or facts.last_tick == (now_ms() // PERIOD - 1) * PERIOD
    assert {each.severity for each in judge(facts) if each.code == "metrics-flow"} == {"ok"}
    # The probe of the clock was aborted: nobody reads it.
    assert list(read_all(kafka.bootstrap, log_of(ours).dead_letters_topic, 0)) == []


def test_topics_that_somebody_else_created_are_told_with_every_fault(
    kafka: KafkaServer, zookeeper: ZooKeeperServer
) -> None:
    prefix = f"sick-{uuid4().hex[:8]}"
    forever = {"retention.ms": "-1", "max.message.bytes": "12582912"}
    ensure_topics(
        kafka.bootstrap,
        [
            TopicSpec(name=f"{prefix}-metrics", partitions=2, config={"message.timestamp.type": "CreateTime"}),
            TopicSpec(name=f"{prefix}-results", partitions=1, config={"retention.ms": "60000"}),
            TopicSpec(name=f"{prefix}-commands", partitions=2, config={"cleanup.policy": "compact"}),
            TopicSpec(name=f"{prefix}-journal", partitions=2, config={**forever, "retention.ms": "3600000"}),
        ],
    )
    sick = found(settings(kafka.bootstrap, zookeeper.hosts, prefix))
    assert {code: each.severity for code, each in sick.items()} == {
        "topic-missing dead": "warning",
        "topic-missing summaries": "warning",
        "topic-partitions results": "error",
        "topic-partitions journal": "error",
        "retention-too-short results": "error",
        "retention-too-short journal": "error",
        "cleanup-policy commands": "error",
        "timestamp-type metrics": "error",
        **{f"compression-type {each}": "warning" for each in ("metrics", "results", "commands", "journal")},
    }


def test_a_session_timeout_beyond_the_servers_bounds_is_told(kafka: KafkaServer, zookeeper: ZooKeeperServer) -> None:
    ours = settings(kafka.bootstrap, zookeeper.hosts, "none", session_timeout_seconds=3_600)
    seen = next(each for each in judge(gather(ours)) if each.code == "session-timeout")
    assert "instead of the requested 3600 s" in seen.observed


def test_servers_that_are_not_there_are_findings_within_the_time_that_was_given() -> None:
    began = time.monotonic()
    findings = judge(gather(settings("127.0.0.1:1", "127.0.0.1:1", "none"), TimeLimits(answer=1, brokers=2, all=3)))
    assert time.monotonic() - began < 15
    assert {"kafka-unreachable", "zookeeper-unreachable"} <= {
        each.code for each in findings if each.severity == "error"
    }


def test_status_and_lookup_read_a_log_in_kafka(kafka: KafkaServer, tmp_path: Path) -> None:
    prefix = f"read-{uuid4().hex[:8]}"
    ours = settings(kafka.bootstrap, "zookeeper:2181", prefix)
    log = metrics_in(log_of(ours), cluster=CLUSTER)
    names = ("one:8080", "two:8080")
    for interval, owner in ((T, 0), (T + PERIOD, 1)):
        log.publish([("tenant/ns", as_bytes(namespace_state()))])
        for nth, name in enumerate(names):
            stats = [bundle_stats(HERE)] if nth == owner else []
            rate = 30 if nth == owner else 10
            sweep = broker_sweep(
                name, interval=interval, sweepId=f"{name}@{interval}", bundleStats=stats, msgRateIn=rate, msgRateOut=0
            )
            log.publish([(name, as_bytes(sweep))])
        log.results([("tenant/ns", as_bytes(result(id=UNLOAD.id, status="done")))] if owner else [])
        log.tick(interval, {name: f"{name}@{interval}" for name in names})
    journal = journal_in(log_of(ours), cluster=CLUSTER)
    journal.open()
    journal.begin_epoch(7)
    command = replace(UNLOAD, bundle=HERE)
    journal.append(entry(T, command), epoch=7, issued_at_ms=T, before_commit=lambda: None)
    journal.append(entry(T + PERIOD), epoch=7, issued_at_ms=T, before_commit=lambda: None)

    (tmp_path / "broker.conf").write_text("", encoding="utf-8")
    conf = tmp_path / "trimtab.toml"
    topics = "\n".join(f'{name}_topic = "{prefix}-{name}"' for name in ("metrics", "results", "commands", "journal"))
    conf.write_text(
        f"""cluster.name = "{CLUSTER}"
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
[log]
kind = "kafka"
[log.kafka]
bootstrap = "{kafka.bootstrap}"
{topics}
""",
        encoding="utf-8",
    )
    place = run(lookup, TOPIC, "--conf", conf)
    assert (place["bundle"], place["owner"], place["asOf"]) == (HERE, "two:8080", T + PERIOD)
    told = run(status, "--conf", conf)
    assert (told["epoch"], told["ticked"], told["last"]["interval"]) == (7, T + PERIOD, T + PERIOD)
    assert [(each["bundle"], each["result"]["status"]) for each in told["commands"]] == [(HERE, "done")]
    assert told["imbalance"] == {"brokers": 2, "msg_rate": 1.5, "msg_throughput": 1.0, "busiest": "two:8080"}
    about = run(status, HERE, "--conf", conf)
    assert about["lastCommand"]["result"]["status"] == "done"


def test_the_newest_come_first_across_windows_and_partitions(kafka: KafkaServer) -> None:
    ours = settings(kafka.bootstrap, "zookeeper:2181", f"back-{uuid4().hex[:8]}")
    log = metrics_in(log_of(ours), cluster=CLUSTER)
    for part in range(7):  # more than a window of each partition
        log.publish([(f"key-{number}", b"%d" % number) for number in range(100 * part, 100 * part + 100)])
    with closing(KafkaLog(log_of(ours), cluster=CLUSTER)) as connected:
        read = list(newest_first(connected, "metrics"))
    assert sorted(int(record.value) for record in read) == list(range(700))
    assert [record.timestamp_ms for record in read] == sorted((record.timestamp_ms for record in read), reverse=True)
    for partition in (0, 1):
        offsets = [record.position for record in read if record.partition == partition]
        assert offsets == sorted(offsets, reverse=True)


def run(command: Any, *arguments: object) -> dict[str, Any]:
    app = typer.Typer()
    app.command()(command)
    answer = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert answer.exit_code == 0, (answer.output, answer.exception)
    fields: dict[str, Any] = json.loads(answer.stdout)
    return fields


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_log_whose_records_have_their_producers_times_is_refused(kafka: KafkaServer) -> None:
    told = settings(kafka.bootstrap, "nobody:2181", f"times-{uuid4().hex[:8]}")
    log = log_of(told)
    ensure_topics(kafka.bootstrap, [TopicSpec(name=log.metrics_topic, partitions=1)])
    refuse_producers_clocks(told)  # the other topic is not there yet
    given = {"message.timestamp.type": "CreateTime"}
    ensure_topics(kafka.bootstrap, [TopicSpec(name=log.results_topic, partitions=1, config=given)])
    with pytest.raises(
        SettingsError, match=f"{log.results_topic}: message.timestamp.type=CreateTime, wanted LogAppend"
    ):
        refuse_producers_clocks(told)
