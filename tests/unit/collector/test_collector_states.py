"""Records of what changes seldom, and when they are written."""

import json
from typing import Any

import pytest

from controller.aggregate.policies import policies_of
from controller.aggregate.state.facts import fact_from_text, fact_to_text
from controller.collector.reports import extensible_report, modular_report
from controller.collector.states import (
    BrokerSettings,
    ClusterPolicies,
    Due,
    Namespace,
    Unread,
    broker_state,
    bundle_data,
    domains_by_broker,
    namespace_state,
    records,
)
from controller.model.errors import WireError
from controller.model.load import RESOURCES
from controller.model.records import NamespaceState
from controller.wire.metrics import BrokerStateRecord, BundleData, NamespaceStateRecord, decode_metric
from controller.wire.rows import fact_of
from tests.fake_pulsar import SAMPLES, sample

T, PERIOD = 1_795_233_660_000, 60_000
FOUND = Namespace("lab/ns", (0, 0x80000000, 0xFFFFFFFF), "apart")
P1 = {
    "namespaces": ["lab/ns.*"],
    "primary": ["127.0.0.1"],
    "secondary": [],
    "auto_failover_policy": {"parameters": {"min_limit": "1", "usage_threshold": "80"}, "policy_type": "min_available"},
    "unload_scope": "none",
}
BUNDLE = "lab/ns/0x00000000_0x20000000"


def state(found: Namespace = FOUND, version: int = T, **policies: Any) -> NamespaceStateRecord:
    return namespace_state("lab", found, ClusterPolicies(policies), version=version)


def state_of(policies: ClusterPolicies, name: str) -> NamespaceStateRecord:
    return namespace_state("lab", Namespace(name, FOUND.boundaries), policies, version=T)


def test_a_namespace_state_has_boundaries_group_and_the_policies_that_name_it() -> None:
    [(key, value)] = records([state(p0=P1 | {"namespaces": ["other/.*"]}, p1=P1)])
    read = decode_metric(value, cluster="lab", period_ms=PERIOD)
    assert key == "lab/ns"
    assert isinstance(read, NamespaceStateRecord)
    assert (read.boundaries, read.anti_affinity_group, read.version) == (FOUND.boundaries, "apart", T)
    assert read.isolation_policies == (P1,)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({}, None),
        ({"splitCooldownSeconds": 5}, None),  # no foresight looks at it
        ({"maxSegments": 8, "mergeBytesRateInThreshold": None}, {"maxSegments": 8}),
        ({"splitMsgRateInThreshold": 1e300}, {"splitMsgRateInThreshold": 1e12}),  # never
        ({"splitBytesRateInThreshold": 40}, {"splitBytesRateInThreshold": 40.0}),
        ({"splitMsgRateInThreshold": -1}, {"enabled": False}),  # brokers refuse it, and split nothing
        ({"enabled": "yes"}, {"enabled": False}),
    ],
)
def test_a_policy_of_segments_is_published_as_brokers_obey_it(
    stored: dict[str, Any], said: dict[str, Any] | None
) -> None:
    [(_, value)] = records([state(FOUND._replace(auto_scale=stored))])
    read = decode_metric(value, cluster="lab", period_ms=PERIOD)
    assert isinstance(read, NamespaceStateRecord)
    assert (read.auto_scale_policy and read.auto_scale_policy.overrides) == said
    kept = fact_from_text(fact_to_text(fact_of(read)))
    assert isinstance(kept, NamespaceState)
    assert policies_of([kept], []).auto_scale == ({} if said is None else {"lab/ns": said})


def test_a_policy_that_cannot_be_read_is_published_with_the_namespaces_that_it_might_name() -> None:
    unreadable, elsewhere = P1 | {"namespaces": ["lab/(?<!x+)ns"]}, P1 | {"namespaces": ["lab/x(?<!x+)ns"]}
    assert state(p1=unreadable, p2=elsewhere).isolation_policies == (unreadable,)
    assert state(p1=unreadable, p2={"namespaces": []}).isolation_policies == (unreadable, {"namespaces": []})


def test_of_a_policy_with_a_long_list_a_namespace_has_what_names_it_alone() -> None:
    """One that lists 2,000 namespaces came to 126 MB a round, and half of the states were more than a shard keeps."""
    others, strange = [f"acme/orders-{number}" for number in range(99)], "lab/(?<!x+)ns"
    short = P1 | {"namespaces": [*others, "lab/ns"]}
    assert state(p1=short).isolation_policies == (short,)
    long = P1 | {"namespaces": [*others, "lab/ns", "lab/.*", "corp/.*", strange]}
    assert state(p1=long).isolation_policies == (P1 | {"namespaces": ["lab/ns", "lab/.*", strange]},)
    elsewhere = P1 | {"namespaces": [*others, "corp/.*", "corp/ns"]}
    assert state(p1=elsewhere).isolation_policies is None


def test_beside_it_a_long_list_has_namespaces_that_could_not_be_read_in_as_many_records_as_that_takes() -> None:
    unread = [f"acme/{'orders' * 10}-{number}" for number in range(4_000)]
    policies = ClusterPolicies({"p": P1 | {"namespaces": [*unread, "lab/ns.*"]}, "short": P1})
    beside = policies.unread(unread[:3_000])
    told = list[list[str]]()
    for number in range(4):
        record = namespace_state(
            "lab", Namespace(f"lab/ns-{number}", FOUND.boundaries), policies, version=T, beside=beside
        )
        assert record.isolation_policies is not None
        long, short = record.isolation_policies
        assert short == P1
        assert long["namespaces"][0] == "lab/ns.*"
        told.append(long["namespaces"][1:])
        assert sum(map(len, told[-1])) <= 100_000, "a record stays one that Kafka takes"
    assert [name for part in told for name in part] == unread[:3_000]
    assert told[-1] == []
    assert list(policies.naming("lab/ns-1", policies.unread([]))) == [P1 | {"namespaces": ["lab/ns.*"]}, P1]


def test_policies_that_no_record_has_are_in_as_many_records_as_that_takes() -> None:
    brokers = [f"broker-{number}.{'example' * 10}" for number in range(500)]
    given = {f"p{number}": P1 | {"namespaces": [f"acme/{number}"], "primary": brokers} for number in range(5)}
    policies = ClusterPolicies(given)
    beside = policies.unread([f"acme/{number}" for number in range(5)])
    states = [
        namespace_state("lab", Namespace(f"lab/ns-{number}", FOUND.boundaries), policies, version=T, beside=beside)
        for number in range(7)
    ]
    held = [record.isolation_policies or () for record in beside.added_to(states)]
    assert [len(each) for each in held] == [2, 2, 1, 0, 0, 0, 0]
    assert [policy for each in held for policy in each] == [*given.values()]
    assert [*policies.unread([]).added_to(states)] == states, "all were read"


@pytest.mark.slow
def test_a_record_has_what_of_a_long_list_names_its_namespace_though_a_controller_would_not_read_all_of_it() -> None:
    policies = ClusterPolicies({"p": P1 | {"namespaces": [f"lab/(a|b){number}" for number in range(2_500)]}})
    policies.ask_about(["lab/a0", "lab/a2499"])
    for number in (0, 2_499):
        assert state_of(policies, f"lab/a{number}").isolation_policies == (P1 | {"namespaces": [f"lab/(a|b){number}"]},)


def test_a_broker_state_has_version_domain_and_capacity() -> None:
    report = modular_report(sample("load_report_1.json"))
    told = broker_state("lab", "a:8080", report, version=T, failure_domain="rack-1", capacity={"cpu": 800.0})
    [(_, value)] = records([told])
    read = decode_metric(value, cluster="lab", period_ms=PERIOD)
    assert isinstance(read, BrokerStateRecord)
    assert (read.broker_version_string, read.failure_domain) == ("4.0.8", "rack-1")
    assert read.persistent_topics_enabled is True
    assert read.capacity is not None
    assert (read.capacity.cpu, read.capacity.memory) == (800.0, None)


@pytest.mark.parametrize(("in_settings", "published"), [(False, False), (True, True), (None, None)])
def test_where_there_is_no_load_report_the_settings_say_which_topics_a_broker_serves(
    in_settings: bool | None, published: bool | None
) -> None:
    resources = {name: {"usage": 1.0, "limit": 2.0} for name in RESOURCES}
    report = extensible_report({"updatedAt": T, **resources}, owned=())
    settings = BrokerSettings(balancing=None, persistent_topics=None, non_persistent_topics=in_settings)
    told = broker_state("lab", "a:8080", report, version=T, failure_domain=None, capacity={}, settings=settings)
    assert (told.persistent_topics_enabled, told.non_persistent_topics_enabled) == (None, published)
    reported = modular_report(sample("load_report_1.json") | {"nonPersistentTopicsEnabled": True})
    told = broker_state("lab", "a:8080", reported, version=T, failure_domain=None, capacity={}, settings=settings)
    assert told.non_persistent_topics_enabled is True


def test_stored_averages_and_quotas_are_published_unchanged_and_invalid_ones_refused() -> None:
    stored = (SAMPLES / "bundle_data.json").read_bytes()
    averages = bundle_data("lab", BUNDLE, "bundle_data", stored)
    assert averages.bundle_data is not None
    assert averages.bundle_data.topics == json.loads(stored)["topics"]
    quota = {"msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 1e5, "bandwidthOut": 3e5, "memory": 80.0}
    told = bundle_data("lab", BUNDLE, "resource_quota", json.dumps(quota | {"dynamic": True}).encode())
    assert told.resource_quota is not None
    assert told.resource_quota.msg_rate_out == 120.0
    for bundle, content in ((BUNDLE, b"{}"), ("no bundle", stored)):
        with pytest.raises(WireError):
            bundle_data("lab", bundle, "bundle_data", content)


def test_a_record_has_as_many_expressions_beside_its_own_as_come_to_100_000_characters() -> None:
    unread = Unread({0: ["x" * 60_000, "y" * 40_000, "z"], 1: ["x" * 60_000, "y" * 40_001]}, {})
    assert [[len(each) for each in unread.next_of(row)] for row in (0, 0, 0, 1, 1)] == [
        [60_000, 40_000], [1], [], [60_000], [40_001],
    ]  # fmt: skip


def test_brokers_have_the_domain_that_lists_them() -> None:
    domains = {"rack-1": {"brokers": ["a:8080", "b:8080"]}, "rack-2": {"brokers": ["c:8080"]}, "rack-3": {}}
    assert domains_by_broker(domains) == {"a:8080": "rack-1", "b:8080": "rack-1", "c:8080": "rack-2"}


def test_a_state_is_written_when_it_changes_and_again_every_few_intervals() -> None:
    due = Due(3 * PERIOD)
    changed = FOUND._replace(boundaries=(0, 0x40000000, 0x80000000, 0xFFFFFFFF))
    written = []
    for i, found in enumerate([FOUND, FOUND, changed, changed, changed, changed]):
        interval = T + i * PERIOD
        states = due.of([state(found, interval)], interval)
        due.written(states, interval)
        written.append(len(states))
    assert written == [1, 0, 1, 0, 0, 1]


def test_what_was_not_written_stays_due_and_after_forgetting_everything_is() -> None:
    due = Due(10 * PERIOD)
    assert len(due.of([state()], T)) == len(due.of([state()], T)) == 1
    due.written([state()], T)
    assert due.of([state()], T + PERIOD) == []
    due.forget()
    assert len(due.of([state()], T + PERIOD)) == 1


def test_averages_that_move_are_not_written_each_time() -> None:
    due = Due(10 * PERIOD)
    stored = json.loads((SAMPLES / "bundle_data.json").read_bytes())
    told = []
    for topics in (4, 5):
        averages = bundle_data("lab", BUNDLE, "bundle_data", json.dumps(stored | {"topics": topics}).encode())
        assert isinstance(averages, BundleData)
        told.append(averages)
    due.written(due.of(told[:1], T), T)
    assert due.of(told[1:], T + PERIOD) == []
    assert due.of(told[1:], T + 10 * PERIOD) == []
    assert due.bundles(T + 10 * PERIOD) == {BUNDLE}
    assert due.of(told[1:], T + 360 * PERIOD) == told[1:]
    assert due.bundles(T + 360 * PERIOD) == frozenset()


def test_what_was_written_long_ago_is_not_remembered() -> None:
    due, three = Due(3 * PERIOD), Due(3 * PERIOD)
    for i in range(97, 100):
        interval = T + i * PERIOD
        three.written([state(FOUND._replace(name=f"lab/ns-{i}"), interval)], interval)
    for i in range(100):
        interval = T + i * PERIOD
        due.written([state(FOUND._replace(name=f"lab/ns-{i}"), interval)], interval)
    assert due == three
