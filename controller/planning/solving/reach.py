"""Looks for a plan that brings every broker to a given level, by tabu search on how far brokers are above it.

A step moves one bundle off the broker that is furthest above the level, to where the sum of the squares of what is
above the level gets lowest, even if that is higher than before.  A bundle that moved stays for some steps (it is tabu),
so that the search does not go back at once: so it finds exchanges and chains of moves as well.  Bundles of the plan may
go on to another broker or back.  When the moves are used up, the move that helps least or the oldest one, in turn, is
taken back first.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import Floats, Ints
from controller.planning.solving.standing import Standing
from controller.planning.solving.steps import EPSILON, FEW_RESOURCES, Fits, compared, emptiest

#: A step counts as so many pairs of a bundle and a broker, besides those that it looks at.
_PAIRS_OF_A_STEP: Final = 2000
#: A question to the filters takes as long as looking at so many pairs.
_PAIRS_OF_A_QUESTION: Final = 1000
#: So many bundles are asked of the filters in a step.
_ASKED: Final = 32


class Effort:
    """How much may still be looked at: pairs of a bundle and a broker.  Counted, so that no clock is needed."""

    def __init__(self, pairs: int) -> None:
        self.left = pairs

    def spend(self, pairs: int, resources: int) -> None:
        """Count a step that looks at so many *pairs*; with more than FEW_RESOURCES resources, by their square.

        All else takes longer then, too, so that less time is left for this.
        """
        more = max(FEW_RESOURCES, resources)
        self.left -= (pairs + _PAIRS_OF_A_STEP) * more * more // FEW_RESOURCES**2

    def ask(self) -> None:
        """Count a question to the filters."""
        self.left -= _PAIRS_OF_A_QUESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a search for a plan tries to reach."""

    level: float
    max_moves: int
    #: No broker that receives a bundle gets above this.
    ceiling: float
    #: For so many steps a bundle stays where it was put.
    tenure: int
    #: At most so many steps.
    steps: int


def reach(standing: Standing, target: Target, fits: Fits, effort: Effort) -> bool:
    """Change the plan of *standing* until all brokers are at the level.

    False, and the plan is as it was, if no such plan is found.  Ends when *effort* is spent.
    """
    effort.spend(0, standing.load.shape[1])  # so that a search ends whose plans cost no step
    return _Reach(standing, target, fits, effort).run()


class _Reach:
    def __init__(self, standing: Standing, target: Target, fits: Fits, effort: Effort) -> None:
        self._standing, self._target, self._fits, self._effort = standing, target, fits, effort
        self._excess: Floats = self._above(standing.load, standing.problem.capacity)
        #: (n,) brokers above the level of which no bundle can go anywhere.
        self._stuck = np.zeros(len(self._excess), np.bool_)
        #: Bundle -> the step from which it may move again.
        self._tabu: dict[int, int] = {}

    def run(self) -> bool:
        """Step until the level is reached."""
        before = self._standing.moves
        while len(self._standing.moves) > self._target.max_moves:
            self._take_least_back(1)
        self._tabu.clear()
        for step in range(self._target.steps):
            if float(self._excess.max()) <= EPSILON**2:
                return True
            over = np.where(self._stuck, 0.0, self._excess)
            broker = int(over.argmax())
            if self._effort.left <= 0 or over[broker] <= EPSILON**2 or not self._step(broker, step):
                break
        if float(self._excess.max()) <= EPSILON**2:
            return True
        self._standing.back_to(before)
        return False

    def _step(self, broker: int, step: int) -> bool:
        if len(self._standing.moves) >= self._target.max_moves and not self._take_least_back(step):
            return False
        rows = self._free_on(broker, step)
        if not len(rows):
            return len(self._standing.moves) > 0 and self._take_least_back(step)
        found = self._best(broker, rows)
        if found is None:
            # Nothing of this broker can go anywhere, so the level is only reached if that changes: try the others.
            self._stuck[broker] = True
            return True
        self._put(*found)
        self._tabu[found[0]] = step + self._target.tenure
        return True

    def _best(self, broker: int, rows: Ints) -> tuple[int, int] | None:
        """The bundle of *rows*, and the broker that it goes to, with the lowest sum above the level afterwards."""
        standing, problem = self._standing, self._standing.problem
        places = emptiest(standing, broker, compared(standing))
        self._effort.spend(len(rows) * len(places), standing.load.shape[1])
        left = self._above(standing.load[broker] - problem.size[rows], problem.capacity[broker])
        change = (left + self._arriving(rows, places).min(axis=1)) if len(places) else np.full(len(rows), np.inf)
        known: dict[int, int] = {}
        for _ in range(_ASKED):
            at = int(np.lexsort((problem.disturbance[rows], change))[0]) if len(rows) > 1 else 0
            if not np.isfinite(change[at]):
                return None
            if at in known:
                return int(rows[at]), known[at]
            allowed = self._fits(int(rows[at]))
            allowed[broker] = False
            arriving = np.where(allowed, self._arriving(rows[at : at + 1], None)[0], np.inf)
            least = np.flatnonzero(arriving <= arriving.min() + EPSILON)
            known[at] = int(least[standing.highest[least].argmin()])
            change[at] = left[at] + arriving[known[at]]
        return None

    def _arriving(self, rows: Ints, places: Ints | None) -> Floats:
        """(rows, places) how much more each place is above the level with each bundle; infinite above the ceiling."""
        problem, load = self._standing.problem, self._standing.load
        capacity, excess = problem.capacity, self._excess
        if places is not None:
            load, capacity, excess = load[places], capacity[places], excess[places]
        found = np.zeros((len(rows), len(load)))
        full = np.zeros_like(found)
        for column in range(load.shape[1]):
            share = (load[:, column] + problem.size[rows, column][:, None]) / capacity[:, column]
            np.maximum(full, share, out=full)
            found += np.square(np.maximum(share - self._target.level, 0.0))
        found -= excess
        found[full > self._target.ceiling] = np.inf
        return found

    def _take_least_back(self, step: int) -> bool:
        """Take back the move without which the sum is lowest or, in turn, the oldest; False where there is none."""
        standing, problem = self._standing, self._standing.problem
        moves = [move for move in standing.moves if self._tabu.get(move.bundle, 0) <= step] or list(standing.moves)
        if not moves:
            return False
        bundle, source, to = np.array(moves, np.int64).T
        size = problem.size[bundle]
        change = self._above(standing.load[source] + size, problem.capacity[source]) - self._excess[source]
        change += self._above(standing.load[to] - size, problem.capacity[to]) - self._excess[to]
        chosen = moves[int(change.argmin()) if step % 2 else 0]
        self._put(chosen.bundle, chosen.source)
        self._tabu[chosen.bundle] = step + self._target.tenure
        return True

    def _free_on(self, broker: int, step: int) -> Ints:
        """Rows of the bundles on *broker*, also those that the plan put there, which are not tabu."""
        arrived = [move.bundle for move in self._standing.moves if move.destination == broker]
        rows = np.append(self._standing.movable_on(broker), np.array(arrived, np.int64))
        held = [bundle for bundle, until in self._tabu.items() if until > step]
        return rows[~np.isin(rows, held)] if held else rows

    def _put(self, bundle: int, to: int) -> None:
        """Put *bundle* on the broker *to*, where it may have come from."""
        standing = self._standing
        here = standing.place(bundle)
        if here != standing.problem.owner[bundle]:
            standing.take_back(bundle)
        if to != standing.problem.owner[bundle]:
            standing.move(bundle, int(standing.problem.owner[bundle]), to)
        self._stuck[:] = False
        for broker in {here, to, int(standing.problem.owner[bundle])}:
            self._excess[broker] = self._above(standing.load[broker], standing.problem.capacity[broker])

    def _above(self, load: Floats, capacity: Floats) -> Floats:
        """(...,) how far *load* (..., R) is above the level: squares, added over the resources."""
        found: Floats = np.square(np.maximum(load / capacity - self._target.level, 0.0)).sum(axis=-1)
        return found
