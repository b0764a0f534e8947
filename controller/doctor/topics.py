"""Do the settings of the log's topics in Kafka keep the records safe and long enough?"""

from collections.abc import Iterator
from typing import Final

from controller.adapters.kafka.client import LARGEST_RECORD
from controller.adapters.kafka.inspect import TopicFacts
from controller.adapters.kafka.rights import topics_of
from controller.adapters.kafka.specs import LARGEST_BATCH
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, warning
from controller.settings.log import KafkaLogSettings
from controller.wire.readable import counted

_MINUTE_MS: Final = 60_000
#: A time, epoch ms, later than any start_at reaches back.
_FAR: Final = 1 << 53
_DAY_MS: Final = 24 * 60 * _MINUTE_MS
#: Chunks of sweeps, parts of journal entries, and summaries are at most 1 MB.
_RECORD_BYTES: Final = 1_000_000
#: Of compression.type: what librdkafka does not unpack beyond a limit.
_BOUNDED_CODECS: Final = ("zstd", "uncompressed")


def kafka_reachable(facts: Facts) -> Iterator[Finding]:
    """kafka-unreachable, topic-config-unknown."""
    kafka = facts.kafka
    if kafka is None:
        return
    log = kafka.log
    if kafka.error:
        yield error(
            "kafka-unreachable",
            log.bootstrap,
            observed=kafka.error,
            expected="the log's topics",
            advice="start Kafka, or correct bootstrap and client in [log.kafka]",
        )
        return
    if kafka.config_error:
        yield warning(
            "topic-config-unknown",
            log.bootstrap,
            observed=kafka.config_error,
            expected="to read the topics' settings",
            advice="allow trimtab DescribeConfigs on its topics; retention and timestamps were not checked",
        )
    yield fine("kafka-reachable", [log.bootstrap], "answers")


def topics_exist(facts: Facts) -> Iterator[Finding]:
    """topic-missing."""
    kafka = facts.kafka
    if kafka is None or kafka.error:
        return
    log = kafka.log
    for name in _names(facts):
        if name not in kafka.topics:
            partitions = log.partitions if name in (log.metrics_topic, log.results_topic, log.commands_topic) else 1
            yield warning(
                "topic-missing",
                name,
                observed="does not exist",
                expected=counted(partitions, "partition"),
                advice="nothing if trimtab may create topics: its first process creates it; otherwise"
                f" kafka-topics.sh --create --topic {name} --partitions {partitions}"
                f" --replication-factor {log.replication_factor} --config message.timestamp.type=LogAppendTime"
                f" --config compression.type=zstd --config max.message.bytes={LARGEST_BATCH}",
            )
    if all(name in kafka.topics for name in _names(facts)):
        yield fine("topics", _names(facts), "exist")


def partitions(facts: Facts) -> Iterator[Finding]:
    """topic-partitions: one for journal and election; a result's has the number of its command's."""
    for log, described in _described_topics(facts):
        commands, results = described.get(log.commands_topic), described.get(log.results_topic)
        for name, key in ((log.journal_topic, "journal_topic"), (log.election_topic, "election_topic")):
            if name in described and described[name].partitions != 1:
                yield error(
                    "topic-partitions",
                    name,
                    observed=counted(described[name].partitions, "partition"),
                    expected="1: its records must be in one order",
                    advice=f"create another topic of one partition and name it {key} in [log.kafka]",
                )
        if commands is not None and results is not None and results.partitions < commands.partitions:
            yield error(
                "topic-partitions",
                log.results_topic,
                observed=f"{counted(results.partitions, 'partition')}, {log.commands_topic} has {commands.partitions}",
                expected=f"{commands.partitions} or more",
                advice=f"kafka-topics.sh --alter --topic {log.results_topic} --partitions {commands.partitions}",
            )


def retention(facts: Facts) -> Iterator[Finding]:
    """retention-too-short, cleanup-policy."""
    intervals, decisions = facts.settings.intervals, facts.settings.decisions
    period = intervals.period_ms
    remembered = (decisions.command_ttl_seconds + decisions.executor_timeout_seconds) * 1000 + 2 * period
    forgotten = (intervals.bundle_ttl_intervals + intervals.warm_up_samples) * period
    for log, described in _described_topics(facts):
        needs = {
            # The epoch and the memory are read from the journal's last entries, however long ago they were written;
            # the controller deletes entries that it no longer needs.
            log.journal_topic: (7 * _DAY_MS, None, "the last decision with its memory"),
            # trimtab deletes what it needs no more; with a retention, pauses would end while no process runs.
            log.election_topic: (7 * _DAY_MS, None, "the controls, proposals and approvals"),
            log.metrics_topic: (
                forgotten,
                max(_DAY_MS, _reach_back(log)),
                "the records that a controller reads after an outage, or from start_at on",
            ),
            log.results_topic: (remembered, None, "which commands were carried out, so that none is twice"),
            log.commands_topic: (remembered, None, "commands until they expire"),
        }
        for name, (least, better, why) in needs.items():
            topic = described.get(name)
            if topic is None or not topic.config:
                continue
            yield from _cleanup(name, topic)
            retention_ms = int(topic.config.get("retention.ms", "-1"))
            wish = better or least
            endless = name in (log.journal_topic, log.election_topic)
            if 0 <= retention_ms < wish or (endless and retention_ms >= 0):
                yield Finding(
                    code="retention-too-short",
                    severity="error" if retention_ms < least else "warning",
                    objects=(name,),
                    observed=f"retention.ms={retention_ms} ({retention_ms / _MINUTE_MS:g} min)",
                    expected=f"{'-1' if endless else f'{wish} or more'}: {why}",
                    advice=_alter(name, "retention.ms", "-1" if endless else str(wish)),
                )


def _reach_back(log: KafkaLogSettings) -> int:
    """How far back a controller without a checkpoint begins to read, ms; 0 where that is no length of time."""
    start = log.start_ms(_FAR)
    return 0 if start is None else _FAR - start


def timestamps(facts: Facts) -> Iterator[Finding]:
    """timestamp-type: the broker's append time shows which records lie too far in the future."""
    for log, described in _described_topics(facts):
        for name in (log.metrics_topic, log.results_topic):
            kind = described[name].config.get("message.timestamp.type") if name in described else None
            if kind not in (None, "LogAppendTime"):
                yield error(
                    "timestamp-type",
                    name,
                    observed=f"message.timestamp.type={kind}",
                    expected="LogAppendTime: one clock for all records",
                    advice=_alter(name, "message.timestamp.type", "LogAppendTime"),
                )


def record_sizes(facts: Facts) -> Iterator[Finding]:
    """max-message-bytes."""
    for log, described in _described_topics(facts):
        large = (log.metrics_topic, log.journal_topic, log.summaries_topic, log.election_topic)
        for name in _names(facts):
            text = described[name].config.get("max.message.bytes") if name in described else None
            if text is None:
                continue
            if int(text) < _RECORD_BYTES and name in large:
                expected, better = f"{_RECORD_BYTES} or more", _RECORD_BYTES
            elif int(text) > LARGEST_RECORD:
                expected = (
                    f"{LARGEST_RECORD} or less: longer records are skipped, and far longer ones stop whoever reads"
                )
                better = LARGEST_RECORD
            else:
                continue
            # Without summaries decisions are the same.
            costs_pictures_only = name == log.summaries_topic and int(text) < _RECORD_BYTES
            yield Finding(
                code="max-message-bytes",
                severity="warning" if costs_pictures_only else "error",
                objects=(name,),
                observed=f"max.message.bytes={text}",
                expected=expected,
                advice=_alter(name, "max.message.bytes", str(better)),
            )


def compression(facts: Facts) -> Iterator[Finding]:
    """compression-type."""
    for _, described in _described_topics(facts):
        for name in _names(facts):
            text = described[name].config.get("compression.type") if name in described else None
            if text not in (None, *_BOUNDED_CODECS):
                yield warning(
                    "compression-type",
                    name,
                    observed=f"compression.type={text}",
                    expected="zstd: with another codec the uncompressed size of a batch has no limit, so one batch may"
                    " make collectors and executors run out of memory",
                    advice=_alter(name, "compression.type", "zstd"),
                )


def copies(facts: Facts) -> Iterator[Finding]:
    """replication-factor."""
    for _, described in _described_topics(facts):
        single = [name for name in _names(facts) if name in described and described[name].replication < 2]
        if single:
            yield warning(
                "replication-factor",
                single,
                observed="1 copy",
                expected="3 in production",
                advice="kafka-reassign-partitions.sh with more replicas; replication_factor = 3 in [log.kafka] for"
                " new topics",
            )


def copies_in_sync(facts: Facts) -> Iterator[Finding]:
    """min-insync-replicas: how many copies a record has before it is acknowledged."""
    for _, described in _described_topics(facts):
        for name in _names(facts):
            topic = described.get(name)
            text = "" if topic is None else topic.config.get("min.insync.replicas", "")
            if topic is None or not text or topic.replication < 2:
                continue
            wish, configured = topic.replication - 1, int(text)
            if configured != wish:
                why = "acknowledged records are lost with a broker" if configured < wish else "no broker may be down"
                yield warning(
                    "min-insync-replicas",
                    name,
                    observed=f"min.insync.replicas={configured} of {topic.replication} copies: {why}",
                    expected=str(wish),
                    advice=_alter(name, "min.insync.replicas", str(wish)),
                )


def _cleanup(name: str, topic: TopicFacts) -> Iterator[Finding]:
    policy = topic.config.get("cleanup.policy", "delete")
    if "compact" in policy:
        yield error(
            "cleanup-policy",
            name,
            observed=f"cleanup.policy={policy}",
            expected="delete: every record of a key is needed, not only the last",
            advice=_alter(name, "cleanup.policy", "delete"),
        )


def _alter(topic: str, key: str, value: str) -> str:
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {key}={value}"


def _names(facts: Facts) -> tuple[str, ...]:
    """The topics that these settings use."""
    kafka = facts.kafka
    return () if kafka is None else topics_of(kafka.log, election=facts.settings.elects_on_log)


def _described_topics(facts: Facts) -> Iterator[tuple[KafkaLogSettings, "dict[str, TopicFacts]"]]:
    """The log's settings and its topics as they are; nothing where Kafka did not answer."""
    kafka = facts.kafka
    if kafka is not None and not kafka.error:
        yield kafka.log, dict(kafka.topics)
