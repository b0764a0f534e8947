"""Searches for lower levels and for fewer moves: when they are made, what they cost, and when they end."""

import pytest

from controller.planning.problem import PlannedMove
from controller.planning.solving.levels import reach_lower, use_fewer
from controller.planning.solving.limits import Effort, SearchLimits
from controller.planning.solving.partial_plan import PartialPlan
from tests.balance_problems import problem


def test_an_effort_is_spent_when_nothing_is_left() -> None:
    assert [Effort(left).exhausted for left in (2, 1, 0, -1)] == [False, False, True, True]


def test_a_level_that_cannot_be_reached_costs_three_searches_of_at_most_150_steps() -> None:
    draft = PartialPlan(
        problem([[10.0]] * 2, [(0, [3.0]), (0, [2.0]), (0, [2.0]), (1, [1.0])]), SearchLimits(max_moves=3), None
    )
    reach_lower(draft, 0.3965)
    assert draft.assignment.peak == 0.4
    assert 1_000_000 - draft.effort.remaining_pairs == 208_117


def test_levels_that_differ_by_rounding_end_the_search_early() -> None:
    draft = PartialPlan(problem([[1e10]] * 2, [(0, [3.0]), (0, [2.0])]), SearchLimits(max_moves=3), None)
    reach_lower(draft, 0.0)
    assert draft.assignment.moves == ()
    assert 1_000_000 - draft.effort.remaining_pairs == 8 * 3 * 2000


def test_among_loads_of_next_to_nothing_no_lower_level_is_looked_for() -> None:
    # A level that differs by less than rounding would be reached by a plan that changes nothing.
    draft = PartialPlan(problem([[1e25]] * 2, [(0, [3.0]), (0, [2.0])]), SearchLimits(max_moves=3), None)
    reach_lower(draft, 0.0)
    assert (draft.assignment.moves, draft.effort.remaining_pairs) == ((), 1_000_000)


def test_a_broker_gives_bundles_while_it_is_more_than_a_billionth_above_the_goal() -> None:
    one = problem([[1.0]] * 2, [], fixed=[[0.5 + 1e-9], [0.1]])
    assert PartialPlan(one, SearchLimits(max_moves=1, goal=0.5), None).fullest() is None
    assert PartialPlan(one, SearchLimits(max_moves=1, goal=0.5 - 1e-12), None).fullest() == 0
    assert PartialPlan(one, SearchLimits(max_moves=1, goal=0.5 - 1e-12, begin=0.6), None).fullest() is None


def test_plans_are_compared_to_the_billionth() -> None:
    draft = PartialPlan(
        problem([[1.0]] * 2, [], fixed=[[1.1234567891234], [1.0123456789]]), SearchLimits(max_moves=1, goal=1.0), None
    )
    assert draft.above_goal(()) == (0.123456789, 0.015393995)


@pytest.mark.parametrize(
    ("goal", "max_moves", "stuck", "moves"),
    [
        # It is reached: two small bundles went where a large one does.
        (0.25, 2, False, 1),
        (0.25, 9, True, 1),
        # It is not reached: moves that do not lower the peak are wanted, too, where none are left or a broker is stuck.
        (0.1, 2, False, 2),
        (0.1, 3, True, 2),
        (0.1, 3, False, 1),
    ],
)
def test_fewer_moves_are_looked_for_unless_the_goal_is_out_of_reach(
    goal: float, max_moves: int, stuck: bool, moves: int
) -> None:
    one = problem([[10.0]] * 2, [(0, [1.0]), (0, [1.0]), (0, [2.0])])
    draft = PartialPlan(one, SearchLimits(max_moves=max_moves, goal=goal), None)
    draft.assignment.back_to([PlannedMove(0, 0, 1), PlannedMove(1, 0, 1)])
    draft.stuck[0] = stuck
    use_fewer(draft)
    assert len(draft.assignment.moves) == moves
    assert draft.assignment.peak == 0.2
