"""Laws of filters: which brokers each keeps, and that no placement returns an excluded broker."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.model.java_regex import matches
from controller.model.load import ClusterView
from controller.model.names import namespace_of
from controller.model.policies import IsolationPolicy, MinAvailable, Policies
from controller.model.topic_kinds import BOTH, NON_PERSISTENT, PERSISTENT
from controller.strategies.catalogue import EXTENSIBLE_FILTERS, FILTERS, PLACEMENTS
from controller.strategies.filters.anti_affinity import AntiAffinity
from controller.strategies.filters.broker_version import BrokerVersion
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.filters.max_topics import MaxTopics
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.filters.shedding_excluded_namespaces import SheddingExcludedNamespaces
from controller.strategies.filters.topic_kinds import TopicKinds
from controller.strategies.protocols import Filter
from tests.cluster import Broker, bundle, view

#: With options that make each of them exclude someone now and then.
EVERY: tuple[Filter, ...] = (
    SheddingExcludedNamespaces(names=frozenset({"acme/c"})),
    IsolationPolicies(),
    TopicKinds(),
    MaxTopics(max_topics=20),
    AntiAffinity(failure_domains=True),
    FewestBundles(),
    BrokerVersion(prefer_later=True),
)
#: An intersection of classes, which matches nothing: only Java's dialect has it.
_INTERSECTION = "[b&&c]"
_SPACES = [f"acme/{name}" for name in "abcd"]
_hosts = st.lists(st.sampled_from(["b0", "b1", "b[2-5]", "b.*", "x", _INTERSECTION]), max_size=2).map(tuple)
_policies = st.builds(
    IsolationPolicy,
    namespaces=st.lists(st.sampled_from(["acme/a", "acme/[bc]", "acme/.*"]), min_size=1, max_size=2).map(tuple),
    primary=_hosts,
    secondary=_hosts,
    auto_failover=st.builds(MinAvailable, min_limit=st.integers(0, 3)),
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """One to six brokers with bundles of up to four namespaces, under policies, some bundles on their way."""
    hosts = [f"b{i}" for i in range(draw(st.integers(1, 6)))]
    brokers = [f"{host}:80" for host in hosts]
    owned = {name: draw(st.lists(st.sampled_from(_SPACES), max_size=4)) for name in brokers}
    owned[brokers[0]].append(_SPACES[0])
    made = view(
        *(
            Broker(
                name,
                cpu=draw(st.sampled_from([0.1, 0.5, 0.9, 1.1])),
                bundles={
                    f"{space}/{name}-{i}": bundle(
                        float(i), kinds=draw(st.sampled_from([PERSISTENT, NON_PERSISTENT, BOTH]))
                    )
                    for i, space in enumerate(spaces)
                },
            )
            for name, spaces in owned.items()
        )
    )
    topics = np.array([draw(st.sampled_from([0, 15, 20, 30])) for _ in brokers], np.int64)
    some = st.dictionaries(st.sampled_from(brokers), st.sampled_from(["1.0.0", "2.0.0", "2.0.0-rc.1", "?"]))
    policies = Policies(
        isolation=tuple(draw(st.lists(_policies, max_size=2))),
        anti_affinity_group=draw(st.dictionaries(st.sampled_from(_SPACES), st.sampled_from(["red", "RED", "blue"]))),
        failure_domain=draw(st.dictionaries(st.sampled_from(brokers), st.sampled_from(["d1", "d2"]))),
        broker_version=draw(some) if draw(st.booleans()) else dict.fromkeys(brokers, "1.0.0") | draw(some),
        without_persistent=frozenset(draw(st.sets(st.sampled_from(brokers), max_size=1))),
        without_non_persistent=frozenset(draw(st.sets(st.sampled_from(brokers), max_size=2))),
    )
    made = replace(made, policies=policies, brokers=replace(made.brokers, topic_count=topics))
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.integers(0, len(made.bundles) - 1))
        made = made.with_preallocated(row, draw(st.integers(0, len(brokers) - 1)))
    return made


def names(cluster: ClusterView, rows: Sequence[int]) -> list[str]:
    return [cluster.brokers.names[row] for row in rows]


def permitted(cluster: ClusterView, bundle: str) -> set[str]:
    """By the isolation policies and the kinds of topics, broker by broker."""
    policies, brokers = cluster.policies, cluster.brokers.names
    kinds = cluster.bundles.kinds[cluster.bundles.code_of[bundle]]
    unfit = (policies.without_persistent if kinds & PERSISTENT else frozenset()) | (
        policies.without_non_persistent if kinds & NON_PERSISTENT else frozenset()
    )
    host = {name: name.rpartition(":")[0] for name in brokers}
    own = next((p for p in policies.isolation if p.applies_to(namespace_of(bundle))), None)
    if own is None:
        taken = {name for name in brokers if any(matches(p.primary, host[name]) for p in policies.isolation)}
        return set(brokers) - taken - unfit
    primary = {name for name in brokers if matches(own.primary, host[name])}
    secondary = {name for name in brokers if matches(own.secondary, host[name])}
    return (primary | secondary if len(primary) < own.auto_failover.min_limit else primary) - unfit


@given(cluster=clusters(), data=st.data())
def test_each_keeps_an_ascending_part_of_the_candidates_the_same_every_time(
    cluster: ClusterView, data: st.DataObject
) -> None:
    rows = sorted(data.draw(st.sets(st.integers(0, len(cluster.brokers) - 1))))
    asked = data.draw(st.integers(0, len(cluster.bundles) - 1))
    given_rows = np.array(rows, np.int64)
    for by in EVERY:
        kept = by.keep(cluster, asked, given_rows)
        assert kept.tolist() == sorted(set(kept.tolist()) & set(rows)), by
        assert by.keep(cluster, asked, given_rows).tolist() == kept.tolist(), by
        assert given_rows.tolist() == rows, by


@given(cluster=clusters(), data=st.data())
def test_some_filters_always_leave_a_broker(cluster: ClusterView, data: st.DataObject) -> None:
    rows = sorted(data.draw(st.sets(st.integers(0, len(cluster.brokers) - 1), min_size=1)))
    for by in (MaxTopics(max_topics=20), AntiAffinity(failure_domains=True), FewestBundles()):
        assert len(by.keep(cluster, 0, np.array(rows, np.int64))), by


@given(cluster=clusters(), data=st.data())
def test_no_placement_returns_a_broker_that_the_filters_exclude(cluster: ClusterView, data: st.DataObject) -> None:
    asked = data.draw(st.integers(0, len(cluster.bundles) - 1))
    select = ModularSelectBroker(keep_filters=data.draw(st.booleans()))
    found, allowed = select.candidates(cluster, asked, EVERY), permitted(cluster, cluster.bundles.names[asked])
    usage = select.weighted_usage(cluster.brokers.usage, cluster.brokers.limit)
    overloaded = [row for row in found.remaining.tolist() if usage[row] > 0.85]
    for name, strategy in PLACEMENTS.items():
        placement = strategy()
        rows, _ = select.acceptable(cluster, asked, found, placement, placement.initial_memory())
        taken = rows.tolist()
        assert set(names(cluster, taken)) <= allowed, name
        # Pulsar drops filters only where the best that they leave is overloaded.
        if select.keep_filters or not overloaded:
            assert set(taken) <= set(found.remaining.tolist()), name
        assert bool(taken) == bool(allowed), name


@given(cluster=clusters(), data=st.data())
def test_what_binds_is_what_policies_and_kinds_of_topics_say_broker_by_broker(
    cluster: ClusterView, data: st.DataObject
) -> None:
    asked = data.draw(st.integers(0, len(cluster.bundles) - 1))
    kept = np.arange(len(cluster.brokers), dtype=np.int64)
    steps: list[Filter] = [TopicKinds(), IsolationPolicies()]
    for step in data.draw(st.permutations(steps)):
        kept = step.keep(cluster, asked, kept)
    assert set(names(cluster, kept.tolist())) == permitted(cluster, cluster.bundles.names[asked])


def test_the_laws_of_filters_are_not_empty() -> None:
    made = view(
        Broker("b0:80", cpu=0.5, bundles={"acme/a/0": bundle(1)}),
        Broker("b1:80", cpu=0.1, bundles={}),
        Broker("b2:80", cpu=0.2, bundles={}),
    )
    own = IsolationPolicy(namespaces=("acme/a",), primary=("b0", "b2"))
    versions = dict.fromkeys(made.brokers.names, "1.0.0")
    cluster = replace(made, policies=Policies(isolation=(own,), broker_version=versions))
    assert names(cluster, ModularSelectBroker().candidates(cluster, 0, EVERY).remaining.tolist()) == ["b2:80"]


def test_each_filter_says_why_it_excludes_and_every_option_has_a_meaning() -> None:
    for catalogue in (FILTERS, EXTENSIBLE_FILTERS):
        assert len({cls.reason for cls in catalogue.values()}) == len(catalogue)
    for name, cls in {**FILTERS, **EXTENSIBLE_FILTERS}.items():
        assert cls.__name__ == name
        options = cls.__dataclass_fields__.values()  # type: ignore[attr-defined]
        assert all(field.metadata["meaning"] for field in options if field.metadata)
    assert [type(by) for by in EVERY] == list(FILTERS.values())
    assert {name for name, cls in FILTERS.items() if cls.binding} == {"TopicKinds", "IsolationPolicies"}
