from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from controller.model.decision import Reason, SplitDecision, Verdict
from controller.model.load import ClusterView, Floats, Ints
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
    SplitHitCounts,
)
from controller.strategies.view_builder import cluster_view
from tests.cluster import NAMESPACE, Broker, Bundle, bundle, view

A, B, C = (f"{NAMESPACE}/0x{i:08x}_0x{i + 16:08x}" for i in (0, 16, 32))
TINY = f"{NAMESPACE}/0x00000100_0x00000101"
OVER, WITHIN = bundle(topics=200), bundle(topics=100)
AT_ONCE = DefaultNamespaceBundleSplitStrategyImpl(max_topics=100, hit_count=0)
PATIENT = replace(AT_ONCE, hit_count=2)


@dataclass(frozen=True)
class Cuts:
    found: tuple[int, ...] | Reason
    name = "told"
    needs_topic_detail = False

    def cuts(
        self,
        lower: int,
        upper: int,
        positions: Ints,
        load: Floats,
    ) -> tuple[int, ...] | Reason:
        return self.found


def cluster(**bundles: Bundle) -> ClusterView:
    """One broker with bundles a, b, c."""
    names = {"a": A, "b": B, "c": C, "tiny": TINY}
    return view(holding("b1", {names[key]: one for key, one in bundles.items()}))


def holding(name: str, bundles: Mapping[str, Bundle]) -> Broker:
    return Broker(name, cpu=0.0, bundles=bundles)


def split(seen: ClusterView, strategy: DefaultNamespaceBundleSplitStrategyImpl = AT_ONCE) -> list[str]:
    return [one.bundle for one in strategy.decide(seen, SplitHitCounts())[0].splits]


def split_after(seen: ClusterView, memory: SplitHitCounts) -> list[str]:
    return [one.bundle for one in PATIENT.decide(seen, memory)[0].splits]


def refusals(seen: ClusterView, strategy: DefaultNamespaceBundleSplitStrategyImpl = AT_ONCE) -> list[Verdict]:
    return [verdict for verdict in strategy.decide(seen, SplitHitCounts())[0].verdicts if verdict.reason != "Topics"]


def test_a_bundle_is_split_when_it_was_over_a_limit_more_often_than_the_threshold() -> None:
    memory, seen = PATIENT.initial_memory(), []
    for _ in range(4):
        decision, memory = PATIENT.decide(cluster(a=OVER), memory)
        seen.append(([one.bundle for one in decision.splits], dict(memory.hits)))
    assert seen == [([], {A: 1}), ([], {A: 2}), ([A], {}), ([], {A: 1})]


def test_a_bundle_that_went_to_another_broker_is_counted_anew_there() -> None:
    # Java: splitConditionHitCounts is each broker's own, and keeps only what is in the broker's own bundle stats.
    here, there = view(holding("b1", {A: OVER}), holding("b2", {})), view(holding("b1", {}), holding("b2", {A: OVER}))
    memory = SplitHitCounts()
    for seen, hits, owner in [(here, 1, "b1"), (here, 2, "b1"), (there, 1, "b2"), (there, 2, "b2"), (here, 1, "b1")]:
        decision, memory = PATIENT.decide(seen, memory)
        assert (decision.splits, memory) == ((), SplitHitCounts(hits={A: hits}, owners={A: owner}))


def test_a_bundle_that_no_broker_serves_is_neither_counted_nor_split_and_its_count_waits_for_its_broker() -> None:
    before = SplitHitCounts(hits={A: 2}, owners={A: "b1"})
    nowhere = cluster_view(Broker("b1"), Broker("b2"), unowned={A: OVER, B: OVER})
    decision, memory = replace(PATIENT, hit_count=0).decide(nowhere, before)
    assert (decision, memory) == (SplitDecision(), before)
    assert split_after(cluster(a=OVER), memory) == [A]
    assert split_after(view(holding("b2", {A: OVER})), memory) == []


def test_counts_of_a_broker_whose_data_are_missing_wait_for_them_unless_another_broker_serves_the_bundle() -> None:
    # Java: each broker counts by itself, so it does not matter whose data reach the leader.
    before = SplitHitCounts(hits={A: 2, B: 2}, owners={A: "b1", B: "b1"})
    elsewhere = replace(view(holding("b2", {B: WITHIN, C: OVER})), missing=("b1",))
    _, memory = PATIENT.decide(elsewhere, before)
    assert memory == SplitHitCounts(hits={A: 2, C: 1}, owners={A: "b1", C: "b2"})
    assert split_after(cluster(a=OVER), memory) == [A]
    _, memory = PATIENT.decide(view(holding("b2", {B: WITHIN})), memory)
    assert memory == SplitHitCounts()


def test_the_verdict_says_how_often_and_how_often_is_needed() -> None:
    assert [str(v) for v in refusals(cluster(a=OVER), PATIENT)] == [f"{A}: HitCount (1 vs 2 rounds)"]


def test_a_bundle_with_one_topic_or_no_room_in_its_range_is_not_counted() -> None:
    one_topic = bundle(topics=1, msg_rate=50_000)
    decision, memory = PATIENT.decide(cluster(a=one_topic, tiny=OVER), SplitHitCounts(hits={A: 1}))
    assert memory.hits == {A: 1}
    assert [(v.subject, v.reason) for v in decision.verdicts[1::2]] == [
        (A, Reason.TOO_FEW_TOPICS),
        (TINY, Reason.RANGE_TOO_SMALL),
    ]


def test_a_namespace_gets_no_more_bundles_than_it_may_have() -> None:
    assert split(cluster(a=OVER, b=OVER), replace(AT_ONCE, max_bundles=3)) == [A]
    assert refusals(cluster(a=OVER, b=OVER), replace(AT_ONCE, max_bundles=3))[0].reason is Reason.NAMESPACE_FULL


def test_each_broker_splits_so_many_bundles_in_a_round_and_the_others_are_not_even_counted() -> None:
    strategy = replace(AT_ONCE, max_splits=1)
    seen = view(holding("b1", {B: OVER, C: OVER}), holding("b2", {A: OVER}))
    decision, memory = strategy.decide(seen, SplitHitCounts())
    assert [one.bundle for one in decision.splits] == [B, A]
    assert memory.hits == {}
    assert "b1: NotThisInterval (1 vs 1 splits)" in [str(v) for v in decision.verdicts]
    assert len(split(seen, replace(AT_ONCE, max_splits=0))) == 3


@pytest.mark.parametrize(
    ("parent", "waits_in_pulsar", "waits_if_fixed"),
    [
        (f"{NAMESPACE}/0x00000000_0x00000020", True, True),
        (f"{NAMESPACE}/0x00000010_0x00000020", False, False),
        (f"{NAMESPACE}-other/0x00000000_0x00000020", True, False),
        (f"{NAMESPACE}/0x00000000_0x00000008", True, False),
        (f"{NAMESPACE}/0x00000000_0x00000010", True, True),
        (f"{NAMESPACE}/0x00000000_0x0000000f", True, False),
        ("other/ns/0x00000000_0x00000020", False, False),
    ],
)
def test_a_child_waits_until_the_split_of_its_parent_is_over(
    parent: str, waits_in_pulsar: bool, waits_if_fixed: bool
) -> None:
    seen = replace(cluster(a=OVER), splitting=frozenset({parent}))
    assert (split(seen) == []) is waits_in_pulsar
    assert (split(seen, replace(AT_ONCE, fixed_parents=True)) == []) is waits_if_fixed
    if waits_in_pulsar:
        assert [(v.reason, v.detail) for v in refusals(seen)] == [(Reason.IN_FLIGHT, f"{parent} is being split")]


def test_what_the_algorithm_cannot_cut_stays_counted_and_takes_no_room() -> None:
    strategy = replace(AT_ONCE, algorithm=Cuts(Reason.BELOW_MINIMUM), max_bundles=3)
    decision, memory = strategy.decide(cluster(a=OVER), SplitHitCounts())
    assert (decision.splits, memory.hits) == ((), {A: 1})
    assert (decision.verdicts[-1].reason, decision.verdicts[-1].by) == (Reason.BELOW_MINIMUM, "told")


def test_several_cuts_are_refused_as_in_pulsar_unless_they_may_come_one_after_the_other() -> None:
    # Java: extensions.models.Split takes two parts and no more, so brokers refuse several cuts at once.
    strategy = replace(AT_ONCE, algorithm=Cuts((5, 9)))
    assert [str(v) for v in refusals(cluster(a=OVER), strategy)] == [
        f"{A}: SeveralCuts (2 vs 1 cuts): with trimtabSplitStrategySeveralCuts it is split at one after the other"
    ]
    for cuts, boundaries in (((5, 9), (0, 9, 16)), ((2, 5, 9), (0, 5, 16)), ((5,), (0, 5, 16))):
        allowed = replace(strategy, algorithm=Cuts(cuts), several_cuts=True, max_bundles=3)
        [one] = allowed.decide(cluster(a=OVER, b=OVER), SplitHitCounts())[0].splits  # two bundles became three
        assert (one.bundle, one.boundaries) == (A, boundaries)


@pytest.mark.parametrize(("limit", "is_split"), [(2047, False), (2048, True)])
def test_bandwidth_limits_overflow_as_in_pulsar_unless_that_is_fixed(limit: int, *, is_split: bool) -> None:
    strategy = replace(AT_ONCE, max_bandwidth_mbytes=limit)
    assert split(cluster(a=bundle(0.5)), strategy) == ([A] if is_split else [])
    assert split(cluster(a=bundle(0.5)), replace(strategy, fixed_bandwidth=True)) == []
