"""Makes a plan smaller without a broker getting fuller: moves that later ones made needless, and lighter bundles."""

from typing import Final

import numpy as np

from controller.planning.objective import highest
from controller.planning.problem import PlannedMove
from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.steps import EPSILON

#: So many bundles are asked of the filters for a move.
_MAX_CHECKS: Final = 8


def drop_needless(draft: PartialPlan) -> None:
    """Take moves back without which their source is no fuller than the fullest broker, or than the goal."""
    problem, assignment = draft.problem, draft.assignment
    for move in sorted(assignment.moves, key=lambda move: -problem.disturbance[move.bundle]):
        level = max(draft.limits.goal, draft.peak_of_givers() - EPSILON)
        without = assignment.load[move.source] + problem.size[move.bundle]
        if float((without / problem.capacity[move.source]).max()) <= level:
            assignment.take_back(move.bundle)


def disturb_less(draft: PartialPlan) -> None:
    """Put a bundle that disturbs less in the place of another one, where nothing gets fuller than it may be."""
    problem, assignment = draft.problem, draft.assignment
    level = max(draft.limits.goal, draft.peak_of_givers())
    for bundle, source, to in assignment.moves:
        rows = assignment.movable_on(source)
        rows = rows[problem.disturbance[rows] < problem.disturbance[bundle]]
        change = problem.size[bundle] - problem.size[rows]
        remaining = highest(assignment.load[source] + change, problem.capacity[source])
        right = highest(assignment.load[to] - change, problem.capacity[to])
        rows = rows[(remaining <= level) & (right <= max(level, assignment.highest[to]))]
        assignment.take_back(bundle)
        least = rows[np.argsort(problem.disturbance[rows], kind="stable")][:_MAX_CHECKS].tolist()
        assignment.move(next((row for row in least if draft.fits(row)[to]), bundle), source, to)


def possible(draft: PartialPlan) -> tuple[PlannedMove, ...]:
    """The moves in an order that capacity and filters allow, without those that are not needed then."""
    assignment = draft.assignment
    while True:
        moves = draft.in_order()
        if len(moves) == len(assignment.moves):
            return moves
        # Filters were asked in the order of the search, with moves that were taken back later.
        assignment.back_to(moves)
        drop_needless(draft)
