"""Budgets never let one half of an exchange of bundles pass and hold back the other half."""

from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import pytest

from controller.cycle import Policy, decide
from controller.cycle.limits import Budget, Limits
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Issued
from controller.model.strategy_memory import NoMemory
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, bundle, view
from tests.effort import tries

PERIOD = 60_000
#: Of clusters.  With one of the first two each kind of budget would hold back half of an exchange.
SEEDS = (8, 5, *(seed for seed in range(30) if seed not in (8, 5)))
#: A broker that has given as much as it may in the window.
GIVEN = Issued(
    action="unload", namespace="acme/test", source="b:80", destination="c:80", connections=0, interval=INTERVAL - PERIOD
)


def policy(**limits: Any) -> Policy:
    return Policy(
        cluster="lab",
        period_ms=PERIOD,
        shedder=PeakShedder(hold=1),
        placement=LeastLongTermMessageRate(),
        split_policy=BundleSplitterTask(max_topics=1000, max_bundles=99),
        split_algorithm=RangeEquallyDivide(),
        limits=Limits(**limits),
    )


def decided(policy: Policy, seen: ClusterView, *issued: Issued) -> Decision:
    memory = replace(
        policy.initial_memory(1),
        last_interval=INTERVAL - PERIOD,
        samples=9,
        issued={str(number): each for number, each in enumerate(issued)},
    )
    return decide(seen, [], memory, Controls(mode="active"), policy)[0]


def cluster(seed: int) -> ClusterView:
    """Four brokers with few bundles of very different sizes: many plans exchange bundles."""
    random, made = Random(seed), []
    for name in "abcd":
        sizes = [random.choice((1, 2, 3, 5, 8, 13, 21, 34)) for _ in range(random.randint(2, 6))]
        bundles: dict[str, Any] = {f"{name}{number}": bundle(float(size)) for number, size in enumerate(sizes)}
        made.append(broker(f"{name}:80", usage=0.01 * sum(sizes), **bundles))
    return view(*made)


@cache
def without_budgets(seed: int) -> Decision:
    """What is decided for ``cluster(seed)`` where no budget holds anything back."""
    return decided(policy(), cluster(seed))


def halves(found: Decision) -> set[str]:
    """Brokers that get bundles while a budget holds back what they were to give."""
    held = {each.subject for each in found.verdicts if each.reason is Reason.BUDGET and each.by != "guardrails"}
    return held & {command.destination for command in found.commands}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "issued"),
    [
        ({"interval": Budget(unloads_per_source=1)}, ()),
        ({"window": Budget(unloads_per_source=1)}, (GIVEN,)),
    ],
    ids=["an interval", "the window"],
)
def test_no_broker_gets_bundles_by_a_plan_while_a_budget_holds_back_what_it_gives(
    limits: dict[str, Any], issued: tuple[Issued, ...]
) -> None:
    exchanges = 0
    for seed in SEEDS[: tries(plain=2, thorough=30)]:
        seen = cluster(seed)
        whole, found = without_budgets(seed), decided(policy(**limits), seen, *issued)
        exchanges += bool({each.source for each in whole.commands} & {each.destination for each in whole.commands})
        assert not halves(found), seed
    assert exchanges >= tries(plain=2, thorough=10)


@pytest.mark.slow
def test_where_budgets_hold_nothing_of_an_exchange_back_the_plan_stays_as_it_is() -> None:
    roomy = policy(interval=Budget(unloads_per_source=9), window=Budget(unloads_per_source=9))
    for seed in SEEDS[: tries(plain=2, thorough=10)]:
        whole, found = without_budgets(seed), decided(roomy, cluster(seed))
        assert whole.commands
        assert found.commands == whole.commands


def test_bundles_that_stay_since_their_broker_may_give_no_more_say_so() -> None:
    found = decided(policy(window=Budget(unloads_per_source=1)), cluster(5), GIVEN)
    said = {each.detail for each in found.verdicts if each.reason is Reason.BUDGET and each.by == "guardrails"}
    assert said == {"budgets let b:80 give less than was planned, so the plan was made without its bundles"}


@dataclass(frozen=True)
class OnePairAtATime:
    """Wants to exchange all bundles of the first two brokers that have theirs, and to empty the last but one."""

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        *pairs, full, idle = view.brokers.names
        stays = {view.bundles.broker[row] for row in view.recently_unloaded.nonzero()[0].tolist()}
        pair = next(([at, at + 1] for at in range(0, len(pairs), 2) if not stays & {at, at + 1}), [])
        goes = dict(zip(pair, (pairs[at] for at in reversed(pair)), strict=True))
        if view.brokers.code_of[full] not in stays:
            goes[view.brokers.code_of[full]] = idle
        why = Verdict(subject="", reason=Reason.OVERLOADED, by="test")
        unloads = [
            Unload(bundle=name, source=view.brokers.names[owner], why=why, destination=to, final=True, in_order=True)
            for name, owner in zip(view.bundles.names, view.bundles.broker.tolist(), strict=True)
            if (to := goes.get(owner)) is not None
        ]
        return UnloadDecision(unloads=tuple(unloads), reason=Reason.OVERLOADED), memory


def test_after_three_exchanges_that_budgets_cut_in_two_nobody_gives_of_whom_they_hold_something_back() -> None:
    """Before, who only gives does so as far as it may."""
    given = []
    for pairs in range(1, 5):
        names = [*map(str, range(2 * pairs)), "x"]
        held: list[dict[str, Any]] = [{f"{name}-{number}": 1.0 for number in (1, 2)} for name in names]
        brokers = [broker(f"{name}:80", **each) for name, each in zip(names, held, strict=True)]
        seen = view(*brokers, broker("y:80"))
        once = replace(policy(interval=Budget(unloads_per_source=1)), shedder=OnePairAtATime())
        given.append([command.source for command in decided(once, seen).commands])
    assert given == [["x:80"], ["x:80"], ["x:80"], []]
