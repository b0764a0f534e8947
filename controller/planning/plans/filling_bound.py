"""Lower bound of a step that fills brokers: bundles come to them, and nothing else moves.

So what lies on the filled brokers and on any others of them now lies on these together in the end, or more.  Their mean
utilisation is a level that no such step ends below; of all choices of others, those above that level give the highest.
"""

from collections.abc import Collection

import numpy as np

from controller.planning.objective import loads
from controller.planning.problem import MEAN, BalanceProblem
from controller.planning.solving.bounds import LowerBound, lower_bounds


def filling_bound(problem: BalanceProblem, brokers: Collection[int], max_moves: int) -> LowerBound:
    """A level that no step of at most *max_moves* moves, all of them to *brokers*, ends below.  O(n log n) and more."""
    best = lower_bounds(problem, max_moves)[0]
    load, filled = loads(problem, problem.owner), list(brokers)
    others = np.setdiff1d(np.arange(len(load)), filled)
    if not filled:
        return best
    for column in range(load.shape[1]):
        amount, capacity = load[:, column], problem.capacity[:, column]
        fullest = others[np.argsort(-amount[others] / capacity[others], kind="stable")]
        together = amount[filled].sum() + np.append(0.0, np.cumsum(amount[fullest]))
        room = capacity[filled].sum() + np.append(0.0, np.cumsum(capacity[fullest]))
        filling = LowerBound(float((together / room).max()), MEAN, column)
        best = max(best, filling, key=lambda bound: bound.level)
    return best
