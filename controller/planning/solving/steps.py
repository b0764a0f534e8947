"""The single steps of the search: the best move off a broker, and the best exchange of two bundles."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Bools, Floats, Ints
from controller.planning.objective import highest
from controller.planning.problem import PlannedMove
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.limits import FEW_RESOURCES

#: Differences below this are rounding.
EPSILON: Final = 1e-9
#: Pairs whose gain is nearly that of the best one, by this share: of these, the bundle that disturbs least goes.
_NEARLY: Final = 0.02
#: Destinations that every bundle is compared with: the emptiest ones.  With more resources than so many, fewer.
_DESTINATIONS: Final = 128
_LEAST: Final = 16
#: Of an exchange: so many bundles of either broker, the largest, and so many brokers, the emptiest.
_EXCHANGED: Final = 128
_PARTNERS: Final = 16
#: So many bundles are asked of the filters before a broker counts as stuck.
_MAX_CHECKS: Final = 64

#: Bundle -> (n,) the brokers that it may go to.
Fits = Callable[[int], Bools]


def best_move(assignment: Assignment, broker: int, fits: Fits, ceiling: float) -> PlannedMove | None:
    """The move off *broker* after which the fuller one of the two brokers is emptiest; None where none helps.

    No destination gets above *ceiling*.
    """
    rows = assignment.movable_on(broker)
    places = emptiest(assignment, broker, compared(assignment))
    if not len(rows) or not len(places):
        return None
    now = float(assignment.highest[broker])
    remaining = highest(assignment.load[broker] - assignment.problem.size[rows], assignment.problem.capacity[broker])
    # (rows,) the fuller one of the two brokers, with the best destination, as far as it is known.
    level = np.maximum(remaining, _filled(assignment, rows, places, ceiling).min(axis=0))
    candidates: dict[int, int] = {}
    for _ in range(_MAX_CHECKS):
        best = float(level.min())
        if best >= now - EPSILON * max(1.0, now):
            return None
        near = np.flatnonzero(level <= best + _NEARLY * (now - best))
        at = int(near[np.lexsort((near, level[near], assignment.problem.disturbance[rows[near]]))[0]])
        if at in candidates:
            return PlannedMove(int(rows[at]), broker, candidates[at])
        # No bundle makes its own broker emptier by staying, so it goes elsewhere.
        filled = np.where(fits(int(rows[at])), _filled(assignment, rows[[at]], None, ceiling)[:, 0], np.inf)
        candidates[at] = int(filled.argmin())
        level[at] = max(float(remaining[at]), float(filled[candidates[at]]))
    return None


def best_exchange(
    assignment: Assignment, broker: int, fits: Fits, ceiling: float
) -> tuple[PlannedMove, PlannedMove] | None:
    """The bundle of *broker* and the one of another broker that change places best; None where no exchange helps."""
    now = float(assignment.highest[broker])
    mine = largest(assignment, broker)
    candidates: list[_Exchange] = []
    for partner in emptiest(assignment, broker, _PARTNERS).tolist():
        theirs = largest(assignment, partner)
        if len(mine) and len(theirs):
            candidates.append(_exchange(assignment, broker, partner, mine, theirs, ceiling))
    for one in sorted(candidates):
        if one.level >= now - EPSILON * max(1.0, now):
            return None
        in_order = _in_order(assignment, broker, one, fits)
        if in_order is not None:
            return in_order
    return None


class _Exchange(NamedTuple):
    #: Of the fuller one of the two brokers, after it.
    level: float
    mine: int
    theirs: int
    partner: int


def _in_order(
    assignment: Assignment, broker: int, one: _Exchange, fits: Fits
) -> tuple[PlannedMove, PlannedMove] | None:
    """The two moves of an exchange, in an order in which filters allow the second after the first; None: in neither."""
    mine, theirs = PlannedMove(one.mine, broker, one.partner), PlannedMove(one.theirs, one.partner, broker)
    for first, second in ((mine, theirs), (theirs, mine)):
        if fits(first.bundle)[first.destination]:
            assignment.move(*first)
            allowed = bool(fits(second.bundle)[second.destination])
            assignment.take_back(first.bundle)
            if allowed:
                return first, second
    return None


def _exchange(assignment: Assignment, broker: int, partner: int, mine: Ints, theirs: Ints, ceiling: float) -> _Exchange:
    """The best exchange of one of the rows *mine* with one of *theirs*; infinite where the order allows none."""
    problem = assignment.problem
    level = np.zeros((len(mine), len(theirs)))
    first, second = np.zeros(len(mine)), np.zeros(len(theirs))
    for column in range(len(problem.resources)):
        a, b = problem.size[mine, column], problem.size[theirs, column]
        change = a[:, None] - b[None, :]
        here, there = assignment.load[broker, column], assignment.load[partner, column]
        wide, other = problem.capacity[broker, column], problem.capacity[partner, column]
        np.maximum(level, (here - change) / wide, out=level)
        np.maximum(level, (there + change) / other, out=level)
        np.maximum(first, (there + a) / other, out=first)
        np.maximum(second, (here + b) / wide, out=second)
    # One of the two has to come first, and its new broker holds both for a while.
    level[(first > ceiling)[:, None] & (second > ceiling)[None, :]] = np.inf
    at = int(level.argmin())
    row, other_row = divmod(at, len(theirs))
    return _Exchange(float(level[row, other_row]), int(mine[row]), int(theirs[other_row]), partner)


def largest(assignment: Assignment, broker: int) -> Ints:
    """Rows of the bundles of *broker* that no move has taken yet; the largest, where there are many."""
    rows = assignment.movable_on(broker)
    if len(rows) <= _EXCHANGED:
        return rows
    share = highest(assignment.problem.size[rows], assignment.problem.capacity[broker])
    return np.sort(rows[np.argsort(-share, kind="stable")[:_EXCHANGED]])


def compared(assignment: Assignment) -> int:
    """With how many destinations every bundle is compared; so a step takes as long whatever the resources are."""
    return max(_LEAST, int(_DESTINATIONS * FEW_RESOURCES // max(FEW_RESOURCES, assignment.load.shape[1])))


def emptiest(assignment: Assignment, broker: int, number: int) -> Ints:
    """Rows of at most *number* other brokers, those with the lowest utilisation."""
    order: Ints = np.argsort(assignment.highest, kind="stable")
    others: Ints = order[order != broker][:number]
    return others


def _filled(assignment: Assignment, rows: Ints, places: Ints | None, ceiling: float) -> Floats:
    """(places, rows) the utilisation of each place with each bundle; infinity above *ceiling*.  None: all brokers."""
    load, capacity = assignment.load, assignment.problem.capacity
    if places is not None:
        load, capacity = load[places], capacity[places]
    filled = np.zeros((len(load), len(rows)))
    for column in range(load.shape[1]):
        size = assignment.problem.size[rows, column]
        np.maximum(filled, (load[:, column, None] + size) / capacity[:, column, None], out=filled)
    filled[filled > ceiling] = np.inf
    return filled
