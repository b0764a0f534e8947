"""What guardrails hold back of a plan is checked again, and waited for as long as they explain it."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from controller.model.controls import Choice, Pause
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.step_lease import PlanHaltedError
from controller.planning.plans.plan import DRAIN, Plan
from controller.simulator.cluster import ClusterShape
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.records import PERIOD

pytestmark = pytest.mark.slow

BROKER = "broker-1:8080"
FREEZE = SETTINGS.replace("freeze_intervals = 0", "freeze_intervals = 2")
#: Two unloads off one broker in ten intervals.
SLOW = f"{SETTINGS}guardrails.window_seconds = 600\nguardrails.window.unloads_per_source = 2\n"


def cluster(folder: Path, more: str) -> LiveCluster:
    conf = f"{QUIET}loadBalancerDistributeBundlesEvenlyEnabled=false\n"
    return LiveCluster(settings_in(folder, broker_conf=conf, more=more))


def drain(live: LiveCluster) -> Plan:
    return planned_cluster(
        live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,), wave_moves=3, wave_moves_per_broker=3)
    ).plan


def once_handed_over(live: LiveCluster, then: Callable[[], object]) -> list[int]:
    """*then* happens in the interval after the first moves were handed over; when that was."""
    at: list[int] = []

    def look() -> None:
        orders = live.controls.orders
        if not at and orders is not None and orders.moves:
            at.append(live.interval)
            then()

    live.meanwhile = look
    return at


def destinations(plan: Plan) -> list[str]:
    return [plan.brokers[move.destination] for move in plan.steps[0].waves[0]]


def test_moves_whose_destination_died_end_the_plan_at_once_and_are_named(tmp_path: Path) -> None:
    live = cluster(tmp_path, FREEZE)
    plan = drain(live)
    dead = destinations(plan)[0]
    heir = next(name for name in plan.brokers if name not in {BROKER, *destinations(plan)})
    at = once_handed_over(live, lambda: live.leave(dead, heir))
    with pytest.raises(PlanHaltedError, match=f"is to go to {dead}, which is gone"):
        live.run(plan).run()
    assert live.interval - at[0] == PERIOD
    assert live.commands == []
    assert live.controls.orders is None, "strategies go on"


def test_what_a_freeze_held_back_is_checked_again_before_it_is_issued(tmp_path: Path) -> None:
    live = cluster(tmp_path, FREEZE)
    live.left = {"broker-6:8080"}  # it owns no bundle
    for _ in range(3):
        live.advance()
    plan = drain(live)
    at = once_handed_over(live, live.left.clear)
    assert live.run(plan).run().done == len(plan.moves)
    assert min(live.checked_at) > at[0]
    assert any("held back by guardrails.freeze_intervals" in text for text in live.said)


def test_what_a_budget_held_back_is_not_issued_when_its_destination_has_filled_up(tmp_path: Path) -> None:
    live = cluster(tmp_path, SLOW)
    plan = drain(live)
    first = plan.steps[0].waves[0]
    late, filled = plan.bundles[first[2].bundle], plan.brokers[first[2].destination]
    done = {plan.brokers[move.destination] for move in first[:2]}

    def fill() -> None:
        for broker in plan.brokers:
            for bundle in live.bundles_on(broker) if broker not in {BROKER, filled, *done} else ():
                live.hand(bundle, broker, filled)

    once_handed_over(live, fill)
    with pytest.raises(PlanHaltedError, match=f"{filled} is at .* of its capacity|filters do not let it go to"):
        live.run(plan).run()
    assert late not in {command.bundle for command in live.commands}
    assert len(live.commands) == 2


def test_a_plan_waits_as_long_as_a_budget_holds_it_back(tmp_path: Path) -> None:
    live = cluster(tmp_path, SLOW)
    plan, begun = drain(live), live.interval
    assert len(plan.moves) >= 4
    assert live.run(plan).run().done == len(plan.moves)
    assert live.interval - begun >= 10 * PERIOD
    assert "1 not issued yet, 2 under way; held back by 2 unloads in 10 min off one broker" in " ".join(live.said)


def test_a_bundle_that_alone_exceeds_a_budget_is_named_before_anything_is_issued(tmp_path: Path) -> None:
    live = cluster(tmp_path, f"{SETTINGS}guardrails.interval.connections_per_source = 1\n")
    with pytest.raises(
        PlanHaltedError, match="is never issued: alone it is more than 1 connection an interval off one"
    ):
        live.run(drain(live)).run()
    assert live.commands == []


def test_a_standstill_that_nothing_explains_ends_the_plan(tmp_path: Path) -> None:
    live = cluster(tmp_path, SETTINGS)
    plan = drain(live)
    observe = Choice(value="observe", reason="", by="bob", at_ms=1)
    at = once_handed_over(live, lambda: live.change(mode=observe))
    with pytest.raises(PlanHaltedError, match=r"nothing has changed for 8 intervals.*ObserveOnly"):
        live.run(plan).run()
    assert 8 * PERIOD < live.interval - at[0] <= 12 * PERIOD


def test_a_pause_does_not_count_as_a_standstill(tmp_path: Path) -> None:
    live = cluster(tmp_path, SETTINGS)
    plan, paused = drain(live), Pause(reason="", by="bob", at_ms=1)
    at = once_handed_over(live, lambda: live.change(pauses=(paused,)))
    look = live.meanwhile

    def resume() -> None:
        look()
        if at and live.interval == at[0] + 20 * PERIOD:
            live.change(pauses=())

    live.meanwhile = resume
    assert live.run(plan).run().done == len(plan.moves)


def test_a_controller_that_dies_while_a_budget_holds_moves_back_is_not_waited_for(tmp_path: Path) -> None:
    live = cluster(tmp_path, SLOW)
    plan, down = drain(live), list[int]()

    def die() -> None:
        if not down and any("held back by" in text for text in live.said):
            down.append(live.interval)
            live.is_down = True

    live.meanwhile = die
    with pytest.raises(PlanHaltedError, match="nothing has changed for 8 intervals"):
        live.run(plan).run()
    assert live.interval - down[0] <= 12 * PERIOD


def test_a_broker_above_the_urgent_usage_does_not_wait_for_a_plan_that_a_budget_holds_back(tmp_path: Path) -> None:
    conf = "loadBalancerLoadSheddingStrategy=PeakShedder\nloadBalancerDistributeBundlesEvenlyEnabled=false\n"
    shape = ClusterShape(bundles=60, topics=240, brokers=5, empty_brokers=0, placement_skew=0.0, skew=0.3)
    live = LiveCluster(
        settings_in(tmp_path, broker_conf=conf, more=f"{SETTINGS}guardrails.window.unloads_per_source = 3\n"), shape
    )
    for _ in range(4):
        live.advance()
    plan = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    full = "broker-2:8080"
    at: list[int] = []

    def fill() -> None:
        if not at and any("held back by" in text for text in live.said):
            at.append(live.interval)
            for bundle in live.bundles_on("broker-5:8080")[:7]:
                live.hand(bundle, "broker-5:8080", full)
        if at and live.interval == at[0] + 4 * PERIOD:
            raise Over

    live.meanwhile = fill
    with suppress(Over):
        live.run(plan).run()
    assert full in {command.source for command in live.commands if command.interval > at[0]}


def test_a_pause_before_a_decision_has_seen_the_moves_is_no_standstill_either(tmp_path: Path) -> None:
    live = cluster(tmp_path, SETTINGS)
    live.looks = 2
    plan, begun = drain(live), list[int]()

    class Said(list[str]):
        def append(self, text: str) -> None:
            if text.startswith("wave 1") and not begun:
                begun.append(live.interval)
                live.change(pauses=(Pause(reason="", by="bob", at_ms=1),))
            super().append(text)

    def resume() -> None:
        if begun and live.interval == begun[0] + 20 * PERIOD:
            live.change(pauses=())

    live.said, live.meanwhile = Said(), resume
    assert live.run(plan).run().done == len(plan.moves)


class Over(BaseException):
    """Enough was seen."""


@pytest.mark.parametrize(
    ("guardrails", "rate"),
    [
        ("", None),
        ("guardrails.interval.unloads = 2\n", None),
        ("guardrails.interval.unloads = 1\n", 1.5),
        ("guardrails.window_seconds = 660\nguardrails.window.unloads_per_source = 2\n", None),
        ("guardrails.in_flight_per_broker = 1\n", None),
        ('guardrails.maintenance.allowed = ["30 0 * * * for 1h"]\n', None),
    ],
)
def test_a_plan_takes_as_long_as_it_says(tmp_path: Path, guardrails: str, rate: float | None) -> None:
    live = cluster(tmp_path, SETTINGS + guardrails)
    live.looks = 3
    asked = PlanRequest(
        kind=DRAIN, brokers=(BROKER,), wave_moves=3, wave_moves_per_broker=3, connections_per_second=rate
    )
    found = planned_cluster(live.source(), asked)
    begun = live.interval
    assert live.run(found.plan).run().done == len(found.plan.moves)
    assert (live.interval - begun) / 1000 == found.time.seconds
    assert bool(found.time.slowed) == bool(guardrails)
