"""Whether a plan is worth its moves: what it gains, for how long, and whom it disturbs."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.model.load import Floats
from controller.planning.from_view import MappedProblem
from controller.planning.objective import highest
from controller.planning.problem import BalanceProblem, PlannedMove

#: A trend is followed so far, and what is gained now counts for so long, minutes.
AHEAD_MINUTES: Final = 60.0


def gain_of(before: Floats, after: Floats, moves: Sequence[PlannedMove]) -> float:
    """By how much the usage of a broker that gives falls, also below which those that it gives to end; the most."""
    ends: dict[int, float] = {}
    for move in moves:
        ends[move.source] = max(float(after[[move.source, move.destination]].max()), ends.get(move.source, 0.0))
    return max((float(before[source]) - end for source, end in ends.items()), default=0.0)


def gained_minutes(found: MappedProblem, load: Floats, after: Floats, moves: Sequence[PlannedMove]) -> float:
    """By how many points the highest usage of the brokers that *moves* concern falls, times minutes, now and later.

    *load* and *after*: (n, R) of the brokers.  A time at which they end fuller than they are counts against the moves.
    """
    if not moves:
        return 0.0
    rows = np.unique([(move.source, move.destination) for move in moves])
    capacity, later = found.problem.capacity[rows], range(found.now, len(found.minutes))
    gained = 0.0
    for columns, length in [
        (list(range(found.now)), AHEAD_MINUTES),
        *(([column], found.minutes[column]) for column in later),
    ]:
        before, end = (highest(of[rows][:, columns], capacity[:, columns]).max() for of in (load, after))
        gained += 100.0 * float(before - end) * length
    return gained


def share_disturbed(problem: BalanceProblem, moves: Sequence[PlannedMove]) -> float:
    """How much of the whole cluster's disturbance *moves* are: 1 is that of all bundles that may move."""
    whole = float(problem.disturbance.sum())
    return sum(float(problem.disturbance[move.bundle]) for move in moves) / whole if whole > 0 else 0.0
