"""Makes a plan smaller without a broker getting fuller: moves that later ones made needless, and lighter bundles."""

from typing import Final

import numpy as np

from controller.planning.objective import highest
from controller.planning.problem import PlannedMove
from controller.planning.solving.draft import Draft
from controller.planning.solving.steps import EPSILON

#: So many bundles are asked of the filters for a move.
_ASKED: Final = 8


def drop_needless(draft: Draft) -> None:
    """Take moves back without which their source is no fuller than the fullest broker, or than the goal."""
    problem, standing = draft.problem, draft.standing
    for move in sorted(standing.moves, key=lambda move: -problem.disturbance[move.bundle]):
        level = max(draft.limits.goal, draft.peak_of_givers() - EPSILON)
        without = standing.load[move.source] + problem.size[move.bundle]
        if float((without / problem.capacity[move.source]).max()) <= level:
            standing.take_back(move.bundle)


def disturb_less(draft: Draft) -> None:
    """Put a bundle that disturbs less in the place of another one, where nothing gets fuller than it may be."""
    problem, standing = draft.problem, draft.standing
    level = max(draft.limits.goal, draft.peak_of_givers())
    for bundle, source, to in standing.moves:
        rows = standing.movable_on(source)
        rows = rows[problem.disturbance[rows] < problem.disturbance[bundle]]
        change = problem.size[bundle] - problem.size[rows]
        left = highest(standing.load[source] + change, problem.capacity[source])
        right = highest(standing.load[to] - change, problem.capacity[to])
        rows = rows[(left <= level) & (right <= max(level, standing.highest[to]))]
        standing.take_back(bundle)
        least = rows[np.argsort(problem.disturbance[rows], kind="stable")][:_ASKED].tolist()
        standing.move(next((row for row in least if draft.fits(row)[to]), bundle), source, to)


def possible(draft: Draft) -> tuple[PlannedMove, ...]:
    """The moves in an order that capacity and filters allow, without those that are not needed then."""
    standing = draft.standing
    while True:
        moves = draft.in_order()
        if len(moves) == len(standing.moves):
            return moves
        # Filters were asked in the order of the search, with moves that were taken back later.
        standing.back_to(moves)
        drop_needless(draft)
