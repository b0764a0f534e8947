"""Every broker 40 % over its limit: the work of an interval, counted, and the size of what it leaves behind.

Seconds are for `trimtab bench decisions --overloaded`; here is what they come from.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from controller.aggregate.view import assemble
from controller.bench.overload import SHARES, cycles, overloaded, policy_for, snapshots_of
from controller.cycle import decide
from controller.cycle.guardrails.budgets import PLACED_IN_VAIN
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.load import ClusterView, Ints
from controller.settings.guardrails import GuardrailSettings, IntervalBudgetSettings
from controller.strategies.catalogue import SHEDDERS
from tests.effort import tries

BROKERS = tries(plain=300, thorough=500)
BUNDLES = 10 * BROKERS
UNLOADS = int(IntervalBudgetSettings().unloads)
#: Why a broker is looked at, and why it gives nothing.
VERDICTS_OF_BROKER = 2
#: Interval, window, in flight, and their scopes: more kinds of budget than there are.
MOST_KINDS = 40


class Counting:
    """A placement that counts how often it is asked."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asked = inner, 0

    def initial_memory(self) -> Any:
        return self.inner.initial_memory()

    def acceptable(self, view: ClusterView, bundle: int, candidates: Ints, memory: Any) -> tuple[Ints, Any]:
        self.asked += 1
        found: tuple[Ints, Any] = self.inner.acceptable(view, bundle, candidates, memory)
        return found


@pytest.fixture(scope="module", params=list(SHARES.values()), ids=list(SHARES))
def view(request: pytest.FixtureRequest) -> ClusterView:
    return overloaded(BROKERS, BUNDLES, request.param)


@dataclass(frozen=True)
class Decided:
    decision: Decision
    #: How often a placement was asked for.
    placed: int


@pytest.fixture(scope="module", params=SHEDDERS)
def decided(view: ClusterView, request: pytest.FixtureRequest) -> Decided:
    policy = policy_for(request.param, GuardrailSettings(brokers_balance_unknown="ignore"))
    counting = Counting(policy.placement)
    memory = replace(policy.initial_memory(1), samples=100)
    decision, _ = decide(view, [], memory, Controls(mode="active"), replace(policy, placement=counting))
    return Decided(decision, counting.asked)


def test_the_brokers_are_forty_percent_over_their_limit(view: ClusterView) -> None:
    share = (view.brokers.usage / view.brokers.limit).max(axis=1)
    assert share.max() == pytest.approx(1.4 * 0.85)
    assert np.mean(share > 0.85) in SHARES.values()


def test_the_shards_snapshots_make_up_the_cluster(view: ClusterView) -> None:
    made = assemble(snapshots_of(view, view.as_of_ms), {}, {})
    assert made.bundles.names == view.bundles.names
    for name in ("broker", "load", "long_term", "topics", "producers"):
        assert np.array_equal(getattr(made.bundles, name), getattr(view.bundles, name))
    assert np.array_equal(made.brokers.usage, view.brokers.usage)
    assert (made.namespace_bundle_count > 0).all()


def test_an_interval_places_what_it_may_issue_and_little_more(decided: Decided) -> None:
    unloads = [command for command in decided.decision.commands if command.action == "unload"]
    assert len(unloads) <= UNLOADS
    assert decided.placed <= UNLOADS + PLACED_IN_VAIN


def test_the_number_of_verdicts_does_not_grow_with_what_is_held_back(decided: Decided) -> None:
    decision = decided.decision
    sources = {command.source for command in decision.commands}
    destinations = {command.destination for command in decision.commands}
    scopes = 1 + len(sources) + len(destinations)
    assert len(decision.verdicts) <= VERDICTS_OF_BROKER * BROKERS + len(decision.commands) + MOST_KINDS + scopes


@pytest.mark.slow
def test_an_entry_stays_small_when_the_window_of_the_budgets_is_full() -> None:
    view = overloaded(300, 3_000, 0.5)
    entries = list(cycles("half over", view, "OverloadShedder", intervals=12))
    assert sum(each.commands for each in entries) == 1_000, "the window's budget"
    assert entries[-1].held_back > 200
    assert max(each.entry_bytes for each in entries) < 500_000


def test_all_commands_that_budgets_hold_back_are_counted() -> None:
    view = overloaded(BROKERS, BUNDLES, 1.0)
    [one] = cycles("all over", view, "OverloadShedder", intervals=1)
    assert one.commands == UNLOADS
    assert one.held_back > BROKERS
