"""Searches for lower levels and for fewer moves: when they are made, what they cost, and when they end."""

import pytest

from controller.planning.problem import PlannedMove
from controller.planning.solving.levels import use_fewer
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
