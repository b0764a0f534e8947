"""Laws that hold for every strategy of the catalogue, with its default options; a new one is under them at once."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controller.model.decision import Reason, SplitDecision, Unload
from controller.model.load import ClusterView
from controller.model.names import FULL_UPPER, can_split
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES
from tests.cluster import NAMESPACE, Broker, bundle, view

_FEW = settings(max_examples=60, deadline=None)
_ROUNDS = 10
_mbytes = st.floats(0, 500) | st.sampled_from([0.0, 10.0, 100.0])
_usages = st.floats(0, 1.2) | st.sampled_from([0.0, 0.5, 0.95])
_bundles = st.builds(
    bundle,
    _mbytes,
    msg_rate=st.floats(0, 50_000),
    topics=st.integers(0, 2000),
    producers=st.integers(0, 800),
    consumers=st.integers(0, 800),
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """Up to six brokers with up to six bundles each, some of which were unloaded recently."""
    brokers = []
    for i in range(draw(st.integers(1, 6))):
        named = {f"x{i}-{j}": draw(_bundles) for j in range(draw(st.integers(0, 6)))}
        brokers.append(
            Broker(name=f"b{i}", usage=draw(_usages), on_its_way=draw(st.sampled_from([0.0, 100.0])), bundles=named)
        )
    names = [name for b in brokers for name in b.bundles]
    recent = draw(st.sets(st.sampled_from(names))) if names else set()
    count = {NAMESPACE: draw(st.sampled_from([-1, 1, 126, 127, 128, 1000]))} if names else {}
    return view(*brokers, recently_unloaded=recent, bundle_count=count)


@st.composite
def alike(draw: st.DrawFn) -> ClusterView:
    """Up to six brokers with the same bundles, in all but their names, and none of them too full."""
    usage = draw(st.floats(0, 0.8) | st.sampled_from([0.0, 0.5]))
    bundles = draw(st.lists(_bundles, max_size=6))
    return view(
        *(
            Broker(name=f"b{i}", usage=usage, bundles={f"x{i}-{j}": one for j, one in enumerate(bundles)})
            for i in range(draw(st.integers(1, 6)))
        )
    )


def owners(cluster: ClusterView) -> Mapping[str, str]:
    """Bundle -> broker."""
    table = cluster.bundles
    return {name: cluster.brokers.names[code] for name, code in zip(table.names, table.broker.tolist(), strict=True)}


@pytest.mark.parametrize("name", SHEDDERS)
class TestShedders:
    @_FEW
    @given(cluster=clusters())
    def test_unloads_only_bundles_the_source_owns_and_each_once(self, name: str, cluster: ClusterView) -> None:
        unloads = _shed(name, cluster).unloads
        assert {(u.bundle, u.source) for u in unloads} <= set(owners(cluster).items())
        assert len({u.bundle for u in unloads}) == len(unloads)

    @_FEW
    @given(cluster=clusters())
    def test_never_unloads_what_was_unloaded_recently(self, name: str, cluster: ClusterView) -> None:
        recent = {cluster.bundles.names[row] for row in np.flatnonzero(cluster.recently_unloaded)}
        assert not {u.bundle for u in _shed(name, cluster).unloads} & recent

    @_FEW
    @given(cluster=alike())
    def test_does_nothing_when_all_brokers_are_alike(self, name: str, cluster: ClusterView) -> None:
        decision = _shed(name, cluster)
        assert decision.unloads == ()
        assert decision.reason in (Reason.BALANCED, Reason.NO_LOAD_DATA)

    @_FEW
    @given(cluster=clusters())
    def test_says_something_about_every_broker_or_nothing_at_all_is_known(
        self, name: str, cluster: ClusterView
    ) -> None:
        decision = _shed(name, cluster)
        looked_at = {v.subject for v in decision.verdicts}
        assert decision.reason is Reason.NO_LOAD_DATA or set(cluster.brokers.names) <= looked_at

    @_FEW
    @given(cluster=clusters())
    def test_same_input_gives_the_same_answer(self, name: str, cluster: ClusterView) -> None:
        shedder = SHEDDERS[name]()
        memory = shedder.initial_memory()
        assert shedder.decide(cluster, memory) == shedder.decide(cluster, memory)
        assert memory == shedder.initial_memory()

    @_FEW
    @given(clusters=st.lists(clusters(), min_size=2, max_size=4))
    def test_the_laws_hold_with_a_memory_too(self, name: str, clusters: list[ClusterView]) -> None:
        shedder = SHEDDERS[name]()
        memory = shedder.initial_memory()
        for cluster in clusters:
            decision, memory = shedder.decide(cluster, memory)
            assert {(u.bundle, u.source) for u in decision.unloads} <= set(owners(cluster).items())


def _shed(name: str, cluster: ClusterView) -> Any:
    shedder = SHEDDERS[name]()
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    return decision


@pytest.mark.parametrize("name", SHEDDERS)
def test_the_laws_of_shedding_are_not_empty(name: str) -> None:
    bundles = {key: bundle(mbytes, msg_rate=mbytes * 100) for key, mbytes in (("a", 300), ("b", 200), ("c", 100))}
    hot = Broker(name="hot", usage=0.95, bundles=bundles)
    cluster = view(hot, Broker(name="cold", usage=0.05, bundles={"z": bundle(1)}))
    shedder = SHEDDERS[name]()
    memory = shedder.initial_memory()
    unloads: list[Unload] = []
    # Some strategies wait until they have seen the same a few times.
    for _ in range(_ROUNDS):
        decision, memory = shedder.decide(cluster, memory)
        unloads += decision.unloads
    assert unloads


@pytest.mark.parametrize("name", PLACEMENTS)
class TestPlacements:
    @_FEW
    @given(cluster=clusters(), data=st.data())
    def test_acceptable_is_a_non_empty_ascending_part_of_the_candidates(
        self, name: str, cluster: ClusterView, data: st.DataObject
    ) -> None:
        assume(len(cluster.bundles))
        rows = data.draw(st.sets(st.integers(0, len(cluster.brokers) - 1), min_size=1))
        candidates = np.array(sorted(rows), np.int64)
        placement = PLACEMENTS[name]()
        found, _ = placement.acceptable(cluster, 0, candidates, placement.initial_memory())
        assert found.tolist() == sorted(set(found.tolist()) & rows)
        assert len(found)

    @_FEW
    @given(cluster=clusters())
    def test_same_input_gives_the_same_answer(self, name: str, cluster: ClusterView) -> None:
        assume(len(cluster.bundles))
        placement, candidates = PLACEMENTS[name](), np.arange(len(cluster.brokers))
        memory = placement.initial_memory()
        first, moved = placement.acceptable(cluster, 0, candidates, memory)
        second, again = placement.acceptable(cluster, 0, candidates, memory)
        assert (first.tolist(), moved) == (second.tolist(), again)
        assert memory == placement.initial_memory()


def _split(name: str, cluster: ClusterView) -> SplitDecision:
    policy = SPLIT_POLICIES[name]()
    decision, _ = policy.decide(cluster, policy.initial_memory())
    return decision


@pytest.mark.parametrize("name", SPLIT_POLICIES)
@_FEW
@given(cluster=clusters())
def test_splits_only_bundles_of_their_broker_and_each_once_within_the_namespace_limit(
    name: str, cluster: ClusterView
) -> None:
    decision = _split(name, cluster)
    assert {(s.bundle, s.broker) for s in decision.splits} <= set(owners(cluster).items())
    assert len({s.bundle for s in decision.splits}) == len(decision.splits)
    assert {s.why for s in decision.splits} <= set(decision.verdicts)
    assert decision == _split(name, cluster)
    for count in cluster.namespace_bundle_count.tolist():
        assert len(decision.splits) <= max(0, 128 - count) if count >= 0 else not decision.splits


@pytest.mark.parametrize("name", SPLIT_ALGORITHMS)
@_FEW
@given(ends=st.sets(st.integers(0, FULL_UPPER), min_size=2, max_size=2))
def test_boundaries_ascend_from_end_to_end(name: str, ends: set[int]) -> None:
    lower, upper = sorted(ends)
    found = SPLIT_ALGORITHMS[name]().boundaries(lower, upper, np.zeros(0, np.int64), np.zeros((0, 4)))
    if found is None:
        assert not can_split(lower, upper)
        return
    assert len(found) > 2
    assert found == tuple(sorted(set(found)))
    assert (found[0], found[-1]) == (lower, upper)
