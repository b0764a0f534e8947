"""Brokers between the goal and their limit stay as they are, where the goal is reached without them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from controller.planning.objective import highest, load_after, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.search import searched
from controller.strategies.shedding.peak_shedder.sparing import searched_sparing
from tests.balance_problems import problem, seeded

#: The mean is 30.  A broker above 37 gives, until it is at 31.
LIMITS: Final = SearchLimits(max_moves=50, begin=0.37, goal=0.31)
BETWEEN: Final = [(0, [5.0])] * 8 + [(1, [1.0])] * 34 + [(2, [1.0])] * 16


def sparing(of: BalanceProblem, limits: SearchLimits = LIMITS) -> tuple[PlannedMove, ...]:
    return searched_sparing(of, limits, 0.0, None)


def full(of: BalanceProblem, moves: Sequence[PlannedMove]) -> list[float]:
    return [round(each, 9) for each in highest(load_after(of, moves), of.capacity).tolist()]


def test_only_brokers_above_their_limit_give() -> None:
    of = problem([[100.0]] * 3, BETWEEN)
    moves = sparing(of)
    assert full(of, moves) == [0.3, 0.34, 0.26]
    assert {move[1:] for move in moves} == {(0, 2)}
    assert {move.source for move in searched(of, LIMITS)} == {0, 1}


def test_a_broker_at_its_limit_is_not_above_it_and_one_at_the_goal_gets_bundles_no_more() -> None:
    of = problem([[100.0]] * 3, [(0, [5.0])] * 8 + [(1, [1.0])] * 37 + [(2, [1.0])] * 13)
    assert full(of, sparing(of)) == [0.3, 0.37, 0.23]
    narrow = problem([[100.0]] * 3, [(0, [1.0])] * 40 + [(1, [1.0])] * 31 + [(2, [1.0])] * 19)
    assert full(narrow, sparing(narrow)) == [0.31, 0.31, 0.28]


def test_each_resource_of_a_broker_counts() -> None:
    # The second broker is above the goal in its second resource alone, and gets what is of the first one.
    bundles = [(0, [5.0, 0.0])] * 8 + [(1, [0.0, 1.0])] * 34 + [(2, [31.0, 1.0])]
    of = problem([[100.0, 100.0]] * 3, bundles)
    moves = sparing(of)
    assert {move[1:] for move in moves} == {(0, 1)}
    assert full(of, moves) == [0.3, 0.34, 0.31]
    # Above the limit of one resource it gives, however much that of another one allows.
    apart = SearchLimits(max_moves=50, begin=np.array([0.37, 0.33]), goal=0.31)
    assert full(of, sparing(of, apart))[1] == 0.31


def test_where_the_goal_is_not_reached_without_them_it_is_the_usual_plan() -> None:
    # A bundle of 22 brings any other broker above the goal.
    of = problem([[100.0]] * 3, [(0, [22.0])] * 2 + [(1, [1.0])] * 33 + [(2, [16.0])])
    moves = sparing(of)
    assert max(full(of, moves)) > 0.31
    assert moves == searched(of, LIMITS) != ()


def test_with_too_few_moves_for_the_goal_it_is_the_usual_plan() -> None:
    of = problem([[100.0]] * 3, BETWEEN)
    few = SearchLimits(max_moves=1, begin=0.37, goal=0.31)
    assert sparing(of, few) == searched(of, few) != ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_broker_that_gives_nothing_gets_fuller_than_it_was_or_the_goal(seed: int) -> None:
    of = seeded(5, 60, 2, seed, uneven=seed % 2 > 0)
    mean = float((of.size.sum(axis=0) / of.capacity.sum(axis=0)).max())
    limits = SearchLimits(max_moves=50, begin=mean * 1.25, goal=mean * 1.05)
    before = highest(loads(of, of.owner), of.capacity)
    moves = sparing(of, limits)
    after = np.array(full(of, moves))
    assert moves
    assert (after <= np.where(before > limits.begin, limits.goal, np.maximum(before, limits.goal)) * 1.005 + 1e-9).all()
    assert len(moves) <= len(searched(of, limits))


@pytest.mark.slow
def test_without_brokers_in_between_it_is_the_usual_plan() -> None:
    of = problem([[100.0]] * 3, [(0, [5.0])] * 9 + [(1, [1.0])] * 31 + [(2, [1.0])] * 14)
    assert sparing(of) == searched(of, LIMITS)
    everything = SearchLimits(max_moves=50)
    assert sparing(of, everything) == searched(of, everything)
