"""The doctor's findings about the log, the election and the flow of metrics."""

from dataclasses import replace
from typing import Any

import pytest

from controller.doctor.checks import judge
from controller.doctor.facts import FolderFacts, MeasuredClock
from tests.doctor import JOURNAL, NOW, facts, kafka, kafka_log, only, problems, settings, topic, zookeeper


def config(key: str, value: str, base: Any = None) -> Any:
    there = base or topic()
    return replace(there, config={**there.config, key: value})


def test_kafka_that_does_not_answer_is_one_finding() -> None:
    found = only(kafka=kafka(error="Kafka at kafka:9092 does not answer"))
    assert (found.code, found.severity, found.objects) == ("kafka-unreachable", "error", ("kafka:9092",))


@pytest.mark.parametrize("name", ["metrics", "results", "commands", "journal", "dead-letters", "summaries"])
def test_a_topic_that_does_not_exist_is_named_with_the_command_that_creates_it(name: str) -> None:
    found = only(kafka=kafka(**{name: None}))
    assert (found.code, found.severity, found.objects) == ("topic-missing", "warning", (f"trimtab-{name}",))
    partitions = 1 if name in ("journal", "dead-letters", "summaries") else 4
    assert f"--create --topic trimtab-{name} --partitions {partitions} " in found.advice


def test_a_journal_of_several_partitions_is_an_error() -> None:
    found = only(kafka=kafka(journal=replace(JOURNAL, partitions=3)))
    assert (found.code, found.severity, found.objects) == ("topic-partitions", "error", ("trimtab-journal",))


def test_results_need_the_partitions_of_the_commands_and_may_have_more() -> None:
    found = only(kafka=kafka(results=topic(2)))
    assert (found.code, found.severity, found.objects) == ("topic-partitions", "error", ("trimtab-results",))
    assert "--alter --topic trimtab-results --partitions 4" in found.advice
    assert not problems(kafka=kafka(results=topic(8)))


@pytest.mark.parametrize(
    ("name", "retention_ms", "severity"),
    [
        ("journal", 3_600_000, "error"),
        ("journal", 30 * 86_400_000, "warning"),
        ("metrics", 600_000, "error"),
        ("metrics", 3_600_000, "warning"),
        ("results", 300_000, "error"),
        ("commands", 60_000, "error"),
    ],
)
def test_too_short_retention_is_reported_with_the_command_that_corrects_it(
    name: str, retention_ms: int, severity: str
) -> None:
    spoilt = config("retention.ms", str(retention_ms), JOURNAL if name == "journal" else None)
    found = only(kafka=kafka(**{name: spoilt}))
    assert (found.code, found.severity, found.objects) == ("retention-too-short", severity, (f"trimtab-{name}",))
    assert f"--entity-name trimtab-{name} --add-config retention.ms=" in found.advice


def test_metrics_are_kept_as_far_as_a_controller_without_a_checkpoint_reads_back() -> None:
    reaches_back = settings(log={"kind": "kafka", "kafka": {"bootstrap": "kafka:9092", "start_at": "7d"}})
    two_days = config("retention.ms", str(2 * 86_400_000))
    assert not problems(settings=reaches_back)
    found = only(settings=reaches_back, kafka=kafka(log=kafka_log(reaches_back), metrics=two_days))
    assert (found.code, found.severity, found.objects) == ("retention-too-short", "warning", ("trimtab-metrics",))
    assert found.advice.endswith(f"retention.ms={7 * 86_400_000}")
    assert not problems(kafka=kafka(metrics=two_days))


def test_retention_without_limit_is_enough_for_all() -> None:
    forever = config("retention.ms", "-1")
    assert not problems(kafka=kafka(metrics=forever, results=forever, commands=forever))


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("name", ["metrics", "journal"])
def test_compaction_loses_records_that_count(name: str, policy: str) -> None:
    found = only(kafka=kafka(**{name: config("cleanup.policy", policy, JOURNAL if name == "journal" else None)}))
    assert (found.code, found.severity) == ("cleanup-policy", "error")


@pytest.mark.parametrize("name", ["metrics", "results"])
def test_timestamps_by_the_writers_are_refused(name: str) -> None:
    found = only(kafka=kafka(**{name: config("message.timestamp.type", "CreateTime")}))
    assert (found.code, found.severity) == ("timestamp-type", "error")
    assert found.advice.endswith("message.timestamp.type=LogAppendTime")


def test_topics_that_are_too_small_for_a_record() -> None:
    for name, base in (("metrics", None), ("journal", JOURNAL)):
        found = only(kafka=kafka(**{name: config("max.message.bytes", "100000", base)}))
        assert (found.code, found.severity, found.objects) == ("max-message-bytes", "error", (f"trimtab-{name}",))
        assert not problems(kafka=kafka(**{name: config("max.message.bytes", "1048588", base)}))


def test_a_summary_topic_that_is_too_small_for_a_summary_costs_pictures() -> None:
    found = only(kafka=kafka(summaries=config("max.message.bytes", "100000")))
    assert (found.code, found.severity, found.objects) == ("max-message-bytes", "warning", ("trimtab-summaries",))
    assert found.advice.endswith("max.message.bytes=1000000")
    assert not problems(kafka=kafka(summaries=config("max.message.bytes", "1048588")))


@pytest.mark.parametrize("name", ["metrics", "results", "commands", "journal"])
def test_topics_whose_batches_may_be_longer_than_what_is_read(name: str) -> None:
    base = JOURNAL if name == "journal" else None
    found = only(kafka=kafka(**{name: config("max.message.bytes", "104857600", base)}))
    assert (found.code, found.severity, found.objects) == ("max-message-bytes", "error", (f"trimtab-{name}",))
    assert found.advice.endswith("max.message.bytes=16777216")
    assert not problems(kafka=kafka(**{name: config("max.message.bytes", "16777216", base)}))


@pytest.mark.parametrize("codec", ["producer", "gzip", "snappy", "lz4"])
def test_topics_whose_batches_unpack_to_any_size(codec: str) -> None:
    found = only(kafka=kafka(commands=config("compression.type", codec)))
    assert (found.code, found.severity, found.objects) == ("compression-type", "warning", ("trimtab-commands",))
    assert found.advice.endswith("compression.type=zstd")


@pytest.mark.parametrize("codec", ["zstd", "uncompressed"])
def test_topics_whose_batches_are_limited_are_no_finding(codec: str) -> None:
    assert not problems(kafka=kafka(journal=config("compression.type", codec, JOURNAL)))


def test_topics_with_a_single_replica_are_one_finding() -> None:
    found = only(kafka=kafka(metrics=topic(replication=1), results=topic(replication=1)))
    assert (found.code, found.severity) == ("replication-factor", "warning")
    assert found.objects == ("trimtab-metrics", "trimtab-results")


@pytest.mark.parametrize(("given", "why"), [("1", "are lost with a broker"), ("3", "no broker may be down")])
def test_too_few_or_too_many_copies_in_sync_are_told_with_the_command_that_changes_it(given: str, why: str) -> None:
    found = only(kafka=kafka(journal=config("min.insync.replicas", given, JOURNAL)))
    assert (found.code, found.severity, found.objects) == ("min-insync-replicas", "warning", ("trimtab-journal",))
    assert why in found.observed
    assert found.advice.endswith("--entity-name trimtab-journal --add-config min.insync.replicas=2")


def test_settings_of_topics_that_may_not_be_read_are_not_judged() -> None:
    bare = {name: replace(each, config={}) for name, each in kafka().topics.items()}
    found = only(kafka=kafka(topics=bare, config_error="not authorised"))
    assert (found.code, found.severity) == ("topic-config-unknown", "warning")


def test_kafkas_clock_is_compared_with_ours() -> None:
    found = only(kafka=kafka(clock=MeasuredClock(ahead_ms=-40_000, give_or_take_ms=20)))
    assert (found.code, found.severity, found.objects) == ("clock-skew", "error", ("kafka:9092",))
    assert "Kafka's append time is 40.0 s behind ours" in found.observed


def test_a_log_that_cannot_be_written_to_is_told() -> None:
    assert only(kafka=kafka(clock=None, clock_error="not authorised")).code == "kafka-not-writable"


def test_a_zookeeper_that_does_not_answer_is_an_error() -> None:
    found = only(zookeeper=zookeeper(error="ZooKeeper at zk:2181 does not answer"))
    assert (found.code, found.severity, found.objects) == ("zookeeper-unreachable", "error", ("zk:2181",))


@pytest.mark.parametrize(("granted_ms", "bound"), [(40_000, "minSessionTimeout"), (4_000, "maxSessionTimeout")])
def test_a_session_timeout_that_the_server_changes_is_told(granted_ms: int, bound: str) -> None:
    found = only(zookeeper=zookeeper(granted_ms=granted_ms))
    assert (found.code, found.severity) == ("session-timeout", "warning")
    assert bound in found.advice
    assert f"session_timeout_seconds = {granted_ms // 1000}" in found.advice


def test_a_folder_that_cannot_be_written_to_is_an_error_and_the_others_are_fine() -> None:
    folders = (FolderFacts(purpose="log", path="/log", problem="read-only"), FolderFacts(purpose="x", path="/x"))
    found = only(folders=folders)
    assert (found.code, found.severity, found.objects) == ("folder-not-writable", "error", ("/log",))
    assert any(each.code == "folders" and each.objects == ("/x",) for each in judge(facts(folders=folders)))


@pytest.mark.parametrize(("age_s", "severity"), [(200, "warning"), (301, "error")])
def test_ticks_that_stopped_are_told_and_an_error_once_they_are_too_old_to_act_on(age_s: int, severity: str) -> None:
    found = only(last_tick=NOW - age_s * 1000)
    assert (found.code, found.severity) == ("metrics-not-flowing", severity)
    assert f"{age_s} s old" in found.observed


def test_a_log_that_was_never_ticked_is_a_warning() -> None:
    found = only(last_tick=None)
    assert (found.code, found.severity) == ("metrics-not-flowing", "warning")
    assert "trimtab collect" in found.advice


def test_ticks_that_could_not_be_read_are_unknown() -> None:
    assert only(last_tick=None, last_tick_error="topic gone").code == "metrics-unknown"
