"""How long a plan takes, worked out by hand: waves, budgets, windows, and what says so."""

from dataclasses import replace

import pytest

from controller.cycle.limits import Budget, Limits
from controller.model.memory import Issued
from controller.offline.plans.plan_time import PlanTime, plan_time
from controller.planning.plans.plan import Plan
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.planning.plans.waves import WaveLimits, WavePace
from controller.settings.maintenance import Maintenance
from tests.balance_problems import problem
from tests.plans import plan_of

ANY_TIME, NONE = Maintenance(), Limits()
#: T of the load of these plans: 2023-11-14T22:14:00Z.
LOAD = 1_700_000_040_000
MINUTES = 60_000


def drain(moves: int = 4, connections: float = 1.0, rate: float | None = None) -> Plan:
    """*moves* bundles leave a broker, two in a wave."""
    one = problem([[100.0]] * 3, [(0, [1.0])] * moves, connections=[connections] * moves)
    step = empty_step(one, [0], PlanLimits(waves=WaveLimits(max_moves=2), effort=2000))
    assert [len(wave) for wave in step.waves] == [2] * (moves // 2)
    return replace(plan_of(one, [step]), pace=WavePace(wave_seconds=120.0, connections_per_second=rate))


def minutes(found: PlanTime) -> float:
    return found.seconds / 60


def test_a_plan_takes_an_interval_and_two_more_for_each_wave() -> None:
    for moves in (2, 4, 8):
        found = plan_time(drain(moves), NONE, ANY_TIME)
        assert (minutes(found), found.slowed, found.never) == (1 + moves, "", ())


def test_a_budget_of_the_window_is_waited_for_and_named() -> None:
    limits = Limits(window=Budget(unloads_per_source=2), window_ms=10 * MINUTES)
    found = plan_time(drain(), limits, ANY_TIME)
    # Two moves in minute 2, the next two as soon as these have left the window, in minute 12.
    assert minutes(found) == 13
    assert found.slowed == (
        "13 min instead of 5 min, because of 2 unloads in 10 min off one broker (guardrails.window.unloads_per_source)"
    )


def test_an_hour_is_called_an_hour_and_what_was_issued_before_counts() -> None:
    before = Issued(
        action="unload", namespace="acme/x", source="b", destination="c", connections=1, interval=LOAD - 50 * MINUTES
    )
    limits = Limits(window=Budget(unloads=2))
    alone, after = plan_time(drain(2), limits, ANY_TIME), plan_time(drain(2), limits, ANY_TIME, [before])
    assert (minutes(alone), alone.slowed) == (3, "")
    # One of two in minute 2; the other one once that of before has left the window, in minute 10.
    assert minutes(after) == 11
    assert "because of 2 unloads an hour (guardrails.window.unloads)" in after.slowed


@pytest.mark.parametrize(
    ("limits", "takes", "told"),
    [
        (Limits(interval=Budget(unloads=1)), 9, "1 unload an interval (guardrails.interval.unloads)"),
        (Limits(in_flight=1), 9, "1 command in flight (guardrails.in_flight)"),
        (Limits(in_flight_per_broker=1), 9, "1 command in flight of one broker (guardrails.in_flight_per_broker)"),
        (
            Limits(interval=Budget(connections_per_source=1), window=Budget(unloads_per_destination=100)),
            9,
            "1 connection an interval off one broker (guardrails.interval.connections_per_source)",
        ),
    ],
)
def test_what_an_interval_allows_cuts_waves(limits: Limits, takes: int, told: str) -> None:
    found = plan_time(drain(), limits, ANY_TIME)
    assert minutes(found) == takes
    assert found.slowed.partition("because of ")[2] == told


def test_connections_take_their_time_but_after_the_last_wave() -> None:
    # Of 200 connections, one a second: the second wave is handed over 200 s after the first one.
    assert minutes(plan_time(drain(4, 100.0, rate=1.0), NONE, ANY_TIME)) == 2 + 4 + 1
    assert minutes(plan_time(drain(4, 10.0, rate=1.0), NONE, ANY_TIME)) == 5


def test_outside_of_maintenance_windows_nothing_moves() -> None:
    # The load is of 22:14; decisions with moves follow in every second minute.
    found = plan_time(drain(), NONE, Maintenance(allowed=["0 23 * * * for 1h"]))
    assert minutes(found) == 46 + 2 + 1
    assert found.slowed.startswith("49 min instead of 5 min, because of guardrails.maintenance (outside of the allowed")
    before = Issued(action="unload", namespace="acme/x", source="b", destination="c", connections=1, interval=LOAD)
    also = plan_time(drain(), Limits(window=Budget(unloads=9)), Maintenance(allowed=["0 23 * * * for 1h"]), [before])
    assert minutes(also) == 49, "what is in the rolling window says nothing of when the window opens"
    hourly = replace(drain(), period_ms=60 * MINUTES)
    never = plan_time(hourly, NONE, Maintenance(allowed=["0 0 1 1 * for 1h"]))
    assert len(never.never) == 2
    assert all("is not issued for 8 days" in each for each in never.never)


def test_a_bundle_that_alone_exceeds_a_budget_is_never_issued() -> None:
    limits = Limits(interval=Budget(connections_per_source=99))
    found = plan_time(drain(2, connections=100.0), limits, ANY_TIME)
    assert found.seconds == 0
    assert [each.partition(" ")[2] for each in found.never] == [
        "is never issued: alone it is more than 99 connections an interval off one broker"
        " (guardrails.interval.connections_per_source)"
    ] * 2


def test_each_step_begins_with_a_decision_of_its_own() -> None:
    plan = drain()
    found = plan_time(replace(plan, steps=(plan.steps[0], plan.steps[0])), NONE, ANY_TIME)
    assert found.steps == (300.0, 300.0)


def test_each_wave_has_its_time_and_what_delays_it() -> None:
    limits = Limits(interval=Budget(unloads_per_source=1))
    found = plan_time(drain(4), limits, ANY_TIME)
    [waves] = found.waves
    assert len(waves) == 2
    assert all("unloads_per_source" in wave.delayed_by for wave in waves)
    assert [wave.ends for wave in waves][-1] == found.steps[0]
    assert all(wave.ready <= (wave.begins or 0) < (wave.ends or 0) for wave in waves)
    never = plan_time(drain(4), NONE, Maintenance(allowed=["0 0 1 1 * for 1h"]))
    assert {(wave.begins, wave.ends) for wave in never.waves[0]} == {(None, None)}
    assert never.waves[0][0].delayed_by.startswith("guardrails.maintenance")
