"""A bundle that was unloaded a short while ago stays, also where a strategy does not look at that."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controller.cycle import BalancerOptions, Policy, decide
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Decision, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView
from controller.model.memory import InFlight, Memory
from controller.model.strategy_memory import NoMemory
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, bundle, view

GRACE = "loadBalancerSheddingGracePeriodMinutes"
VIEW = view(broker("cold", usage=0.1), broker("hot", usage=0.9, big=60, small=40))
JUST_MOVED = replace(VIEW, recently_unloaded=np.array([name == "big" for name in VIEW.bundles.names]))


@dataclass(frozen=True, kw_only=True)
class Rash:
    """Unloads the same bundles always, whatever holds them."""

    bundles: tuple[str, ...] = ("big", "small")
    destination: str = ""

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        why = Verdict(subject="hot", reason=Reason.OVERLOADED)
        unloads = tuple(
            Unload(bundle=name, source="hot", why=why, destination=self.destination) for name in self.bundles
        )
        return UnloadDecision(unloads=unloads, reason=Reason.OVERLOADED), memory


POLICY = Policy(
    cluster="lab",
    period_ms=60_000,
    shedder=Rash(),
    placement=LeastLongTermMessageRate(),
    split_policy=BundleSplitterTask(max_topics=100),
    split_algorithm=RangeEquallyDivide(),
)
WARM = replace(POLICY.initial_memory(7), last_interval=INTERVAL - 60_000, samples=10)
ACTIVE = Controls(mode="active")


def cycle(
    cluster: ClusterView, *, policy: Policy = POLICY, memory: Memory = WARM, controls: Controls = ACTIVE
) -> Decision:
    return decide(cluster, (), memory, controls, policy)[0]


def moved(decision: Decision) -> list[tuple[str, str]]:
    return [(command.action, command.bundle) for command in decision.commands]


def said(decision: Decision, bundle: str) -> list[tuple[Reason, str]]:
    return [(each.reason, each.by) for each in decision.verdicts if each.subject == bundle]


def test_a_rash_shedder_does_not_move_a_bundle_that_has_just_moved() -> None:
    assert moved(cycle(VIEW)) == [("unload", "big"), ("unload", "small")]
    decision = cycle(JUST_MOVED)
    assert moved(decision) == [("unload", "small")]
    assert said(decision, "big") == [(Reason.RECENTLY_UNLOADED, GRACE)]


def test_nor_does_a_rash_membership_rebalancer() -> None:
    policy = replace(POLICY, membership=Rash(destination="cold"), shedder=Rash(bundles=()))
    assert moved(cycle(VIEW, policy=policy)) == [("unload", "big"), ("unload", "small")]
    decision = cycle(JUST_MOVED, policy=policy)
    assert moved(decision) == [("unload", "small")]
    assert (Reason.RECENTLY_UNLOADED, GRACE) in said(decision, "big")


def test_a_plan_that_a_person_approved_moves_it() -> None:
    move = OrderedMove(bundle="big", source="hot", destination="cold")
    orders = Orders(
        plan="ab" * 32, step=1, wave=1, waves=1, moves=(move,), by="me", holder="me", checked_at=INTERVAL,
        expires_at_ms=INTERVAL + 60_000, held_back=False,
    )  # fmt: skip
    assert moved(cycle(JUST_MOVED, controls=replace(ACTIVE, orders=orders))) == [("unload", "big")]


def test_a_bundle_that_has_just_moved_is_split_as_in_pulsar() -> None:
    name = "acme/test/0x00000000_0x80000000"
    large: dict[str, Any] = {name: bundle(1, topics=500)}
    cluster = view(broker("cold", usage=0.1), broker("hot", usage=0.1, **large))
    held = replace(cluster, recently_unloaded=np.array([True]))
    assert moved(cycle(held, policy=replace(POLICY, shedder=Rash(bundles=())))) == [("split", name)]


def test_a_bundle_that_the_membership_rebalancer_moves_is_not_moved_by_the_shedder_as_well() -> None:
    decision = cycle(VIEW, policy=replace(POLICY, membership=Rash(destination="cold", bundles=("big",))))
    assert moved(decision) == [("unload", "big"), ("unload", "small")]
    assert said(decision, "big") == [(Reason.IN_FLIGHT, "membership")]


def test_a_broker_whose_unloads_have_no_result_gives_no_more_to_a_rash_shedder() -> None:
    flight = InFlight(
        action="unload", bundle="other", source="hot", destination="cold", interval=0, expires_at_ms=INTERVAL + 1
    )
    memory = replace(WARM, in_flight={"c-1": flight})
    waiting = replace(POLICY, balancer=BalancerOptions(waits_for_results=True))
    assert moved(cycle(VIEW, policy=POLICY, memory=memory)) == [("unload", "big"), ("unload", "small")]
    assert moved(cycle(VIEW, policy=waiting, memory=memory)) == []
