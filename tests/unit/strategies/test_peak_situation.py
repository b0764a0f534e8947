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
from controller.strategies.shedding.peak_shedder.filling import Filling
from controller.strategies.shedding.peak_shedder.memory import PeakHistory, Proven
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
    varies: bool = False,
    day_known: bool = False,
    capacity: Sequence[float] | None = None,
    **options: Any,
) -> Situation:
    view = cluster_view(*map(Broker, "abcdefgh"[: len(load)]), as_of_ms=AT)
    return situation_of(
        view,
        found(load, later, capacity, **(fits or {})),
        PeakShedder(**options),
        memory or PeakHistory(),
        SeenOfLoad(error, varies, day_known),
        stayed,
    )


def rounded(start: PlanStart) -> tuple[list[float], float, float, bool]:
    return [round(each, 6) for each in start.begin.tolist()], round(start.goal, 6), start.min_gain, start.urgent


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


def test_what_was_learnt_widens_the_margin_by_a_fifth_of_the_capacity_at_most() -> None:
    for learnt, margin in ((0.1, 0.1), (0.3, 0.2)):
        memory = PeakHistory(proven=Proven(error=learnt))
        assert rounded(situation(memory=memory).ordinary)[0] == [
            round(each + margin, 3) for each in (0.575, 0.575, 0.625)
        ]


def test_an_urgent_plan_is_about_now_and_ends_a_little_below_the_urgent_usage_or_at_the_goal() -> None:
    assert rounded(situation().urgent) == ([0.8, 0.8], 0.78, 0.0, True)
    assert rounded(situation(urgent_percent=0.0).urgent) == ([np.inf, np.inf], 0.42, 0.0, True)
    # The mean is 0.8, so that the goal is 0.84; it begins 2 points above it.
    full = [(8.0, 1.0, 1.0)] * 3
    assert rounded(situation(full).urgent) == ([0.86, 0.86], 0.84, 0.0, True)
    assert rounded(situation(full, fits={"r0": 0.1, "r1": 0.1}).urgent)[0] == [1.0, 0.86]


def test_which_brokers_give_and_why() -> None:
    now = situation([(9.0, 3.0, 5.0), (3.0, 8.6, 5.0), (5.0, 3.0, 9.9), (3.0, 3.0, 3.0)])
    assert (now.above.tolist(), now.pressed.tolist()) == ([True, True, True, False], [True, True, False, False])
    assert (now.over_names, now.idle) == (("a", "b", "c"), False)
    assert now.before.tolist() == pytest.approx([0.9, 0.86, 0.99, 0.3])
    assert now.cluster.full.tolist() == pytest.approx([0.9, 0.86, 0.5, 0.3])
    assert (now.mean, now.mean_now, now.cluster.mean) == pytest.approx((0.5725, 0.5, 0.5))


def test_a_broker_at_a_limit_is_not_above_it() -> None:
    even = situation([(5.0, 5.0, 5.0)] * 3, goal_percent=0.0, min_gain_percent=0.0, idle_percent=0.0)
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
    ("last", "fits", "percent", "idle"),
    [
        # The means are 0.4 and 0.4125; a quarter below is 0.3 and 0.309.
        ((2.8, 2.8), {}, 25.0, True),
        ((3.2, 3.2), {}, 25.0, False),
        ((3.005, 3.005), {}, 25.0, False),
        ((3.2, 2.8), {}, 25.0, False),
        ((2.8, 3.2), {}, 25.0, False),
        ((2.8, 2.8), {}, 50.0, False),
        ((2.8, 2.8), {"r0": 0.1}, 25.0, False),
    ],
)
def test_a_broker_is_idle_far_below_the_mean_now_and_at_all_times_to_come(
    last: tuple[float, float], fits: dict[str, float], percent: float, idle: bool
) -> None:
    rest_now, rest_later = (32 - last[0]) / 7, (33 - last[1]) / 7
    load = [*[(rest_now, 1.0, rest_later)] * 7, (last[0], 1.0, last[1])]
    assert situation(load, fits=fits, idle_percent=percent).idle is idle


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


def test_an_idle_broker_gets_what_it_lacks_not_to_be_idle_however_little_each_of_the_others_gives() -> None:
    # The mean is 0.4, and a quarter below it is 0.3: it lacks 1.8, a seventh of that from each.
    now = situation([(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)])
    assert now.over_names == (patience.IDLE_BROKER,)
    assert rounded(to_the_idle(now)) == ([0.414286] * 3, 0.414286, 0.0, False)
    # Half below it is 0.2.
    half = situation([(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)], idle_percent=50.0)
    assert to_the_idle(half).goal == pytest.approx(0.44 - 0.08 / 7)


def test_the_fullest_brokers_give_to_an_idle_one() -> None:
    # The mean is 0.4; 0.1 is lacking, which the fullest one alone has above 0.45; and 0.8, which two have above 0.415.
    alone = [(4.6, 1.0, 4.6), *[(4.05, 1.0, 4.05)] * 5, (4.25, 1.0, 4.25), (2.9, 1.0, 2.9)]
    assert to_the_idle(situation(alone)).goal == pytest.approx(0.45)
    two = [(4.6, 1.0, 4.6), (4.5, 1.0, 4.5), *[(4.14, 1.0, 4.14)] * 5, (2.2, 1.0, 2.2)]
    assert to_the_idle(situation(two)).goal == pytest.approx(0.415)


def test_what_an_idle_broker_lacks_goes_by_its_capacity_and_by_that_of_those_who_give() -> None:
    # The mean is 0.4 of 80: the idle one, of 20, lacks 3.6, and the others, of 60, are at 0.4933.
    load = [(14.8, 1.0, 14.8), (7.4, 1.0, 7.4), (7.4, 1.0, 7.4), (2.4, 1.0, 2.4)]
    wide = situation(load, capacity=(30.0, 15.0, 15.0, 20.0), min_gain_percent=8.0)
    assert to_the_idle(wide).goal == pytest.approx((29.6 - 3.6) / 60)


def test_what_an_idle_broker_lacks_goes_by_the_fullest_time() -> None:
    # The means are 0.4 now and 0.5 in an hour, when a quarter below it is 0.375.
    load = [(4.4, 1.0, 5.4)] * 7 + [(1.2, 1.0, 2.2)]
    assert to_the_idle(situation(load)).goal == pytest.approx(0.54 - 0.155 / 7)
    falls = [(5.4, 1.0, 4.4)] * 7 + [(2.2, 1.0, 1.2)]
    assert to_the_idle(situation(falls)).goal == pytest.approx(0.54 - 0.155 / 7)


def test_a_broker_above_the_urgent_usage_gives_to_an_idle_one_as_much_as_in_an_urgent_plan() -> None:
    # The mean is 0.7; 0.025 is lacking, which the fullest one has above 0.735.
    load = [(7.6, 1.0, 7.6), *[(4.34 / 0.6, 1.0, 4.34 / 0.6)] * 6, (5.0, 1.0, 5.0)]
    calm, urgent = (situation(load, goal_percent=2.0, urgent_percent=usage) for usage in (90.0, 73.0))
    assert (calm.pressed.tolist(), urgent.pressed.tolist()) == ([False] * 8, [True] + [False] * 7)
    assert to_the_idle(calm).goal == pytest.approx(0.735)
    assert to_the_idle(urgent).goal == urgent.urgent.goal == pytest.approx(0.714)


def test_where_load_is_elsewhere_at_other_hours_goal_and_limit_are_higher_by_twice_the_least_gain() -> None:
    known = situation(varies=True, day_known=True)
    assert rounded(known.ordinary) == ([0.675, 0.675, 0.725], 0.625, 0.05, False)


def test_where_load_is_elsewhere_at_other_hours_urgent_moves_have_to_gain_the_least_gain_as_well() -> None:
    for day_known in (False, True):
        assert rounded(situation(varies=True, day_known=day_known).urgent) == ([0.83, 0.83], 0.78, 0.0, True)
    assert rounded(situation(varies=True, min_gain_percent=3.0).urgent)[0] == [0.81, 0.81]
    assert rounded(situation(varies=True, min_gain_percent=1.0).urgent)[0] == [0.8, 0.8]
    assert rounded(situation(varies=True, urgent_percent=0.0).urgent)[0] == [np.inf, np.inf]
    # The mean is 0.8, so that the goal is 0.84.
    assert rounded(situation([(8.0, 1.0, 1.0)] * 3, varies=True).urgent)[0] == [0.89, 0.89]
    hot = [(8.2, 3.0, 3.0), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0)]
    assert situation(hot).pressed.tolist() == [True, False, False]
    assert not situation(hot, varies=True).pressed.any()
    waits = situation(ABOVE, varies=True, day_known=True).start(replace(HELD, changed_ms=UNSETTLED))
    assert isinstance(waits, Verdict)
    assert waits.detail.endswith("for 3 min only brokers above 0.83 give bundles")
    waits = situation(ABOVE, urgent_percent=0.0).start(replace(HELD, changed_ms=UNSETTLED))
    assert isinstance(waits, Verdict)
    assert waits.detail.endswith("for 3 min no broker gives bundles")


def test_where_load_is_elsewhere_at_other_hours_the_report_of_an_urgent_broker_has_to_say_so_too() -> None:
    stated = found([(90.0, 3.0, 90.0), (30.0, 3.0, 30.0)])
    problem = replace(stated.problem, resources=("cpu", "r1", "r2"), capacity=np.full((2, 3), 100.0))
    for reports, varies, pressed in ((82.0, True, False), (84.0, True, True), (79.0, False, True)):
        view = cluster_view(Broker("a", cpu=reports / 100), Broker("b", cpu=0.3), as_of_ms=AT)
        seen = SeenOfLoad(varies=varies)
        now = situation_of(view, replace(stated, problem=problem), PeakShedder(), PeakHistory(), seen, "ab")
        assert now.pressed.tolist() == [pressed, False]
        # A usage without a limit, which PeakShedder takes from other brokers, says nothing.
        unlimited = replace(view, brokers=replace(view.brokers, limit=np.zeros_like(view.brokers.limit)))
        now = situation_of(unlimited, replace(stated, problem=problem), PeakShedder(), PeakHistory(), seen, "ab")
        assert now.pressed.tolist() == [True, False]


def test_until_the_day_is_known_load_that_is_elsewhere_at_other_hours_moves_only_off_brokers_with_an_urgent_usage() -> (
    None
):
    assert not situation(ABOVE, varies=True).above.any()
    assert situation(ABOVE, varies=True, day_known=True).above.tolist() == [True, False, False]
    assert rounded(situation(varies=True, urgent_percent=0.0).ordinary)[0] == [0.675, 0.675, 0.725]
    # Nor do moves that promised too much make it wait for longer.
    hot = situation(HOT, varies=True, memory=PeakHistory(proven=Proven(error=0.2)))
    for memory in (NOT_HELD, HELD):
        assert hot.start(memory) is hot.urgent


def test_where_load_is_elsewhere_at_hours_not_known_yet_no_broker_is_idle_unless_brokers_came_or_went() -> None:
    load = [(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)]
    assert not situation(load, varies=True).idle
    assert situation(load, varies=True, day_known=True).idle
    for ago, idle in ((60, True), (61, False)):
        assert situation(load, varies=True, memory=PeakHistory(changed_ms=AT - ago * MINUTE)).idle is idle


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


def test_where_nobody_knows_why_a_broker_is_hot_the_plan_is_urgent() -> None:
    memory = PeakHistory(proven=Proven(error=0.2))
    unsure = situation([(9.0, 7.0, 1.0), (7.0, 7.0, 1.0), (7.0, 7.0, 1.0)], memory=memory)
    assert (unsure.above.tolist(), unsure.pressed.tolist()) == ([False] * 3, [True, False, False])
    assert unsure.start(NOT_HELD) is unsure.urgent


def test_after_load_jumped_only_a_hot_broker_gives_and_it_says_how_long() -> None:
    jumped = replace(HELD, jumped_ms=AT - 2 * MINUTE, changed_ms=UNSETTLED)
    waits = situation(ABOVE, load_settle_minutes=60.0).start(jumped)
    assert isinstance(waits, Verdict)
    assert (waits.reason, waits.detail) == (
        Reason.COOL_DOWN,
        "load jumped 2 min ago; it may go back: for 58 min only brokers above 0.8 give bundles",
    )
    hot, short = situation(HOT), situation(ABOVE, load_settle_minutes=2.0, settle_minutes=0.0)
    assert hot.start(jumped) is hot.urgent
    assert short.start(jumped) is short.ordinary


def test_while_bundles_are_split_and_in_the_next_round_only_a_hot_broker_gives() -> None:
    now, hot = situation(ABOVE), situation(HOT)
    for splits in (0b01, 0b10, 0b11):
        waits = now.start(replace(HELD, splits=splits))
        assert isinstance(waits, Verdict)
        assert (waits.reason, waits.detail) == (
            Reason.COOL_DOWN,
            "bundles are split, and their parts go elsewhere: only brokers above 0.8 give bundles",
        )
        assert hot.start(replace(HELD, splits=splits)) is hot.urgent


def test_what_helpers_have_is_the_goal_so_that_they_give_nothing_back() -> None:
    two = [(8.0, 3.0, 3.0), (5.0, 3.0, 3.0), (3.0, 3.0, 3.0), (2.0, 3.0, 3.0)]
    now, full = situation(two), situation([(8.0, 3.0, 3.0), (5.4, 3.0, 3.0), (3.0, 3.0, 3.0), (2.0, 3.0, 3.0)])
    helped = replace(HELD, helped={"b": AT - 23 * 60 * MINUTE})
    assert now.ordinary.goal == pytest.approx(0.4725)
    found, too_full = now.start(helped), full.start(helped)
    assert isinstance(found, PlanStart)
    assert isinstance(too_full, PlanStart)
    assert found == now.ordinary._replace(goal=0.5)
    # One above its own limit gives like any other.
    assert too_full is full.ordinary
    assert now.start(replace(HELD, helped={"b": AT - 24 * 60 * MINUTE, "d": AT})) is now.ordinary


def test_a_broker_that_was_relieved_after_load_jumped_is_no_reason_for_an_ordinary_plan() -> None:
    memory = replace(HELD, relieved={"a": AT - 23 * 60 * MINUTE})
    now, hot, other = situation(ABOVE, memory=memory), situation(HOT, memory=memory), situation(ABOVE)
    assert (now.above.tolist(), now.over_names, now.start(memory)) == ([False] * 3, (), None)
    assert (now.relieved.tolist(), other.relieved.tolist()) == ([True, False, False], [False] * 3)
    # In need it gives, and no more than that takes.
    assert (hot.over_names, hot.relieved.tolist(), hot.start(memory)) == (("a",), [False] * 3, hot.urgent)
    old = situation(ABOVE, memory=replace(HELD, relieved={"a": AT - 24 * 60 * MINUTE, "b": AT}))
    assert old.above.tolist() == [True, False, False]


def test_helpers_give_nothing_to_an_idle_broker() -> None:
    load = [(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)]
    start = situation(load, hold=1).start(PeakHistory(over={"": 1}, helped={"b": AT}))
    assert isinstance(start, PlanStart)
    assert start.goal == pytest.approx(0.44)


# ---- brokers that came back ----


def back(*names: str, hours: float = 1.0) -> PeakHistory:
    """Before so many hours they came back."""
    return PeakHistory(over={"": 0b11, "a": 0b11}, returned=dict.fromkeys(names, AT - int(hours * 60 * MINUTE)))


#: The mean is 0.4; three quarters of it are 0.3, and two fifths are 0.16.
LOW: Final = [(4.4, 1.0, 4.4)] * 7 + [(1.2, 1.0, 1.2)]
HALF: Final = [(4.25, 1.0, 4.25)] * 7 + [(2.25, 1.0, 2.25)]


def test_a_broker_that_came_back_within_a_day_is_idle_below_two_fifths_of_the_mean_alone() -> None:
    for memory, idle, spared in ((PeakHistory(), True, False), (back("h"), False, True), (back("a"), True, False)):
        now = situation(HALF, memory=memory)
        assert now.idle is idle
        assert now.spared.tolist() == [False] * 7 + [spared]
    assert not situation(HALF, memory=back("h", hours=23.9)).idle
    assert situation(HALF, memory=back("h", hours=24)).idle
    later_full = situation([*HALF[:7], (2.25, 1.0, 4.25)], memory=back("h"))
    low = situation(LOW, memory=back("h"))
    assert not later_full.spared.any()
    assert not low.spared.any()
    assert to_the_idle(low).goal == pytest.approx(0.44 - 0.04 / 7)


def test_an_idle_broker_has_enough_once_one_of_its_times_is_not_below_what_makes_it_idle() -> None:
    few, idle = np.array([[0.3, 0.2], [0.3, 0.2]]), np.array([True, False])
    filling = Filling(times=[0, 2], idle=idle, few=few, level=0.5, sparing=False)
    suffices = {0.29: False, 0.3: True}
    for now, enough in suffices.items():
        assert filling.suffices(np.array([[now, 0.0, 0.19], [0.9, 0.9, 0.9]])) is enough
    assert filling.suffices(np.array([[0.29, 0.0, 0.2], [0.1, 0.1, 0.1]]))
    assert not filling.suffices(np.array([[0.29, 0.9, 0.19], [0.1, 0.1, 0.1]]))


def test_only_where_all_idle_brokers_came_back_no_bundle_is_more_than_they_lack() -> None:
    two = [*[(4.8, 1.0, 4.8)] * 6, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
    for names, sparing in (("", False), ("h", False), ("gh", True)):
        start = situation(two, memory=back(*names)).start(back(*names))
        assert isinstance(start, PlanStart)
        assert (start.lacking is not None) is sparing, names


def test_the_option_says_how_far_below_the_mean_and_never_makes_a_broker_idle_earlier_than_another_one() -> None:
    assert situation(HALF, memory=back("h"), returned_percent=40.0).idle
    for percent in (0.0, 25.0):
        now = situation(HALF, memory=back("h"), returned_percent=percent)
        assert now.idle
        assert not now.spared.any()
    assert not situation(LOW, memory=back("h"), idle_percent=100.0).idle
    assert not situation(LOW, memory=back("h"), returned_percent=100.0).idle


#: The mean is 0.4, and of all but the last 0.44: these give above 0.512, as "a" is.
ONE_ABOVE: Final = [(5.2, 1.0, 5.2), *[(25.6 / 6, 1.0, 25.6 / 6)] * 6, (1.2, 1.0, 1.2)]


def test_a_broker_that_came_back_gets_what_it_lacks_before_another_one_is_brought_to_the_goal() -> None:
    now = situation(ONE_ABOVE, memory=back("h"))
    assert (now.above.tolist(), now.over_names) == ([True] + [False] * 7, ("a", patience.IDLE_BROKER))
    start = now.start(back("h"))
    assert isinstance(start, PlanStart)
    # It lacks 0.4, which "a" has above this.
    assert start.goal == pytest.approx(0.48)
    assert start.min_gain == 0.0
    assert start.most == pytest.approx(0.512)
    assert rounded(start)[0] == [pytest.approx(start.goal, abs=1e-6)] * 3
    # One that did not come back waits until no other broker is above its limit, as does one that may not be so empty.
    for other in (situation(ONE_ABOVE), situation(ONE_ABOVE, memory=back("h"), returned_percent=25.0)):
        assert (other.idle, other.start(HELD)) == (False, other.ordinary)


def test_where_others_would_be_above_their_limit_even_so_the_ordinary_plan_is_made() -> None:
    # The others' mean is 0.44, and their limit 0.512.  What "h" lacks leaves "a" at 0.56.
    uneven = [(6.0, 1.0, 6.0), *[(24.8 / 6, 1.0, 24.8 / 6)] * 6, (1.2, 1.0, 1.2)]
    now = situation(uneven, memory=back("h"))
    assert (now.above.tolist(), now.idle) == ([True] + [False] * 7, False)
    assert now.start(back("h")) == now.ordinary


def test_for_a_day_after_a_broker_came_back_the_others_are_compared_with_their_own_mean() -> None:
    # The mean is 0.4, and that of the others 0.5 in the time to come, and now.
    few = [(5.2, 1.0, 5.2), (4.8, 1.0, 4.8), (2.0, 1.0, 2.0)]
    usual = situation(few)
    assert (rounded(usual.ordinary)[:2], usual.above.tolist()) == (([0.47, 0.47, 0.52], 0.42), [True, True, False])
    for memory in (back("c"), back("c", hours=23.9)):
        now = situation(few, memory=memory)
        assert (rounded(now.ordinary)[:2], now.above.tolist()) == (([0.575, 0.575, 0.625], 0.525), [False] * 3)
        # What is urgent goes by the mean of all.
        assert rounded(now.urgent) == rounded(usual.urgent)
    for same in (
        situation(few, memory=back("c", hours=24)),
        situation(few, memory=back("c"), returned_percent=25.0),
        situation(few, memory=back("a")),
    ):
        assert rounded(same.ordinary) == rounded(usual.ordinary)
    # The means are 0.44 and 0.447, and three quarters of them are 0.33 and 0.335.
    for low, mean in ((3.2, 0.5), (3.4, 1.34 / 3)):
        some = situation([*few[:2], (low, 1.0, low)], memory=back(*"abc"))
        assert some.ordinary.goal == pytest.approx(mean * 1.05)


def test_where_more_than_a_third_came_back_and_are_far_below_the_others_are_compared_with_the_mean_of_all() -> None:
    load = [(6.0, 1.0, 6.0)] * 4 + [(3.0, 1.0, 3.0)] * 2
    assert situation(load, memory=back("e", "f")).ordinary.goal == pytest.approx(0.6 * 1.05)
    assert situation(load[1:], memory=back("d", "e")).ordinary.goal == pytest.approx(0.48 * 1.05)
    assert situation(load, memory=back(*"abcdef")).ordinary.goal == pytest.approx(0.6 * 1.05)


def test_what_the_others_mean_is_goes_by_their_capacity() -> None:
    load = [(6.0, 1.0, 6.0), (12.0, 1.0, 12.0), (1.0, 1.0, 1.0)]
    now = situation(load, capacity=(10.0, 30.0, 10.0), memory=back("c"))
    assert now.ordinary.goal == pytest.approx(18 / 40 * 1.05)


def test_while_a_relieved_broker_is_above_its_limit_a_broker_that_came_back_is_not_idle() -> None:
    memory = replace(back("h"), relieved={"a": AT})
    now = situation(ONE_ABOVE, memory=memory)
    assert (now.relieved.tolist()[0], now.idle, now.start(memory)) == (True, False, None)


def test_what_is_given_to_an_idle_broker_leaves_nobody_above_the_urgent_goal() -> None:
    assert to_the_idle(situation(LOW)).most == pytest.approx(0.44)
    # The mean is 0.7, and a broker gives above 0.764.
    load = [(7.6, 1.0, 7.6), *[(4.34 / 0.6, 1.0, 4.34 / 0.6)] * 6, (5.0, 1.0, 5.0)]
    calm, urgent = (situation(load, goal_percent=2.0, urgent_percent=usage) for usage in (90.0, 73.0))
    assert to_the_idle(calm).most == pytest.approx(0.76)
    assert to_the_idle(urgent).most == urgent.urgent.goal == pytest.approx(0.714)
