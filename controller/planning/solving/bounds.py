"""Lower bounds: levels of the highest utilisation that no plan can go below.  Filters only make plans worse.

mean        All load on all brokers, in one resource, spread as evenly as if bundles were a liquid.
fixed       The load of a broker that no move changes.
pigeonhole  Bundles of at least some load, counted: at a level T, a broker has room for so many of them and no more.
            With the largest bundle alone this is "the largest one has to be somewhere"; with one more than there are
            brokers, "two of them have to share a broker".
removal     At a level T, every broker above T has to give bundles.  The fewest that bring each one down to T, added
            over the brokers, are more than the moves that are allowed.

Each bound of one resource holds for all resources together, as all have to be below the level.  Levels of pigeonhole
and removal are found by bisection, from below, so that what is returned is refuted and not only close to it.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Bools, Floats, Ints
from controller.planning.objective import loads
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, REMOVAL, BalanceProblem

#: A bound is refuted at this much below itself: rounding does not decide.
SLACK: Final = 1e-9
_BISECTIONS: Final = 40


class LowerBound(NamedTuple):
    """A level that no plan can go below, and why: the fields of a Certificate."""

    level: float
    kind: str
    resource: int
    size: float = 0.0


class Departures(NamedTuple):
    """For one resource, every broker's bundles from the largest, added up: how many have to leave for a level."""

    #: (n + 1,) where a broker's bundles begin.
    starts: Ints
    #: (m + 1,) running sum over the bundles of all brokers, in the order of the brokers.
    running: Floats
    #: (n,) load and capacity of the brokers.
    load: Floats
    capacity: Floats

    def fewest(self, level: float) -> Floats:
        """(n,) the fewest bundles that have to leave each broker until it is at *level*; infinity: all are too few."""
        excess = self.load - level * self.capacity - SLACK * self.capacity
        first, last = self.starts[:-1], self.starts[1:]
        goal = self.running[first] + excess
        # running[i + 1] is what is gone when the bundles up to i are.
        count = np.searchsorted(self.running, goal, side="left") - first
        return np.where(excess > 0, np.where(count > last - first, np.inf, count), 0.0)


def departures(problem: BalanceProblem, load: Floats, resource: int) -> Departures:
    """The departures of *resource*; *load* (n, R) is that of the brokers before any move.  O(m log m)."""
    n, size = len(problem.capacity), problem.size[:, resource]
    order = np.lexsort((-size, problem.owner))
    starts = np.append(0, np.cumsum(np.bincount(problem.owner, minlength=n)))
    running = np.append(0.0, np.cumsum(size[order]))
    return Departures(starts, running, load[:, resource], problem.capacity[:, resource])


def mean_level(problem: BalanceProblem) -> float:
    """The mean utilisation, weighted by capacity, in the resource where it is highest."""
    return _mean(problem, loads(problem, problem.owner)).level


def plain_bound(problem: BalanceProblem) -> LowerBound:
    """The bound that is found at once, where nothing is planned: the mean, or what cannot move if that is higher."""
    load = loads(problem, problem.owner)
    if not load.size:
        return LowerBound(0.0, MEAN, 0)
    return max(_mean(problem, load), _fixed(problem), key=lambda bound: bound.level)


def lower_bounds(problem: BalanceProblem, max_moves: int | None) -> list[LowerBound]:
    """Bounds for plans of at most *max_moves* moves (None: any number), the highest first.

    The mean is always among them; of the others, those that are higher than the ones before.
    """
    load = loads(problem, problem.owner)
    if not load.size:
        return [LowerBound(0.0, MEAN, 0)]
    bounds = [_mean(problem, load)]
    bounds.append(_fixed(problem))
    bounds.sort(key=lambda bound: -bound.level)
    peak = float((load / problem.capacity).max())
    # No bound of a resource is above the highest utilisation that it has already.
    peaks: list[float] = (load / problem.capacity).max(axis=0).tolist()
    for column in (each for each in range(load.shape[1]) if peaks[each] > bounds[0].level):
        higher = _pigeonhole(problem, column, bounds[0].level, peak)
        bounds = bounds if higher is None else [higher, *bounds]
    for column in (each for each in range(load.shape[1]) if max_moves is not None and peaks[each] > bounds[0].level):
        higher = _removal(problem, load, column, max_moves or 0, bounds[0].level, peak)
        bounds = bounds if higher is None else [higher, *bounds]
    return bounds


def fewest_moves(problem: BalanceProblem, level: float) -> float:
    """So many moves a plan needs at least to bring every broker to *level*; infinity: none can."""
    load = loads(problem, problem.owner)
    counts = [float(departures(problem, load, column).fewest(level).sum()) for column in range(load.shape[1])]
    return max(counts, default=0.0)


def _fixed(problem: BalanceProblem) -> LowerBound:
    immovable = (problem.fixed / problem.capacity).max(axis=0)
    return LowerBound(float(immovable.max()), FIXED, int(immovable.argmax()))


def _mean(problem: BalanceProblem, load: Floats) -> LowerBound:
    level = load.sum(axis=0) / problem.capacity.sum(axis=0)
    return LowerBound(float(level.max(initial=0.0)), MEAN, int(level.argmax()) if level.size else 0)


def _pigeonhole(problem: BalanceProblem, resource: int, floor: float, peak: float) -> LowerBound | None:
    """The highest level at which the bundles of some least load do not fit; None if it is not above *floor*."""
    n, capacity = len(problem.capacity), problem.capacity[:, resource]
    fixed, size = problem.fixed[:, resource], np.sort(problem.size[:, resource])[::-1]
    counts = np.array([1, n, *(p * n + 1 for p in range(1, 9))], np.int64)
    counts = counts[counts <= np.count_nonzero(size > 0)]
    best: LowerBound | None = None
    for least in np.unique(size[counts - 1]).tolist():
        # Bundles that are equal to the least one count as well.
        count = int(np.searchsorted(-size, -least, side="right"))

        def crowded(level: float, least: float = least, count: int = count) -> bool:
            with np.errstate(over="ignore"):  # of bundles without load to speak of, any number fits
                room = np.floor((level * capacity - fixed) / least + SLACK)
            return bool(np.maximum(room, 0.0).sum() < count)

        if crowded(floor):
            floor = _highest_refuted(crowded, floor, peak)
            best = LowerBound(floor, PIGEONHOLE, resource, least)
    return best


def _removal(
    problem: BalanceProblem, load: Floats, resource: int, max_moves: int, floor: float, peak: float
) -> LowerBound | None:
    """The highest level that *max_moves* departures cannot reach; None if it is not above *floor*."""
    leaving = departures(problem, load, resource)

    def too_many(level: float) -> bool:
        return bool(leaving.fewest(level).sum() > max_moves)

    if not too_many(floor):
        return None
    return LowerBound(_highest_refuted(too_many, floor, peak), REMOVAL, resource)


def _highest_refuted(refuted: Callable[[float], bool], low: float, high: float) -> float:
    """The highest level that is *refuted*, from *low*, which is, to *high*."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def indivisible(problem: BalanceProblem, level: float) -> Sequence[int]:
    """Rows of the bundles that alone are above *level* on every broker, largest first: they have to be split.

    The broker itself is taken as empty.
    """
    if not problem.size.size:
        return ()
    widest = problem.capacity.max(axis=0)
    share: Floats = (problem.size / widest).max(axis=1)
    over: Bools = share > level
    rows: list[int] = np.flatnonzero(over)[np.argsort(-share[over], kind="stable")].tolist()
    return rows
