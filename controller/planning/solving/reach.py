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

from controller.model.load import Ints
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.excess import Excess
from controller.planning.solving.limits import Effort
from controller.planning.solving.steps import EPSILON, Fits, compared, emptiest

#: So many bundles are asked of the filters in a step.
_MAX_CHECKS: Final = 32


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


def reach(assignment: Assignment, target: Target, fits: Fits, effort: Effort) -> bool:
    """Change the plan of *assignment* until all brokers are at the level.

    False, and the plan is as it was, if no such plan is found.  Ends when *effort* is spent.
    """
    effort.spend(0, assignment.load.shape[1])  # so that a search ends whose plans cost no step
    before = assignment.moves
    reached = _Reach(assignment, target, fits, effort).run()
    if not reached:
        assignment.back_to(before)
    return reached


class _Reach:
    def __init__(self, assignment: Assignment, target: Target, fits: Fits, effort: Effort) -> None:
        self._assignment, self._target, self._fits, self._effort = assignment, target, fits, effort
        self._excess = Excess(assignment, target.level, target.ceiling)
        #: (n,) brokers above the level of which no bundle can go anywhere.
        self._stuck = np.zeros(len(self._excess.now), np.bool_)
        #: (m,) the step from which each bundle may move again.
        self._tabu = np.zeros(len(assignment.problem.owner), np.int64)

    def run(self) -> bool:
        """Step until the level is reached; False where it is not."""
        while len(self._assignment.moves) > self._target.max_moves:
            self._take_one_back(1)
        self._tabu[:] = 0
        for step in range(self._target.steps):
            if self._excess.none or self._effort.exhausted or not self._step(step):
                break
        return self._excess.none

    def _step(self, step: int) -> bool:
        """Make one step; False where there is none."""
        over = np.where(self._stuck, 0.0, self._excess.now)
        broker = int(over.argmax())
        if over[broker] <= EPSILON**2:
            return False
        if len(self._assignment.moves) >= self._target.max_moves and not self._take_one_back(step):
            return False
        bundles = self._free_on(broker, step)
        if not len(bundles):
            return self._take_one_back(step)
        best = self._best(broker, bundles)
        if best is None:
            # Nothing of this broker can go anywhere, so the level is only reached if that changes: try the others.
            self._stuck[broker] = True
        else:
            self._put(*best, step)
        return True

    def _best(self, broker: int, bundles: Ints) -> tuple[int, int] | None:
        """Which of *bundles* goes to which broker so that the sum above the level gets lowest; None: nowhere.

        At first every bundle counts with the best of the emptiest brokers, whatever filters say.  The filters are
        asked about the best bundle only, which counts with the best broker that they allow from then on.  It is chosen
        when it still is the best.
        """
        assignment, disturbance = self._assignment, self._assignment.problem.disturbance[bundles]
        places = emptiest(assignment, broker, compared(assignment))
        self._effort.spend(len(bundles) * len(places), assignment.load.shape[1])
        relieved_load = self._excess.with_change(broker, -assignment.problem.size[bundles])
        after = (
            relieved_load + self._excess.added(bundles, places).min(axis=1)
            if len(places)
            else np.full(len(bundles), np.inf)
        )
        allowed_place: dict[int, int] = {}
        for _ in range(_MAX_CHECKS):
            at = int(np.lexsort((disturbance, after))[0])
            if not np.isfinite(after[at]):
                return None
            if at in allowed_place:
                return int(bundles[at]), allowed_place[at]
            allowed = self._fits(int(bundles[at]))
            allowed[broker] = False
            allowed_place[at], added = self._excess.best_place(int(bundles[at]), allowed)
            after[at] = relieved_load[at] + added
        return None

    def _take_one_back(self, step: int) -> bool:
        """Take back the move without which the sum is lowest or, in turn, the oldest; False where there is none."""
        moves = [move for move in self._assignment.moves if self._tabu[move.bundle] <= step]
        moves = moves or list(self._assignment.moves)
        if not moves:
            return False
        bundle, source, to = np.array(moves, np.int64).T
        size, excess = self._assignment.problem.size[bundle], self._excess
        change = excess.with_change(source, size) - excess.now[source]
        change += excess.with_change(to, -size) - excess.now[to]
        chosen = moves[int(change.argmin()) if step % 2 else 0]
        self._put(chosen.bundle, chosen.source, step)
        return True

    def _free_on(self, broker: int, step: int) -> Ints:
        """The bundles on *broker*, also those that the plan put there, which are not tabu."""
        arrived = [move.bundle for move in self._assignment.moves if move.destination == broker]
        bundles = np.concatenate([self._assignment.movable_on(broker), np.array(arrived, np.int64)])
        free: Ints = bundles[self._tabu[bundles] <= step]
        return free

    def _put(self, bundle: int, to: int, step: int) -> None:
        """Put *bundle* on the broker *to*, where it may have come from, and keep it there for some steps."""
        assignment, owner = self._assignment, int(self._assignment.problem.owner[bundle])
        here = assignment.place(bundle)
        if here != owner:
            assignment.take_back(bundle)
        if to != owner:
            assignment.move(bundle, owner, to)
        self._stuck[:] = False
        self._excess.changed({here, to, owner})
        self._tabu[bundle] = step + self._target.tenure
