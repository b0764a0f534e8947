"""Which brokers are to give in a round, and whether now: limits and messages in numbers worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from controller.model.decision import Reason, Verdict
from controller.planning.from_view import MappedProblem
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.shares import Fit
from controller.strategies.shedding.peak_shedder import PeakShedder, patience
from controller.strategies.shedding.peak_shedder.memory import Absence, PeakHistory
from controller.strategies.shedding.peak_shedder.pools import Pools
from controller.strategies.shedding.peak_shedder.situation import PlanStart, SeenOfLoad, Situation, situation_of
from controller.strategies.view_builder import Broker, cluster_view

MINUTE: Final = 60_000
AT: Final = 100 * MINUTE
#: Of each broker the load of now, of two resources, and of an hour ahead; the means are 0.4, 0.3 and 0.5.
LOAD: Final = ((6.0, 3.0, 9.0), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0))


def found(
    load: Sequence[Sequence[float]], later: int = 1, capacity: Sequence[float] | None = None, **errors: float
) -> MappedProblem:
    """Brokers, of 10 each, or *capacity*, whose load stays, but for one bundle of 1 on the first.

    *errors*: of the fits of "r0", "r1", ...
    """
    of = np.array(load)
    n, columns = of.shape
    of[0] -= 1.0
    problem = BalanceProblem(
        resources=tuple(f"r{column}" for column in range(columns)),
        capacity=np.tile(np.array(capacity or [10.0] * n)[:, None], (1, columns)),
        fixed=of,
        size=np.ones((1, columns)),
        owner=np.zeros(1, np.int64),
        connections=np.ones(1),
        disturbance=np.ones(1),
    )
    fits = {name: Fit((0.0, 0.0, 0.0), 0.0, error) for name, error in errors.items()}
    return MappedProblem(problem=problem, rows=np.zeros(1, np.int64), fits=fits, later=(60.0,) * later)


def situation(
    load: Sequence[Sequence[float]] = LOAD,
    *,
    error: float = 0.0,
    memory: PeakHistory | None = None,
    stayed: Sequence[str] = "abcdefgh",
    later: int = 1,
    fits: dict[str, float] | None = None,
    shifting: float = 0.0,
    pools: Sequence[int] | None = None,
    capacity: Sequence[float] | None = None,
    **options: Any,
) -> Situation:
    view = cluster_view(*map(Broker, "abcdefgh"[: len(load)]), as_of_ms=AT)
    return situation_of(
        view,
        found(load, later, capacity, **(fits or {})),
        Pools(of=np.array(pools or [0] * len(load))),
        PeakShedder(**options),
        memory or PeakHistory(),
        seen=SeenOfLoad(error, shifting),
        stayed=stayed,
    )


def rounded(start: PlanStart, broker: int = 0) -> tuple[list[float], float, float, bool]:
    begin = [round(each, 6) for each in start.begin[broker].tolist()]
    return begin, round(float(start.goal[broker]), 6), float(start.min_gain[broker]), start.urgent


def test_a_broker_gives_above_the_goal_and_the_least_gain_which_is_twice_as_much_for_times_to_come() -> None:
    assert rounded(situation().ordinary) == ([0.575, 0.575, 0.625], 0.525, 0.05, False)
    assert rounded(situation(goal_percent=10.0, min_gain_percent=2.0).ordinary) == (
        [0.57, 0.57, 0.59],
        0.55,
        0.02,
        False,
    )


def test_where_load_does_not_explain_usage_two_errors_are_added_and_the_forecasts_error_to_times_to_come() -> None:
    assert rounded(situation(fits={"r0": 0.1}).ordinary)[0] == [0.605, 0.575, 0.625]
    assert rounded(situation(fits={"r0": 0.1, "r2": 0.1}, error=0.2).ordinary)[0] == [0.605, 0.575, 0.725]
    assert situation(fits={"r0": 0.1}).tolerated == pytest.approx(0.08)
    assert situation(fits={"r0": 0.01, "r2": 0.9}).tolerated == 0.05


def test_an_urgent_plan_is_about_now_and_ends_a_little_below_the_urgent_usage_or_at_the_goal() -> None:
    assert rounded(situation().urgent) == ([0.8, 0.8], 0.78, 0.02, True)
    assert rounded(situation(urgent_percent=0.0).urgent) == ([np.inf, np.inf], 0.42, 0.02, True)
    # The mean is 0.8, so that the goal is 0.84; it begins 2 points above it.
    full = [(8.0, 1.0, 1.0)] * 3
    assert rounded(situation(full).urgent) == ([0.86, 0.86], 0.84, 0.02, True)
    assert rounded(situation(full, fits={"r0": 0.1, "r1": 0.1}).urgent)[0] == [0.95, 0.86]


def test_where_load_goes_to_other_bundles_an_urgent_broker_has_to_fall_by_more() -> None:
    assert rounded(situation(shifting=0.02).urgent) == ([0.8, 0.8], 0.78, 0.02, True)
    begin, goal, min_gain, _ = rounded(situation(shifting=0.1).urgent)
    assert (begin, goal, round(min_gain, 6)) == ([0.86, 0.86], 0.78, 0.08)


def test_which_brokers_give_and_why() -> None:
    now = situation([(9.0, 3.0, 5.0), (3.0, 8.6, 5.0), (5.0, 3.0, 9.9), (3.0, 3.0, 3.0)])
    assert (now.above.tolist(), now.pressed.tolist()) == ([True, True, True, False], [True, True, False, False])
    assert (now.over_names, now.idle) == (("a", "b", "c"), False)
    assert now.before.tolist() == pytest.approx([0.9, 0.86, 0.99, 0.3])
    assert now.cluster.full.tolist() == pytest.approx([0.9, 0.86, 0.5, 0.3])
    assert (now.mean, now.mean_now, now.cluster.mean) == pytest.approx((0.5725, 0.5, 0.5))


def test_a_broker_at_a_limit_is_not_above_it() -> None:
    even = situation([(5.0, 5.0, 5.0)] * 3, goal_percent=0.0, min_gain_percent=0.0)
    assert not even.above.any()
    assert not even.idle
    assert not situation([(8.0, 3.0, 3.0), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0)]).pressed.any()


def test_a_broker_is_not_pressed_in_its_first_round() -> None:
    hot = [(9.0, 3.0, 3.0), (9.0, 3.0, 3.0), (3.0, 3.0, 3.0)]
    for changed, pressed in ((AT, [True, False, False]), (AT - 1, [True, True, False])):
        memory = PeakHistory(changed_ms=changed)
        assert situation(hot, memory=memory, stayed=("a", "c")).pressed.tolist() == pressed


def test_without_times_to_come_the_load_of_now_is_left() -> None:
    now = situation().without_later()
    assert (now.load.tolist(), now.before.tolist()) == ([[6, 3], [3, 3], [3, 3]], [0.6, 0.3, 0.3])
    assert now.found.problem.resources == ("r0", "r1")
    assert situation().ends_of([PlannedMove(0, 0, 2)]).tolist() == pytest.approx([0.8, 0.3, 0.4])


@pytest.mark.parametrize(
    ("last", "fits", "idle"),
    [
        # The means are 0.4 and 0.4125; a quarter below is 0.3 and 0.309.
        ((2.8, 2.8), {}, True),
        ((3.2, 3.2), {}, False),
        ((3.005, 3.005), {}, False),
        ((3.2, 2.8), {}, False),
        ((2.8, 3.2), {}, False),
        ((2.8, 2.8), {"r0": 0.1}, False),
    ],
)
def test_a_broker_is_idle_far_below_the_mean_now_and_at_all_times_to_come(
    last: tuple[float, float], fits: dict[str, float], idle: bool
) -> None:
    rest_now, rest_later = (32 - last[0]) / 7, (33 - last[1]) / 7
    load = [*[(rest_now, 1.0, rest_later)] * 7, (last[0], 1.0, last[1])]
    assert situation(load, fits=fits).idle is idle


def test_a_broker_that_is_below_the_mean_by_less_than_the_least_gain_is_not_idle() -> None:
    # The mean is 0.1, and a third below it is 0.067.
    load = [(1.1, 0.1, 1.1)] * 3 + [(0.7, 0.1, 0.7)]
    assert not situation(load).idle
    assert situation(load, min_gain_percent=2.9).idle


def to_the_idle(now: Situation) -> PlanStart:
    """What is planned where only an idle broker is a reason."""
    assert now.idle
    start = now.start(PeakHistory(over={patience.IDLE_BROKER: 0b11}))
    assert isinstance(start, PlanStart)
    return start


def test_the_fullest_brokers_give_to_an_idle_one() -> None:
    # The mean is 0.4; 0.1 is lacking, which the fullest one alone has above 0.45; and 0.8, which two have above 0.415.
    alone = [(4.6, 1.0, 4.6), *[(4.05, 1.0, 4.05)] * 5, (4.25, 1.0, 4.25), (2.9, 1.0, 2.9)]
    assert to_the_idle(situation(alone)).goal[0] == pytest.approx(0.45)
    two = [(4.6, 1.0, 4.6), (4.5, 1.0, 4.5), *[(4.14, 1.0, 4.14)] * 5, (2.2, 1.0, 2.2)]
    assert to_the_idle(situation(two)).goal[0] == pytest.approx(0.415)


def test_what_an_idle_broker_lacks_goes_by_its_capacity_and_by_that_of_those_who_give() -> None:
    # The mean is 0.4 of 80: the idle one, of 20, lacks 3.6, and the others, of 60, are at 0.4933.
    load = [(14.8, 1.0, 14.8), (7.4, 1.0, 7.4), (7.4, 1.0, 7.4), (2.4, 1.0, 2.4)]
    wide = situation(load, capacity=(30.0, 15.0, 15.0, 20.0), min_gain_percent=8.0)
    assert to_the_idle(wide).goal[0] == pytest.approx((29.6 - 3.6) / 60)


def test_what_an_idle_broker_lacks_goes_by_the_fullest_time() -> None:
    # The means are 0.4 now and 0.5 in an hour, when a quarter below it is 0.375.
    load = [(4.4, 1.0, 5.4)] * 7 + [(1.2, 1.0, 2.2)]
    assert to_the_idle(situation(load)).goal[0] == pytest.approx(0.54 - 0.155 / 7)
    falls = [(5.4, 1.0, 4.4)] * 7 + [(2.2, 1.0, 1.2)]
    assert to_the_idle(situation(falls)).goal[0] == pytest.approx(0.54 - 0.155 / 7)


def test_a_broker_above_the_urgent_usage_gives_to_an_idle_one_as_much_as_in_an_urgent_plan() -> None:
    # The mean is 0.7; 0.025 is lacking, which the fullest one has above 0.735.
    load = [(7.6, 1.0, 7.6), *[(4.34 / 0.6, 1.0, 4.34 / 0.6)] * 6, (5.0, 1.0, 5.0)]
    calm, urgent = (situation(load, goal_percent=2.0, urgent_percent=usage) for usage in (90.0, 73.0))
    assert (calm.pressed.tolist(), urgent.pressed.tolist()) == ([False] * 8, [True] + [False] * 7)
    assert to_the_idle(calm).goal[0] == pytest.approx(0.735)
    assert to_the_idle(urgent).goal[0] == urgent.urgent.goal[0] == pytest.approx(0.714)


# ---- whether to plan now ----

HELD: Final = PeakHistory(over={"a": 0b011})
NOT_HELD: Final = PeakHistory(over={"a": 0b001})
#: Brokers came or went 2 minutes ago; it waits for 3 more.
UNSETTLED: Final = AT - 2 * MINUTE
ABOVE: Final = [(7.0, 3.0, 7.0), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0)]
HOT: Final = [(9.0, 3.0, 9.0), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0)]


def test_nothing_is_planned_where_no_broker_is_to_give() -> None:
    assert situation([(3.0, 3.0, 3.0)] * 3).start(HELD) is None


def test_an_ordinary_plan_is_made_once_a_broker_was_above_its_limit_for_long_enough() -> None:
    now = situation(ABOVE)
    assert now.start(HELD) is now.ordinary
    two = situation([(7.0, 3.0, 7.0), (7.0, 3.0, 7.0), (1.0, 3.0, 1.0)])
    assert (two.over_names, two.start(HELD)) == (("a", "b"), two.ordinary)
    waits = now.start(NOT_HELD)
    assert isinstance(waits, Verdict)
    assert (waits.reason, waits.subject, waits.by) == (Reason.HIT_COUNT, "cluster", "PeakShedder")
    assert waits.detail == "a broker gives bundles once it was above its limit in 2 of the last 3 rounds"


def test_while_brokers_come_and_go_it_says_how_long_it_waits() -> None:
    waits = situation(ABOVE).start(replace(HELD, changed_ms=UNSETTLED))
    assert isinstance(waits, Verdict)
    assert (waits.reason, waits.subject, waits.by) == (Reason.COOL_DOWN, "cluster", "PeakShedder")
    assert waits.detail == (
        "brokers came or went 2 min ago; others may follow: for 3 min only brokers above 0.8 give bundles"
    )
    settled = situation(ABOVE)
    assert settled.start(replace(HELD, changed_ms=AT - 5 * MINUTE)) is settled.ordinary


def test_a_hot_broker_does_not_wait_and_gives_as_far_as_an_ordinary_plan_would_unless_brokers_come_and_go() -> None:
    now = situation(HOT)
    assert now.start(NOT_HELD) is now.ordinary
    assert now.start(replace(NOT_HELD, changed_ms=UNSETTLED)) is now.urgent
    assert now.start(replace(HELD, changed_ms=UNSETTLED)) is now.urgent


def test_after_load_jumped_only_a_hot_broker_gives_and_it_says_how_long() -> None:
    jumped = replace(HELD, jumped_ms=AT - 2 * MINUTE, changed_ms=UNSETTLED)
    waits = situation(ABOVE, settle_minutes=60.0).start(replace(jumped, changed_ms=-1))
    assert isinstance(waits, Verdict)
    assert (waits.reason, waits.detail) == (
        Reason.COOL_DOWN,
        "load jumped 2 min ago; it may go back: for 58 min only brokers above 0.8 give bundles",
    )
    hot, short = situation(HOT), situation(ABOVE, settle_minutes=2.0)
    assert hot.start(jumped) is hot.urgent
    assert short.start(jumped) is short.ordinary


# ---- brokers that came back ----

#: The mean is 0.4; three quarters of it are 0.3, and two fifths are 0.16.
LOW: Final = [(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)]
HALF: Final = [(4.25, 1.0, 4.25)] * 7 + [(2.25, 1.0, 2.25)]


def back(away_minutes: float, hours: float = 0.0) -> PeakHistory:
    """The last of eight brokers came back so many hours ago."""
    back_ms = AT - int(hours * 60 * MINUTE)
    gone = Absence(gone_ms=back_ms - int(away_minutes * MINUTE), back_ms=back_ms)
    return PeakHistory(over={"": 0b11}, away={"h": gone})


def test_a_broker_that_came_back_at_once_is_idle_below_two_fifths_of_the_mean_a_new_one_below_three_quarters() -> None:
    assert not situation(HALF, memory=back(0)).idle
    assert situation(LOW, memory=back(0)).idle
    assert situation(HALF).idle
    for long_ago in (back(240), back(0, hours=24)):
        assert to_the_idle(situation(HALF, memory=long_ago)).goal[0] == to_the_idle(situation(HALF)).goal[0]


def test_a_minute_more_away_changes_what_it_gets_by_little() -> None:
    goals = [to_the_idle(situation(LOW, memory=back(minutes))).goal[0] for minutes in range(0, 260, 2)]
    steps = -np.diff(goals)
    assert (steps >= 0).all()
    # In all, the others come down by 2 points.
    assert goals[0] - goals[-1] == pytest.approx(0.14 / 7)
    assert steps.max() <= 0.14 / 7 / 100


def test_what_a_broker_that_came_back_does_not_get_is_no_reason_for_the_others_to_give() -> None:
    load = [(5.8, 1.0, 5.8)] * 3 + [(1.0, 1.0, 1.0)]
    of_four = PeakHistory(away={"d": Absence(gone_ms=AT - MINUTE, back_ms=AT)})
    assert rounded(situation(load).ordinary)[1] == pytest.approx(1.05 * 0.46)
    assert situation(load).above.tolist() == [True, True, True, False]
    assert rounded(situation(load, memory=of_four).ordinary)[1] > 1.05 * 0.54
    assert not situation(load, memory=of_four).above.any()


# ---- pools, and load that goes from bundle to bundle ----


def test_each_pool_has_its_own_mean_goal_and_urgent_usage() -> None:
    # A full pool beside one at 30 %.
    load = [(9.6, 1.0, 9.6), (9.4, 1.0, 9.4), (3.0, 1.0, 3.0), (3.0, 1.0, 3.0)]
    together, apart = situation(load), situation(load, pools=[0, 0, 1, 1])
    assert together.pressed.tolist() == together.above.tolist() == [True, True, False, False]
    assert not (apart.pressed | apart.above).any()
    assert [rounded(apart.ordinary, broker)[1] for broker in (0, 3)] == [round(1.05 * 0.95, 6), 0.315]
    assert [rounded(apart.urgent, broker)[1] for broker in (0, 3)] == [round(1.05 * 0.95, 6), 0.78]


def test_an_idle_broker_of_another_pool_is_no_reason_to_give() -> None:
    load = [(4.0, 1.0, 4.0), (4.0, 1.0, 4.0), (0.1, 1.0, 0.1)]
    assert situation(load).over_names
    assert situation(load, pools=[0, 0, 1]).over_names == ()


def test_the_goal_is_wider_by_what_is_on_other_bundles_two_hours_later() -> None:
    steady, shifting = situation().ordinary, situation(shifting=0.1).ordinary
    assert shifting.goal[0] - steady.goal[0] == pytest.approx(0.2 * 0.5)
    assert (shifting.begin - steady.begin).tolist() == [[pytest.approx(0.2 * 0.5)] * 3] * 3
