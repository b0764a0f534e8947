"""From a split policy's choice to the command: where the bundle is cut, who cuts it, and whether its parts move."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from controller.cycle import BalancerOptions, Policy, decide
from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, UnloadDecision
from controller.model.load import ClusterView, Ints
from controller.model.memory import InFlight, Memory
from controller.model.strategy_memory import NoMemory
from controller.model.topic_kinds import PERSISTENT, SEGMENTS
from controller.strategies.catalogue import SPLIT_ALGORITHMS
from controller.strategies.common.cutting import MAX_CUTS, cut
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.protocols import SplitAlgorithm
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
    SplitHitCounts,
)
from controller.strategies.splitting.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from controller.strategies.splitting.hot_topic_isolation import HotTopic, HotTopicIsolation
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.topic_count_equally_divide import TopicCountEquallyDivide
from tests.cluster import INTERVAL, Broker, broker, bundle, view
from tests.topics import with_topics

PERIOD = 60_000
WHOLE = "acme/test/0x00000000_0x00001000"
CHILD = "acme/test/0x00000000_0x00000800"


def holding(name: str) -> Broker:
    """A broker with a bundle that has too many topics."""
    return Broker("b1", cpu=0.0, bundles={name: bundle(topics=5000)})


BIG = view(holding(WHOLE), broker("b2"))
PER_TOPIC: Mapping[int, float] = {0x100: 1.0, 0x110: 90.0, 0x200: 20.0}
KNOWN = with_topics(BIG, {WHOLE: PER_TOPIC})
POLICY = Policy(
    cluster="lab",
    period_ms=PERIOD,
    shedder=OverloadShedder(),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(),
    split_algorithm=RangeEquallyDivide(),
)


def cycle(cluster: ClusterView, policy: Policy = POLICY, memory: Memory | None = None) -> tuple[Decision, Memory]:
    memory = memory or policy.initial_memory(7)
    warm = replace(memory, last_interval=INTERVAL - PERIOD, samples=10)
    return decide(cluster, (), warm, Controls(mode="active"), policy)


def commands(cluster: ClusterView, algorithm: SplitAlgorithm) -> list[Command]:
    return [*cycle(cluster, replace(POLICY, split_algorithm=algorithm))[0].commands]


def test_a_split_in_the_middle_is_left_to_the_brokers() -> None:
    [command] = commands(BIG, RangeEquallyDivide())
    assert (command.algorithm, command.boundaries) == ("range_equally_divide", ())


@pytest.mark.parametrize(
    ("algorithm", "boundaries"),
    [
        (TopicCountEquallyDivide(), (0x108,)),
        (FlowOrQpsEquallyDivide(max_bandwidth_mbytes=50), (0x109, 0x189)),
        (HotTopicIsolation(hot=HotTopic(percent=50), otherwise=RangeEquallyDivide()), (0x110, 0x111)),
    ],
)
def test_every_other_cut_is_sent_as_positions(algorithm: SplitAlgorithm, boundaries: tuple[int, ...]) -> None:
    [command] = commands(KNOWN, algorithm)
    assert (command.algorithm, command.boundaries) == ("specified_positions_divide", boundaries)


@pytest.mark.parametrize("policy", [BundleSplitterTask(), DefaultNamespaceBundleSplitStrategyImpl(hit_count=0)])
def test_a_bundle_with_segments_of_scalable_topics_is_cut_in_the_middle(policy: Any) -> None:
    kinds = np.full(len(KNOWN.bundles), PERSISTENT | SEGMENTS, np.uint8)
    segments = replace(KNOWN, bundles=replace(KNOWN.bundles, kinds=kinds))
    algorithm = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=50)
    decision, _ = cycle(segments, replace(POLICY, split_policy=policy, split_algorithm=algorithm))
    assert [(each.algorithm, each.boundaries) for each in decision.commands] == [("range_equally_divide", ())]


@pytest.mark.parametrize("name", sorted(name for name, cls in SPLIT_ALGORITHMS.items() if cls().needs_topic_detail))
def test_a_split_that_needs_topics_waits_for_them(name: str) -> None:
    decision, _ = cycle(BIG, replace(POLICY, split_algorithm=SPLIT_ALGORITHMS[name]()))
    assert decision.commands == ()
    assert (WHOLE, Reason.NO_TOPIC_DETAIL, name) in [(v.subject, v.reason, v.by) for v in decision.verdicts]


def test_a_cut_that_pulsar_would_refuse_is_not_sent() -> None:
    neighbours = with_topics(BIG, {WHOLE: {0: 1.0, 1: 1.0}})
    decision, _ = cycle(neighbours, replace(POLICY, split_algorithm=TopicCountEquallyDivide()))
    assert decision.commands == ()
    [verdict] = [v for v in decision.verdicts if v.reason is Reason.IMPOSSIBLE_CUT]
    assert (
        verdict.detail
        == "0x00000000_0x00001000 cannot be split at 0x00000000: every position must lie inside the range, only once"
    )


def test_a_split_at_more_positions_than_a_command_holds_is_not_sent() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Crumbs:
        name: str = "crumbs"
        needs_topic_detail: bool = False

        def cuts(self, lower: int, *_: object) -> tuple[int, ...]:
            return tuple(range(lower + 1, lower + MAX_CUTS + 2))

    decision, _ = cycle(BIG, replace(POLICY, split_algorithm=Crumbs()))
    assert decision.commands == ()
    [verdict] = [v for v in decision.verdicts if v.reason is Reason.IMPOSSIBLE_CUT]
    assert verdict.detail == "at 10001 positions, allowed: 10000"


def test_a_bundle_may_be_cut_at_as_many_positions_as_a_command_holds() -> None:
    class Crumbs(RangeEquallyDivide):
        def cuts(self, lower: int, *_: object) -> tuple[int, ...]:
            return tuple(range(lower + 1, lower + MAX_CUTS + 1))

    held: dict[str, Any] = {"acme/test/0x00000000_0xffffffff": bundle()}
    whole = view(broker("a", **held))
    assert cut(whole, 0, Crumbs()) == tuple(range(1, 10_001))


def test_boundaries_that_come_with_the_choice_are_taken() -> None:
    algorithm = TopicCountEquallyDivide()
    strategy = DefaultNamespaceBundleSplitStrategyImpl(hit_count=0, algorithm=algorithm)
    decision, memory = cycle(KNOWN, replace(POLICY, split_policy=strategy, split_algorithm=algorithm))
    assert [(c.algorithm, c.boundaries) for c in decision.commands] == [("specified_positions_divide", (0x108,))]
    assert memory.split == SplitHitCounts()


def test_a_part_waits_while_the_split_of_the_whole_is_in_flight() -> None:
    policy = replace(POLICY, split_policy=DefaultNamespaceBundleSplitStrategyImpl(hit_count=0))
    under_way = InFlight(
        action="split", bundle=WHOLE, source="b1", destination="", interval=INTERVAL, expires_at_ms=INTERVAL + PERIOD
    )
    parts = view(holding(CHILD), broker("b2"))
    memory = replace(policy.initial_memory(7), in_flight={"one": under_way})
    decision, _ = cycle(parts, policy, memory)
    assert decision.commands == ()
    assert f"{CHILD}: InFlight: {WHOLE} is being split" in map(str, decision.verdicts)
    # An unload of the whole is no split of it.
    memory = replace(memory, in_flight={"one": replace(under_way, action="unload")})
    assert [c.action for c in cycle(parts, policy, memory)[0].commands] == ["split"]


@dataclass(frozen=True)
class Only:
    """Lets a bundle go to these rows alone."""

    rows: tuple[int, ...]
    reason: ClassVar[Reason] = Reason.ISOLATION_POLICY
    binding: ClassVar[bool] = True

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        return candidates[np.isin(candidates, self.rows)]


@dataclass(frozen=True)
class Anchored(Only):
    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        return False


def test_the_parts_are_unloaded_only_where_policies_and_anti_affinity_let_them_leave() -> None:
    def unloads(*filters: Only, wanted: bool = True) -> bool:
        balancer = BalancerOptions(unload_split_bundles=wanted)
        [command] = cycle(BIG, replace(POLICY, filters=filters, balancer=balancer))[0].commands
        return command.unload_after_split

    assert unloads()
    assert unloads(Only((0, 1)))
    assert not unloads(Only((0,)))
    assert not unloads(Anchored((0, 1)))
    assert not unloads(wanted=False)


def test_the_shedder_sees_which_bundles_are_split_and_unloaded_unless_nothing_is_issued_or_it_is_a_dry_run() -> None:
    seen = list[frozenset[str]]()

    class Watching(OverloadShedder):
        def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
            seen.append(view.splitting)
            return super().decide(view, memory)

    policy = replace(POLICY, shedder=Watching())
    stay = replace(policy, balancer=BalancerOptions(unload_split_bundles=False))
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - PERIOD, samples=10)
    active, dry, observing = (Controls(mode=mode) for mode in ("active", "dry_run", "observe"))
    for controls, of in ((active, policy), (active, stay), (dry, policy), (observing, policy)):
        decide(BIG, (), memory, controls, of)
    assert seen == [{WHOLE}, set(), set(), set()]


@pytest.mark.parametrize("boundaries", [(0, 0x800, 0x1000), (0, 0x1, 0x2000), (0, 0xFFF, 0x1000)])
def test_a_range_that_the_newest_boundaries_cut_is_not_split(boundaries: tuple[int, ...]) -> None:
    decision, memory = cycle(replace(BIG, boundaries={"acme/test": boundaries}))
    assert decision.commands == ()
    assert [verdict.subject for verdict in decision.verdicts if verdict.reason is Reason.RANGE_OUTDATED] == [WHOLE]
    assert memory.in_flight == {}


@pytest.mark.parametrize(
    "boundaries", [{}, {"acme/test": (0, 0x1000, 0x2000)}, {"acme/test": (0, 0x2000)}, {"acme/other": (0, 7)}]
)
def test_a_range_of_the_newest_boundaries_is_split_and_so_is_a_part_that_they_do_not_know_yet(
    boundaries: dict[str, tuple[int, ...]],
) -> None:
    assert [each.bundle for each in cycle(replace(BIG, boundaries=boundaries))[0].commands] == [WHOLE]


def test_a_split_that_waits_for_boundaries_keeps_its_hits() -> None:
    policy = replace(POLICY, split_policy=DefaultNamespaceBundleSplitStrategyImpl(algorithm=RangeEquallyDivide()))
    seen, memory = replace(BIG, boundaries={"acme/test": (0, 0x800, 0x1000)}), policy.initial_memory(7)
    memory = replace(memory, last_interval=INTERVAL - PERIOD, samples=10)
    for interval in range(INTERVAL, INTERVAL + 6 * PERIOD, PERIOD):
        decision, memory = decide(replace(seen, as_of_ms=interval), (), memory, Controls(mode="active"), policy)
        assert decision.commands == ()
    known = replace(seen, as_of_ms=INTERVAL + 6 * PERIOD, boundaries={"acme/test": (0, 0x1000)})
    assert [each.bundle for each in decide(known, (), memory, Controls(mode="active"), policy)[0].commands] == [WHOLE]
