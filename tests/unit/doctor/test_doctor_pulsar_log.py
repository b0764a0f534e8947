"""What the doctor says about a log in Pulsar."""

from dataclasses import replace
from typing import Any

import pytest

from controller.adapters.pulsar.log.inspect import PulsarLogFacts
from controller.adapters.pulsar.log.topics import namespace_policies
from controller.doctor.checks import judge
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding
from controller.settings.pulsar_log import PulsarLogSettings
from tests.doctor import facts, settings

_LOG = PulsarLogSettings(service_url="pulsar://a:6650", admin_url=("http://a:8080",))
_HEALTHY = PulsarLogFacts(
    log=_LOG,
    policies={
        "deduplicationEnabled": True,
        "retention_policies": {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1},
    },
    topics={
        "metrics": 4,
        "results": 4,
        "commands": 4,
        "journal": 1,
        "dead-letters": 1,
        "summaries": 1,
        "metrics-control": 1,
        "commands-control": 4,
    },
    journal_kept=True,
)


def in_pulsar(found: PulsarLogFacts) -> Facts:
    log = {"kind": "pulsar", "pulsar": {"service_url": _LOG.service_url, "admin_url": list(_LOG.admin_url)}}
    return replace(facts(), settings=settings(log=log), kafka=None, pulsar_log=found)


def problems(**changed: Any) -> list[Finding]:
    return [each for each in judge(in_pulsar(replace(_HEALTHY, **changed))) if each.severity != "ok"]


def test_nothing_is_wrong_with_a_healthy_one() -> None:
    assert problems() == []


def test_a_log_that_does_not_answer_is_one_finding() -> None:
    [found] = problems(error="no broker can be reached", policies=None, topics={})
    assert (found.code, found.severity, found.objects) == ("pulsar-log-unreachable", "error", ("pulsar://a:6650",))


def test_a_new_site_has_no_namespace_yet() -> None:
    [found] = problems(policies=None, topics={}, journal_kept=None)
    assert (found.code, found.severity) == ("pulsar-log-namespace-missing", "warning")


def test_policies_as_trimtab_sets_them_are_fine() -> None:
    assert problems(policies=namespace_policies(_LOG) | {"replication_clusters": ["standalone"]}) == []


def test_policies_that_may_not_be_read_are_told_and_not_judged() -> None:
    [found] = problems(policies={}, policies_error="401 Unauthorized")
    assert (found.code, found.severity) == ("pulsar-log-policies-unknown", "warning")


_RETENTION = {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1}


@pytest.mark.parametrize(
    ("policies", "code", "severity", "advice"),
    [
        (
            {"deduplicationEnabled": None},
            "pulsar-log-deduplication",
            "error",
            "set-deduplication public/trimtab --enable",
        ),
        ({"message_ttl_in_seconds": 60}, "pulsar-log-time-to-live", "error", "remove-message-ttl public/trimtab"),
        ({"retention_policies": None}, "pulsar-log-retention", "error", "--time 1440m --size -1"),
        ({"retention_policies": ["7d"]}, "pulsar-log-retention", "error", "--time 1440m --size -1"),
        (
            {"subscription_expiration_time_minutes": 60},
            "pulsar-log-subscriptions-expire",
            "error",
            "set-subscription-expiration-time public/trimtab --time 0",
        ),
        (
            {"backlog_quota_map": {"message_age": {"limitTime": 60, "policy": "consumer_backlog_eviction"}, "x": 7}},
            "pulsar-log-backlog-quota",
            "error",
            "remove-backlog-quota public/trimtab --type message_age",
        ),
        ({"replication_clusters": ["east", "west"]}, "pulsar-log-replicated", "error", "set-clusters public/trimtab"),
        (
            {"retention_policies": _RETENTION | {"retentionTimeInMinutes": 60}},
            "pulsar-log-retention",
            "warning",
            "--time 1440m",
        ),
        (
            {"retention_policies": _RETENTION | {"retentionSizeInMB": 100}},
            "pulsar-log-retention",
            "warning",
            "--size -1",
        ),
    ],
)
def test_a_policy_that_loses_records_is_named_with_the_command_that_corrects_it(
    policies: dict[str, Any], code: str, severity: str, advice: str
) -> None:
    [found] = problems(policies={**(_HEALTHY.policies or {}), **policies})
    assert (found.code, found.severity) == (code, severity)
    assert advice in found.advice


@pytest.mark.parametrize(
    ("topics", "name"),
    [
        ({"journal": 2}, "journal"),
        ({"metrics-control": 3}, "metrics-control"),
        ({"results": 3}, "results"),
        ({"commands-control": 3}, "commands-control"),
    ],
)
def test_a_wrong_number_of_partitions_is_an_error(topics: dict[str, int], name: str) -> None:
    [found] = problems(topics={**_HEALTHY.topics, **topics})
    assert (found.code, found.severity, found.objects) == ("pulsar-log-partitions", "error", (name,))


def test_a_missing_topic_is_a_warning_for_trimtab_creates_it() -> None:
    [found] = problems(topics={name: number for name, number in _HEALTHY.topics.items() if name != "results"})
    assert (found.code, found.severity, found.objects) == ("pulsar-log-topic-missing", "warning", ("results",))


def test_a_journal_that_pulsar_does_not_keep_is_told() -> None:
    [found] = problems(journal_kept=False)
    assert found.code == "pulsar-log-journal-not-kept"
