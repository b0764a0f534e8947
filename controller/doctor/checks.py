"""The table of all checks, in the order in which their findings are shown."""

from collections.abc import Callable, Iterable
from typing import Final

from controller.doctor import (
    access,
    approvals,
    balancing,
    brokers,
    clocks,
    election,
    executors,
    isolation,
    limits,
    load_managers,
    names,
    pulsar_log,
    spreading,
    topics,
    versions,
)
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding

CHECKS: Final[tuple[Callable[[Facts], Iterable[Finding]], ...]] = (
    brokers.brokers_reachable,
    brokers.permissions,
    brokers.cluster_name,
    brokers.versions,
    brokers.topic_kinds,
    brokers.moves_confirmed,
    brokers.no_fatal_bundles,
    versions.version_in_force,
    versions.options_known,
    versions.defaults,
    versions.placement,
    balancing.broker_conf,
    balancing.balancing_off,
    load_managers.load_managers,
    limits.limits_plausible,
    names.excluded,
    names.excluded_by_people,
    names.patterns,
    names.excluded_by_brokers,
    isolation.unreadable_policies,
    isolation.brokers_of_policies,
    isolation.namespaces_of_policies,
    spreading.failure_domains,
    spreading.failure_domains_used,
    spreading.anti_affinity_groups,
    names.capacity_overrides,
    topics.kafka_reachable,
    topics.topics_exist,
    topics.partitions,
    topics.retention,
    topics.timestamps,
    topics.record_sizes,
    topics.compression,
    topics.copies,
    topics.copies_in_sync,
    pulsar_log.log_reachable,
    pulsar_log.namespace,
    pulsar_log.log_topics,
    executors.nobody_executes,
    executors.executor_groups,
    access.kafka_acls,
    election.folders,
    election.zookeeper,
    election.lease,
    election.on_log,
    election.controls,
    access.zookeeper_acls,
    approvals.policy_of_controllers,
    approvals.policy_satisfiable,
    approvals.controller_key,
    clocks.broker_clocks,
    clocks.kafka_clock,
    clocks.report_times,
    clocks.metrics_flow,
)


def judge(facts: Facts) -> list[Finding]:
    """The findings of all checks about *facts*."""
    return [finding for check in CHECKS for finding in check(facts)]
