"""Laws that hold for every strategy of the catalogue, with its default options; a new one is under them at once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.model.decision import Reason, SplitDecision, Unload, Verdict
from controller.model.load import ClusterView, TopicDetail
from controller.model.names import FULL_UPPER, can_split, parse_bundle
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES
from controller.strategies.common.cutting import cut
from tests.cluster import NAMESPACE, Broker, bundle, view

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


def _bundle_name(broker: int, number: int) -> str:
    lower = broker << 16 | number
    return f"{NAMESPACE}/0x{lower:08x}_0x{lower + 2:08x}"


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """Up to six brokers with up to six bundles each, some of which were unloaded recently."""
    brokers = []
    for i in range(draw(st.integers(1, 6))):
        named = {_bundle_name(i, j): draw(_bundles) for j in range(draw(st.integers(0, 6)))}
        brokers.append(
            Broker(f"b{i}", cpu=draw(_usages), on_its_way=draw(st.sampled_from([0.0, 100.0])), bundles=named)
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
            Broker(f"b{i}", cpu=usage, bundles={f"x{i}-{j}": one for j, one in enumerate(bundles)})
            for i in range(draw(st.integers(1, 6)))
        )
    )


def owners(cluster: ClusterView) -> Mapping[str, str]:
    """Bundle -> broker."""
    table = cluster.bundles
    return {name: cluster.brokers.names[code] for name, code in zip(table.names, table.broker.tolist(), strict=True)}


@pytest.mark.parametrize("name", SHEDDERS)
class TestShedders:
    @given(cluster=clusters())
    def test_unloads_only_bundles_the_source_owns_and_each_once(self, name: str, cluster: ClusterView) -> None:
        unloads = _shed(name, cluster).unloads
        assert {(u.bundle, u.source) for u in unloads} <= set(owners(cluster).items())
        assert len({u.bundle for u in unloads}) == len(unloads)

    @given(cluster=clusters())
    def test_never_unloads_what_was_unloaded_recently(self, name: str, cluster: ClusterView) -> None:
        recent = {cluster.bundles.names[row] for row in np.flatnonzero(cluster.recently_unloaded)}
        assert not {u.bundle for u in _shed(name, cluster).unloads} & recent

    @given(cluster=alike())
    def test_does_nothing_when_all_brokers_are_alike(self, name: str, cluster: ClusterView) -> None:
        decision = _shed(name, cluster)
        assert decision.unloads == ()
        assert decision.reason in (Reason.BALANCED, Reason.NO_LOAD_DATA)

    @given(cluster=clusters())
    def test_says_something_about_every_broker_or_nothing_at_all_is_known(
        self, name: str, cluster: ClusterView
    ) -> None:
        decision = _shed(name, cluster)
        looked_at = {v.subject for v in decision.verdicts}
        assert decision.reason is Reason.NO_LOAD_DATA or set(cluster.brokers.names) <= looked_at

    @given(cluster=clusters())
    def test_same_input_gives_the_same_answer(self, name: str, cluster: ClusterView) -> None:
        shedder = SHEDDERS[name]()
        memory = shedder.initial_memory()
        assert shedder.decide(cluster, memory) == shedder.decide(cluster, memory)
        assert memory == shedder.initial_memory()

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
    hot = Broker("hot", cpu=0.95, bundles=bundles)
    cluster = view(hot, Broker("cold", cpu=0.05, bundles={"z": bundle(1)}))
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
    """The first decision with splits, or the last one: some policies wait until they have seen the same a few times."""
    policy = SPLIT_POLICIES[name]()
    memory = policy.initial_memory()
    for _ in range(_ROUNDS):
        decision, memory = policy.decide(cluster, memory)
        if decision.splits:
            break
    return decision


@pytest.mark.parametrize("name", SPLIT_POLICIES)
def test_the_laws_of_splitting_are_not_empty(name: str) -> None:
    assert _split(name, view(Broker("b", cpu=0.5, bundles={_bundle_name(0, 0): bundle(topics=5000)}))).splits


@pytest.mark.parametrize("name", SPLIT_POLICIES)
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


@st.composite
def bundles_with_topics(draw: st.DrawFn) -> ClusterView:
    """One bundle of any range, and topics inside of it, or none that are known."""
    lower, upper = sorted(draw(st.sets(st.integers(0, FULL_UPPER), min_size=2, max_size=2)))
    places = draw(st.lists(st.integers(lower, upper - 1), max_size=8))
    loads = draw(st.lists(st.lists(st.floats(0, 1e8), min_size=4, max_size=4), min_size=8, max_size=8))
    name = f"{NAMESPACE}/0x{lower:08x}_0x{upper:08x}"
    seen = view(Broker("b", cpu=0.5, bundles={name: bundle(topics=max(2, len(places)))}))
    detail = TopicDetail(
        starts=np.array([0, len(places)], np.int64),
        position=np.array(places, np.int64),
        load=np.array(loads)[: len(places)],
    )
    return replace(seen, bundles=replace(seen.bundles, detail=detail))


@pytest.mark.parametrize("name", SPLIT_ALGORITHMS)
@given(cluster=bundles_with_topics())
def test_a_bundle_is_cut_inside_of_it_at_ascending_positions_or_there_is_a_reason(
    name: str, cluster: ClusterView
) -> None:
    bundle_name, algorithm = parse_bundle(cluster.bundles.names[0]), SPLIT_ALGORITHMS[name]()
    found = cut(cluster, 0, algorithm)
    assert found == cut(cluster, 0, algorithm)
    if isinstance(found, Verdict):
        assert (found.subject, found.by) == (cluster.bundles.names[0], name)
        assert algorithm.needs_topic_detail or not can_split(bundle_name.lower, bundle_name.upper)
        return
    assert found
    assert list(found) == sorted(set(found))
    assert bundle_name.lower < found[0] <= found[-1] < bundle_name.upper


@pytest.mark.parametrize("name", sorted(SPLIT_ALGORITHMS.keys() - {"specified_positions_divide"}))
def test_the_law_of_cutting_is_not_empty(name: str) -> None:
    places, many = np.arange(8) * 1000, np.full((8, 4), 1e8)
    assert not isinstance(SPLIT_ALGORITHMS[name]().cuts(0, 10_000, places, many), Reason)
