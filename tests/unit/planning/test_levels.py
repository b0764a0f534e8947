"""Searches for lower levels and for fewer moves: when they are made, what they cost, and when they end."""

import pytest

from controller.planning.problem import PlannedMove
from controller.planning.solving.levels import reach_lower, use_fewer
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.partial_plan import PartialPlan
from tests.balance_problems import problem


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


def test_among_loads_of_next_to_nothing_no_lower_level_is_looked_for() -> None:
    # A level that differs by less than rounding would be reached by a plan that changes nothing.
    draft = PartialPlan(problem([[1e25]] * 2, [(0, [3.0]), (0, [2.0])]), SearchLimits(max_moves=3), None)
    reach_lower(draft, 0.0)
    assert (draft.assignment.moves, draft.effort.remaining_pairs) == ((), 1_000_000)


def test_levels_that_differ_by_rounding_end_the_search_early() -> None:
    draft = PartialPlan(problem([[1e10]] * 2, [(0, [3.0]), (0, [2.0])]), SearchLimits(max_moves=3), None)
    reach_lower(draft, 0.0)
    assert draft.assignment.moves == ()
    assert 1_000_000 - draft.effort.remaining_pairs == 8 * 3 * 2000
