"""Lower bounds of a step that empties brokers: the same bundles leave, nothing else moves, and none comes to them.

So all other bundles count as load that no move changes, and the emptied brokers are no room.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.bounds import LowerBound, lower_bounds


def emptying_bound(problem: BalanceProblem, brokers: Collection[int], moves: Sequence[PlannedMove]) -> LowerBound:
    """A level that the bundles of *moves*, which leave *brokers*, end above, wherever else they go."""
    n, moved = len(problem.capacity), [move.bundle for move in moves]
    stays = np.ones(len(problem.owner), np.bool_)
    stays[moved] = False
    fixed = problem.fixed.copy()
    np.add.at(fixed, problem.owner[stays], problem.size[stays])
    after = np.array([move.destination for move in moves], np.int64)
    lightened = replace(
        problem,
        fixed=fixed,
        size=problem.size[moved],
        owner=after,
        connections=problem.connections[moved],
        disturbance=problem.disturbance[moved],
    )
    others = np.ones(n, np.bool_)
    others[list(brokers)] = False
    room = replace(
        lightened, capacity=problem.capacity[others], fixed=fixed[others], owner=(np.cumsum(others) - 1)[after]
    )
    # What stays on an emptied broker may be the most of all.
    return max((lower_bounds(each, None)[0] for each in (room, lightened)), key=lambda bound: bound.level)
