"""Do the namespace and the topics of a log in Pulsar keep the records safe and long enough?"""

from collections.abc import Iterator
from typing import Final

from controller.adapters.pulsar.log.inspect import PulsarLogFacts
from controller.adapters.pulsar.log.topics import executors_control, specs, ticks_control
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, warning
from controller.wire.readable import counted

_MINUTE_MS: Final = 60_000
#: Pulsar: BacklogQuota.RetentionPolicy
_EVICTION: Final = "consumer_backlog_eviction"
_LEAST_MINUTES: Final = 24 * 60


def log_reachable(facts: Facts) -> Iterator[Finding]:
    """pulsar-log-unreachable, pulsar-log-policies-unknown."""
    log_facts = facts.pulsar_log
    if log_facts is None:
        return
    if log_facts.error:
        yield error(
            "pulsar-log-unreachable",
            log_facts.log.service_url,
            observed=log_facts.error,
            expected="the log's topics",
            advice="start the brokers, or correct service_url, admin_url and the credentials in [log.pulsar]",
        )
        return
    if log_facts.policies_error:
        yield warning(
            "pulsar-log-policies-unknown",
            log_facts.log.namespace,
            observed=log_facts.policies_error,
            expected="to read the namespace's policies",
            advice="let trimtab's role read them; deduplication, retention and time to live were not checked",
        )
    yield fine("pulsar-log-reachable", [log_facts.log.service_url], "answers")


def namespace(facts: Facts) -> Iterator[Finding]:
    """pulsar-log-namespace-missing, -deduplication, -time-to-live, -retention, and those below."""
    log_facts = _answering(facts)
    if log_facts is None:
        return
    name = log_facts.log.namespace
    if log_facts.policies is None:
        yield warning(
            "pulsar-log-namespace-missing",
            name,
            observed="does not exist",
            expected="a namespace with message deduplication",
            advice="nothing if trimtab may create namespaces: its first process creates it; otherwise see"
            " docs/pulsar_log.md",
        )
        return
    if log_facts.policies_error:
        return
    if log_facts.policies.get("deduplicationEnabled") is not True:
        yield error(
            "pulsar-log-deduplication",
            name,
            observed="message deduplication is off",
            expected="on: else a record may be written twice",
            advice=f"pulsar-admin namespaces set-deduplication {name} --enable",
        )
    if log_facts.policies.get("message_ttl_in_seconds"):
        yield error(
            "pulsar-log-time-to-live",
            name,
            observed=f"messages live for {log_facts.policies['message_ttl_in_seconds']!s:.20} s",
            expected="no time to live: it would drop waiting commands, and the journal",
            advice=f"pulsar-admin namespaces remove-message-ttl {name}",
        )
    yield from _retention(facts, log_facts)
    yield from _expiry(log_facts)
    yield from _backlog(log_facts)
    yield from _replication(log_facts)


def _expiry(log_facts: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-subscriptions-expire."""
    minutes = (log_facts.policies or {}).get("subscription_expiration_time_minutes")
    if minutes:
        yield error(
            "pulsar-log-subscriptions-expire",
            log_facts.log.namespace,
            observed=f"a subscription without a consumer is deleted after {minutes!s:.20} min",
            expected="never: trimtab-journal has no consumer, and it keeps the journal",
            advice=f"pulsar-admin namespaces set-subscription-expiration-time {log_facts.log.namespace} --time 0",
        )


def _backlog(log_facts: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-backlog-quota."""
    quotas = (log_facts.policies or {}).get("backlog_quota_map")
    for kind, quota in quotas.items() if isinstance(quotas, dict) else ():
        if isinstance(quota, dict) and quota.get("policy") == _EVICTION:
            yield error(
                "pulsar-log-backlog-quota",
                log_facts.log.namespace,
                observed=f"above its backlog quota ({kind!s:.40}) the oldest records are dropped",
                expected="no such quota: the journal is the backlog of trimtab-journal",
                advice=f"pulsar-admin namespaces remove-backlog-quota {log_facts.log.namespace} --type {kind!s:.40}",
            )


def _replication(log_facts: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-replicated."""
    clusters = (log_facts.policies or {}).get("replication_clusters")
    if isinstance(clusters, list) and len(clusters) > 1:
        yield error(
            "pulsar-log-replicated",
            log_facts.log.namespace,
            observed=f"records come from {len(clusters)} clusters: {', '.join(map(str, clusters)):.200}",
            expected="one: the controller alone writes the journal and the commands, and replication writes there, too",
            advice="name a namespace in [log.pulsar] that is not replicated, or `pulsar-admin namespaces set-clusters"
            f" {log_facts.log.namespace} --clusters` with one cluster",
        )


def _retention(facts: Facts, log_facts: PulsarLogFacts) -> Iterator[Finding]:
    policy = (log_facts.policies or {}).get("retention_policies")
    policy = policy if isinstance(policy, dict) else {}
    minutes, size = policy.get("retentionTimeInMinutes", 0), policy.get("retentionSizeInMB", 0)
    needed = max(_LEAST_MINUTES, _reach_back_minutes(log_facts, facts.now_ms))
    if not isinstance(minutes, int) or 0 <= minutes < needed or size != -1:
        yield Finding(
            code="pulsar-log-retention",
            severity="warning" if isinstance(minutes, int) and minutes > 0 else "error",
            objects=(log_facts.log.namespace,),
            observed=f"retention of {minutes!s:.20} min, {size!s:.20} MB (0: none, -1: no limit)",
            expected=f"{needed} min or more, -1 MB: the records that a controller reads after an outage",
            advice=f"pulsar-admin namespaces set-retention {log_facts.log.namespace} --time {needed}m --size -1",
        )


def log_topics(facts: Facts) -> Iterator[Finding]:
    """pulsar-log-topic-missing, pulsar-log-partitions, pulsar-log-journal-not-kept."""
    log_facts = _answering(facts)
    if log_facts is None or log_facts.policies is None:
        return
    log, partitions = log_facts.log, specs(log_facts.log)
    if not facts.settings.elects_on_log:
        del partitions[log.election_topic]
    for name in [name for name in partitions if name not in log_facts.topics]:
        yield warning(
            "pulsar-log-topic-missing",
            name,
            observed="does not exist as a partitioned topic",
            expected=counted(partitions[name], "partition"),
            advice="nothing if trimtab may create topics: its first process creates it; otherwise"
            f" pulsar-admin topics create-partitioned-topic {log.namespace}/{name} -p {partitions[name]}",
        )
    yield from _partitions(log_facts)
    if log_facts.journal_kept is False:
        yield warning(
            "pulsar-log-journal-not-kept",
            log.journal_topic,
            observed="it has no subscription trimtab-journal, so the retention deletes decisions that are still needed",
            expected="the subscription that a controller creates when it becomes the leader",
            advice="start trimtab run, and do not delete the subscription",
        )
    if all(name in log_facts.topics for name in partitions):
        yield fine("pulsar-log-topics", partitions, "exist")


def _partitions(log_facts: PulsarLogFacts) -> Iterator[Finding]:
    log = log_facts.log
    for name in (log.journal_topic, log.election_topic, ticks_control(log)):
        if log_facts.topics.get(name, 1) != 1:
            yield error(
                "pulsar-log-partitions",
                name,
                observed=counted(log_facts.topics[name], "partition"),
                expected="1: its records must be in one order",
                advice="name another topic in [log.pulsar], or delete this one; trimtab creates it",
            )
    commands = log_facts.topics.get(log.commands_topic, 0)
    for name in (log.results_topic, executors_control(log)):
        if name in log_facts.topics and log_facts.topics[name] < commands:
            yield error(
                "pulsar-log-partitions",
                name,
                observed=f"{counted(log_facts.topics[name], 'partition')} for {commands} of {log.commands_topic}",
                expected=f"{commands} or more",
                advice=f"pulsar-admin topics update-partitioned-topic {log.namespace}/{name} -p {commands}",
            )


def _answering(facts: Facts) -> PulsarLogFacts | None:
    log_facts = facts.pulsar_log
    return None if log_facts is None or log_facts.error else log_facts


def _reach_back_minutes(log_facts: PulsarLogFacts, now_ms: int) -> int:
    """How far back a controller without a checkpoint begins to read; 0 where that is no length of time."""
    start = log_facts.log.start_ms(now_ms)
    return 0 if start is None else (now_ms - start) // _MINUTE_MS
