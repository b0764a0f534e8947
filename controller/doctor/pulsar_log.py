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
    found = facts.pulsar_log
    if found is None:
        return
    if found.error:
        yield error(
            "pulsar-log-unreachable",
            found.log.service_url,
            seen=found.error,
            wanted="the log's topics",
            advice="start the brokers, or correct service_url, admin_url and the credentials in [log.pulsar]",
        )
        return
    if found.policies_error:
        yield warning(
            "pulsar-log-policies-unknown",
            found.log.namespace,
            seen=found.policies_error,
            wanted="to read the namespace's policies",
            advice="let trimtab's role read them; deduplication, retention and time to live were not checked",
        )
    yield fine("pulsar-log-reachable", [found.log.service_url], "answers")


def namespace(facts: Facts) -> Iterator[Finding]:
    """pulsar-log-namespace-missing, -deduplication, -time-to-live, -retention, and those below."""
    found = _answering(facts)
    if found is None:
        return
    name = found.log.namespace
    if found.policies is None:
        yield warning(
            "pulsar-log-namespace-missing",
            name,
            seen="does not exist",
            wanted="a namespace with message deduplication",
            advice="nothing, where trimtab may create namespaces: the first of its processes does; else see"
            " docs/pulsar_log.md",
        )
        return
    if found.policies_error:
        return
    if found.policies.get("deduplicationEnabled") is not True:
        yield error(
            "pulsar-log-deduplication",
            name,
            seen="message deduplication is off",
            wanted="on: else a record may be written twice",
            advice=f"pulsar-admin namespaces set-deduplication {name} --enable",
        )
    if found.policies.get("message_ttl_in_seconds"):
        yield error(
            "pulsar-log-time-to-live",
            name,
            seen=f"messages live for {found.policies['message_ttl_in_seconds']!s:.20} s",
            wanted="no time to live: it would give up commands that wait, and the journal",
            advice=f"pulsar-admin namespaces remove-message-ttl {name}",
        )
    yield from _retention(facts, found)
    yield from _expiry(found)
    yield from _backlog(found)
    yield from _replication(found)


def _expiry(found: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-subscriptions-expire."""
    minutes = (found.policies or {}).get("subscription_expiration_time_minutes")
    if minutes:
        yield error(
            "pulsar-log-subscriptions-expire",
            found.log.namespace,
            seen=f"a subscription without a consumer is deleted after {minutes!s:.20} min",
            wanted="never: trimtab-journal has no consumer, and it keeps the journal",
            advice=f"pulsar-admin namespaces set-subscription-expiration-time {found.log.namespace} --time 0",
        )


def _backlog(found: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-backlog-quota."""
    quotas = (found.policies or {}).get("backlog_quota_map")
    for kind, quota in quotas.items() if isinstance(quotas, dict) else ():
        if isinstance(quota, dict) and quota.get("policy") == _EVICTION:
            yield error(
                "pulsar-log-backlog-quota",
                found.log.namespace,
                seen=f"above its backlog quota ({kind!s:.40}) the oldest records are given up",
                wanted="no such quota: the journal is the backlog of trimtab-journal",
                advice=f"pulsar-admin namespaces remove-backlog-quota {found.log.namespace} --type {kind!s:.40}",
            )


def _replication(found: PulsarLogFacts) -> Iterator[Finding]:
    """pulsar-log-replicated."""
    clusters = (found.policies or {}).get("replication_clusters")
    if isinstance(clusters, list) and len(clusters) > 1:
        yield error(
            "pulsar-log-replicated",
            found.log.namespace,
            seen=f"records come from {len(clusters)} clusters: {', '.join(map(str, clusters)):.200}",
            wanted="one: the controller alone writes the journal and the commands, and replication writes there, too",
            advice="name a namespace in [log.pulsar] that is not replicated, or `pulsar-admin namespaces set-clusters"
            f" {found.log.namespace} --clusters` with one cluster",
        )


def _retention(facts: Facts, found: PulsarLogFacts) -> Iterator[Finding]:
    policy = (found.policies or {}).get("retention_policies")
    policy = policy if isinstance(policy, dict) else {}
    minutes, size = policy.get("retentionTimeInMinutes", 0), policy.get("retentionSizeInMB", 0)
    wanted = max(_LEAST_MINUTES, _reach_back_minutes(found, facts.now_ms))
    if not isinstance(minutes, int) or 0 <= minutes < wanted or size != -1:
        yield Finding(
            code="pulsar-log-retention",
            severity="warning" if isinstance(minutes, int) and minutes > 0 else "error",
            objects=(found.log.namespace,),
            seen=f"retention of {minutes!s:.20} min, {size!s:.20} MB (0: none, -1: no limit)",
            wanted=f"{wanted} min or more, -1 MB: what a controller that was away has to catch up with",
            advice=f"pulsar-admin namespaces set-retention {found.log.namespace} --time {wanted}m --size -1",
        )


def log_topics(facts: Facts) -> Iterator[Finding]:
    """pulsar-log-topic-missing, pulsar-log-partitions, pulsar-log-journal-not-kept."""
    found = _answering(facts)
    if found is None or found.policies is None:
        return
    log, wanted = found.log, specs(found.log)
    for name in [name for name in wanted if name not in found.topics]:
        yield warning(
            "pulsar-log-topic-missing",
            name,
            seen="does not exist as a partitioned topic",
            wanted=counted(wanted[name], "partition"),
            advice="nothing, where trimtab may create topics: the first of its processes does; else"
            f" pulsar-admin topics create-partitioned-topic {log.namespace}/{name} -p {wanted[name]}",
        )
    yield from _partitions(found)
    if found.journal_kept is False:
        yield warning(
            "pulsar-log-journal-not-kept",
            log.journal_topic,
            seen="it has no subscription trimtab-journal, so the retention deletes decisions that are still needed",
            wanted="the subscription that a controller makes when it begins to lead",
            advice="start trimtab run; and let nobody delete the subscription",
        )
    if all(name in found.topics for name in wanted):
        yield fine("pulsar-log-topics", wanted, "exist")


def _partitions(found: PulsarLogFacts) -> Iterator[Finding]:
    log = found.log
    for name in (log.journal_topic, ticks_control(log)):
        if found.topics.get(name, 1) != 1:
            yield error(
                "pulsar-log-partitions",
                name,
                seen=counted(found.topics[name], "partition"),
                wanted="1: its records have one order",
                advice="name another topic in [log.pulsar], or delete this one; trimtab creates it",
            )
    commands = found.topics.get(log.commands_topic, 0)
    for name in (log.results_topic, executors_control(log)):
        if name in found.topics and found.topics[name] < commands:
            yield error(
                "pulsar-log-partitions",
                name,
                seen=f"{counted(found.topics[name], 'partition')} for {commands} of {log.commands_topic}",
                wanted=f"{commands} or more",
                advice=f"pulsar-admin topics update-partitioned-topic {log.namespace}/{name} -p {commands}",
            )


def _answering(facts: Facts) -> PulsarLogFacts | None:
    found = facts.pulsar_log
    return None if found is None or found.error else found


def _reach_back_minutes(found: PulsarLogFacts, now_ms: int) -> int:
    """How far back a controller without a checkpoint begins to read; 0 where that is no length of time."""
    start = found.log.start_ms(now_ms)
    return 0 if start is None else (now_ms - start) // _MINUTE_MS
