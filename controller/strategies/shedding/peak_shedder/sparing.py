"""A plan in which only brokers above their limit give: those between the goal and their limit stay as they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.model.load import Bools, Floats
from controller.planning.objective import ceilings, highest, load_after, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed, MoveSequence
from controller.planning.solving.bounds import fewest_moves
from controller.planning.solving.levels import NEAR
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.search import searched


def searched_sparing(
    problem: BalanceProblem, limits: SearchLimits, bound: float, allowed: Allowed | None
) -> tuple[PlannedMove, ...]:
    """The moves that bring the brokers above ``limits.begin`` to the goal, without others, where they get there so.

    Where they do not, the moves that bring all brokers as near to the goal as can be.
    """
    share = loads(problem, problem.owner) / problem.capacity
    spared: Bools = ~np.any(share > limits.begin, axis=1) & np.any(share > limits.goal, axis=1)
    if limits.goal > 0 and spared.any():
        apart = _as_at_goal(problem, share, spared, limits.goal)
        if fewest_moves(apart, limits.goal * NEAR) > limits.max_moves:
            return searched(problem, limits, bound, allowed)
        found = searched(apart, limits, bound, allowed)
        moves = MoveSequence(problem, found, allowed).take_all(ceilings(problem, found))
        most = np.where(spared, share.max(axis=1), limits.goal)
        if len(moves) == len(found) and bool(np.all(_full(problem, moves) <= most * NEAR)):
            return moves
    return searched(problem, limits, bound, allowed)


def _full(problem: BalanceProblem, moves: Sequence[PlannedMove]) -> Floats:
    return highest(load_after(problem, moves), problem.capacity)


def _as_at_goal(problem: BalanceProblem, share: Floats, spared: Bools, goal: float) -> BalanceProblem:
    """*problem* with so much more capacity for the *spared* brokers that they are at the *goal*, and not above it."""
    capacity = problem.capacity * np.where(spared[:, None], np.maximum(share / goal, 1.0), 1.0)
    return replace(problem, capacity=capacity)
