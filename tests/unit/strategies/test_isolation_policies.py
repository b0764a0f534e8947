from dataclasses import replace
from typing import Any

import pytest

from controller.model.load import ClusterView
from controller.model.policies import IsolationPolicy, MinAvailable, Policies
from controller.strategies.filters.isolation_policies import IsolationPolicies
from tests.cluster import broker, view
from tests.filters import accepted_brokers

OWN, OTHER = "acme/own/0x00000000_0xffffffff", "acme/other/0x00000000_0xffffffff"
CLUSTER = view(broker("a:80", **{OWN: 1.0}), broker("b:80", **{OTHER: 1.0}), broker("c:80"), broker("d:80"))


def policy(**changed: Any) -> IsolationPolicy:
    given = {"namespaces": ("acme/own",), "primary": ("a|b",), "secondary": ("c",)}
    return IsolationPolicy(**given | changed)


def cluster(**policies: Any) -> ClusterView:
    return replace(CLUSTER, policies=Policies(**policies))


def test_no_secondary_broker_steps_in_for_a_primary_one_that_does_not_serve_the_kind_of_topics() -> None:
    one_primary = (policy(auto_failover=MinAvailable(min_limit=1)),)
    one = cluster(isolation=one_primary, without_persistent=frozenset({"a:80", "b:80"}))
    assert accepted_brokers(IsolationPolicies(), one, OWN, of=("c:80", "d:80")) == []
    assert accepted_brokers(IsolationPolicies(), cluster(isolation=one_primary), OWN, of=("c:80", "d:80")) == ["c:80"]


def test_a_broker_is_matched_by_its_host_and_needs_a_port() -> None:
    six = view(broker("[::1]:80", **{OWN: 1.0}), broker("a"))
    assert accepted_brokers(IsolationPolicies(), six, OWN) == ["[::1]:80"]
    own = replace(six, policies=Policies(isolation=(policy(primary=(r"\[::1\]", "a")),)))
    assert accepted_brokers(IsolationPolicies(), own, OWN) == ["[::1]:80"]


#: Two brokers of one host, and one of another.
PORTS = view(broker("a:80", **{OWN: 1.0}), broker("a:81", **{OTHER: 1.0}), broker("b:80"))


@pytest.mark.parametrize(
    ("primary", "own", "other"),
    [
        ("a:80", ["a:80"], ["a:81", "b:80"]),
        (".*:80", ["a:80", "b:80"], ["a:81"]),
        ("a", ["a:80", "a:81"], ["b:80"]),  # without a colon it means hosts
        ("a(?::81)?", ["a:80", "a:81"], ["b:80"]),  # it matches the host of both
        ("a:82", [], ["a:80", "a:81", "b:80"]),
    ],
)
def test_an_expression_with_a_colon_tells_brokers_of_one_host_apart_as_in_pulsar_5(
    primary: str, own: list[str], other: list[str]
) -> None:
    isolated = replace(PORTS, policies=Policies(isolation=(policy(primary=(primary,), secondary=()),)))
    assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OWN) == own
    assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OTHER) == other


def test_before_pulsar_5_an_expression_with_a_port_matches_no_broker() -> None:
    isolated = replace(PORTS, policies=Policies(isolation=(policy(primary=("a:80",), secondary=()),)))
    assert accepted_brokers(IsolationPolicies(), isolated, OWN) == []
    assert accepted_brokers(IsolationPolicies(), isolated, OTHER) == ["a:80", "a:81", "b:80"]


def test_policies_that_people_wrote_with_ports_are_followed_since_pulsar_5() -> None:
    # apache/pulsar 15419, 15795 and 20886: with such a policy no broker could own a topic.
    cluster = view(broker("p-05.acme.org:8080", **{OWN: 1.0}), *(broker(f"p-0{i}.acme.org:8080") for i in (6, 7)))
    named = {"primary": ("p-05.acme.org:8080",), "secondary": ("p-06.acme.org:8080",)}
    for min_limit, taken in ((1, ["p-05.acme.org:8080"]), (2, ["p-05.acme.org:8080", "p-06.acme.org:8080"])):
        own = policy(**named, auto_failover=MinAvailable(min_limit=min_limit, usage_threshold=80))
        isolated = replace(cluster, policies=Policies(isolation=(own,)))
        assert accepted_brokers(IsolationPolicies(), isolated, OWN) == []
        assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OWN) == taken


def test_secondary_brokers_are_matched_by_their_ports_too() -> None:
    failed = policy(primary=("x:80",), secondary=("b:80",), auto_failover=MinAvailable(min_limit=1))
    isolated = replace(PORTS, policies=Policies(isolation=(failed,)))
    assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OWN) == ["b:80"]
    assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OTHER) == ["a:80", "a:81", "b:80"]


@pytest.mark.parametrize(
    ("name", "expression", "matches"),
    [
        # Answers of Pulsar 5.0.1's NamespaceIsolationPolicyImpl.isPrimaryBrokerId.
        ("[::1]:80", r"\[::1\]:80", True),
        ("::1:80", r"\[::1\]:80", True),
        ("[::1]:80", "::1:80", False),
        ("h:080", "h:80", True),
        ("h:+80", "h:80", True),
        ("h:080", "h:080", False),
        ("[h]:80", "h:80", True),
        ("h:x", "h:.", False),
        ("h:65536", "h:65536", False),
        ("h:65535", "h:65535", True),
        ("a:b:80", ".*:80", False),
        (":80", ".*:80", False),
    ],
)
def test_a_broker_is_matched_by_host_and_port_as_pulsar_writes_them(name: str, expression: str, matches: bool) -> None:
    one = view(broker(name, **{OWN: 1.0}))
    isolated = replace(one, policies=Policies(isolation=(policy(primary=(expression,), secondary=()),)))
    assert accepted_brokers(IsolationPolicies(match_ids=True), isolated, OWN) == ([name] if matches else [])


def test_others_keep_off_brokers_that_an_expression_of_ports_could_mean_where_it_cannot_be_read() -> None:
    strange = replace(PORTS, policies=Policies(isolation=(policy(primary=("(?>a|aa):80",)),)))
    assert accepted_brokers(IsolationPolicies(match_ids=True), strange, OWN) == []
    assert accepted_brokers(IsolationPolicies(match_ids=True), strange, OTHER) == ["a:81", "b:80"]


def test_where_a_policy_cannot_be_read_its_namespace_stays_and_others_keep_off_brokers_that_it_could_mean() -> None:
    strange = cluster(isolation=(policy(primary=("(?>c|cc)",)),))
    assert accepted_brokers(IsolationPolicies(), strange, OWN) == []
    assert accepted_brokers(IsolationPolicies(), strange, OTHER) == ["a:80", "b:80", "d:80"]


def test_others_keep_off_the_brokers_of_a_namespace_whose_policy_could_mean_any_broker() -> None:
    strange = cluster(isolation=(policy(primary=(r"(.)(?>|\1)",)),))
    assert accepted_brokers(IsolationPolicies(), strange, OWN) == []
    assert accepted_brokers(IsolationPolicies(), strange, OTHER) == ["b:80", "c:80", "d:80"]


def test_a_namespace_that_a_policy_might_name_stays() -> None:
    strange = cluster(isolation=(policy(namespaces=("acme/(?>o|ot)her",)),))
    assert accepted_brokers(IsolationPolicies(), strange, OTHER) == []
    assert accepted_brokers(IsolationPolicies(), strange, OWN) == ["c:80", "d:80"]
