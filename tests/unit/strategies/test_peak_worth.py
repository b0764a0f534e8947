"""What a plan of PeakShedder is worth, in numbers worked out by hand."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from controller.planning.from_view import MappedProblem
from controller.planning.objective import load_after
from controller.planning.problem import PlannedMove
from controller.strategies.shedding.peak_shedder.worth import gain_of, gained_minutes, share_disturbed
from tests.balance_problems import problem

MOVE: Final = PlannedMove(0, 0, 1)


def stated(*later: float) -> MappedProblem:
    """Two resources of now, and one for each time to come; three brokers of 10."""
    width = 2 + len(later)
    one = problem([[10.0] * min(width, 3)] * 3, [])
    return MappedProblem(
        problem=type(one)(
            resources=tuple(f"r{column}" for column in range(width)),
            capacity=np.full((3, width), 10.0),
            fixed=np.zeros((3, width)),
            size=np.zeros((0, width)),
            owner=np.zeros(0, np.int64),
            connections=np.zeros(0),
            disturbance=np.zeros(0),
        ),
        rows=np.zeros(0, np.int64),
        fits={},
        later=later,
    )


def gained(later: Sequence[float], load: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> float:
    return gained_minutes(stated(*later), np.array(load), np.array(after), [MOVE])


def test_without_a_forecast_each_point_that_the_peak_falls_counts_for_60_minutes() -> None:
    # 0.8 to 0.5, each by another resource; the third broker has no part in it.
    assert gained([], [[8, 2], [2, 1], [9, 9]], [[3, 4], [5, 1], [9, 9]]) == pytest.approx(30 * 60)


def test_with_a_trend_the_load_to_come_counts_as_well() -> None:
    load, after = [[8, 2, 6], [2, 1, 2], [9, 9, 9]], [[5, 4, 4], [5, 1, 4], [9, 9, 9]]
    assert gained([30.0], load, after) == pytest.approx(30 * 60 + 20 * 30)
    assert gained([0.5], load, after) == pytest.approx(30 * 60 + 20 * 0.5)


def test_each_time_of_the_day_counts_for_its_minutes_also_against_the_moves() -> None:
    load = [[8, 2, 6, 1], [2, 1, 2, 2], [9, 9, 9, 9]]
    after = [[5, 4, 4, 1], [5, 1, 4, 7], [9, 9, 9, 9]]
    assert gained([30.0, 60.0], load, after) == pytest.approx(30 * 60 + 20 * 30 - 50 * 60)


def test_no_moves_gain_nothing() -> None:
    assert gained_minutes(stated(), np.ones((3, 2)), np.zeros((3, 2)), ()) == 0.0
    assert gain_of(np.ones(3), np.zeros(3), ()) == 0.0


def test_the_gain_is_the_most_that_a_giving_broker_falls_and_none_that_it_gives_to_ends_above() -> None:
    before, after = np.array([0.9, 0.1, 0.8, 0.2]), np.array([0.5, 0.6, 0.45, 0.3])
    one, other = PlannedMove(0, 0, 1), PlannedMove(1, 2, 3)
    assert gain_of(before, after, [one]) == pytest.approx(0.9 - 0.6)
    assert gain_of(before, after, [other]) == pytest.approx(0.8 - 0.45)
    assert gain_of(before, after, [one, other]) == pytest.approx(0.35)
    # Of one broker that gives to two the fuller one counts, in whatever order.
    assert gain_of(before, after, [PlannedMove(0, 0, 1), PlannedMove(1, 0, 3)]) == pytest.approx(0.3)
    assert gain_of(before, after, [PlannedMove(1, 0, 3), PlannedMove(0, 0, 1)]) == pytest.approx(0.3)


def test_a_plan_that_leaves_its_broker_fuller_gains_less_than_nothing() -> None:
    assert gain_of(np.array([0.5, 0.1]), np.array([0.4, 0.7]), [MOVE]) == pytest.approx(-0.2)


def test_the_load_after_moves_is_where_the_bundles_are_then() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0])], fixed=[[1.0], [0.5]])
    assert load_after(one, [MOVE]).tolist() == [[3.0], [3.5]]
    assert one.owner.tolist() == [0, 0]


def test_moves_disturb_their_share_of_all_that_may_move() -> None:
    one = problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0]), (1, [1.0])], disturbance=[10.0, 20.0, 50.0])
    assert share_disturbed(one, [MOVE, PlannedMove(1, 0, 1)]) == pytest.approx(30 / 80)
    assert share_disturbed(one, []) == 0.0
    assert share_disturbed(problem([[10.0]], []), []) == 0.0
    half = problem([[10.0]] * 2, [(0, [3.0])], disturbance=[0.5])
    assert share_disturbed(half, [MOVE]) == 1.0
