"""The objective by which plans are compared, the same for search, bench and tests.

Lexicographic: first, how far any broker is above its capacity in any resource; then the highest utilisation over
brokers and resources; then the disturbance of the moves; then the spread.  docs/objective.md gives the reasons.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Floats, Ints
from controller.planning.problem import BalanceProblem, PlannedMove

#: A move by itself disturbs as much as this many connections: lookups, and cold caches on the new broker.
DISTURBANCE_OF_A_MOVE: Final = 10.0
#: This many messages/s, which wait while the bundle moves, disturb as much as one connection.
MESSAGES_OF_A_CONNECTION: Final = 1000.0
#: Loads that were added up in another order differ in their last bits: a difference below this does not count.
ROUNDING: Final = 1e-9


class Score(NamedTuple):
    """How good a cluster and the way to it are; the lower one is better, the first difference counts."""

    #: How far the highest utilisation is above 1; 0 where nothing is above its capacity.
    over_capacity: float
    #: The highest utilisation over brokers and resources.
    peak: float
    #: Of all moves, in connections.
    disturbance: float
    #: Standard deviation over the brokers of each one's highest utilisation.
    spread: float


def disturbance(connections: Floats, msg_rate: Floats) -> Floats:
    """(m,) what a move of each bundle costs, in connections; *msg_rate*: msg/s in and out."""
    return connections + msg_rate / MESSAGES_OF_A_CONNECTION + DISTURBANCE_OF_A_MOVE


def loads(problem: BalanceProblem, owner: Ints) -> Floats:
    """(n, R) the load of every broker when its bundles are those of *owner* (m,)."""
    n = len(problem.capacity)
    load = problem.fixed.copy()
    for column in range(load.shape[1]):
        load[:, column] += np.bincount(owner, weights=problem.size[:, column], minlength=n)
    return load


def highest(load: Floats, capacity: Floats) -> Floats:
    """(n,) the utilisation of each broker's fullest resource; *capacity*: (n, R), or (R,) of all of them.

    Column by column: NumPy takes many times as long to find the highest of each of many short rows.
    """
    utilisation = np.zeros(len(load))
    for column in range(load.shape[1]):
        np.maximum(utilisation, load[:, column] / capacity[..., column], out=utilisation)
    return utilisation


def above(usage: Floats, goal: float) -> tuple[float, float]:
    """How far above *goal* the fullest broker is, and the sum of the squares of all, both without what is rounding.

    The fullest alone would say nothing where no move can relieve it.
    """
    over = np.maximum(usage - goal, 0.0)
    return round(float(over.max(initial=0.0)), 9), round(float((over * over).sum()), 9)


def owner_after(problem: BalanceProblem, moves: Iterable[PlannedMove]) -> Ints:
    """(m,) the owner of each bundle after *moves*."""
    owner = problem.owner.copy()
    for move in moves:
        owner[move.bundle] = move.destination
    return owner


def load_after(problem: BalanceProblem, moves: Iterable[PlannedMove]) -> Floats:
    """(n, R) the load of the brokers after *moves*."""
    return loads(problem, owner_after(problem, moves))


def ceilings(problem: BalanceProblem, moves: Sequence[PlannedMove]) -> Floats:
    """(n,) how full brokers may be on the way of *moves*: their capacity, or what they have before or after all.

    No more in any case than the fullest one has after all.
    """
    before, after = (highest(load_after(problem, of), problem.capacity) for of in ((), moves))
    limit = np.minimum(np.maximum(before, after), after.max(initial=1.0))
    ceiling: Floats = np.maximum(limit + ROUNDING, 1.0)
    return ceiling


def score(problem: BalanceProblem, moves: Sequence[PlannedMove]) -> Score:
    """The score of the cluster after *moves*."""
    cost = sum((float(problem.disturbance[move.bundle]) for move in moves), 0.0)
    after = highest(load_after(problem, moves), problem.capacity)
    peak = float(after.max(initial=0.0))
    return Score(max(0.0, peak - 1.0), peak, cost, float(after.std()) if len(after) else 0.0)
