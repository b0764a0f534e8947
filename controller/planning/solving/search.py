"""Finds the moves: a local search that lowers the fullest broker, step by step.

1. Take the fullest broker that may still give.  Of all its bundles and all destinations, take the pair after which the
   fuller one of the two is emptiest.  Where no single move helps, exchange two bundles.  Where that does not help
   either, the broker stays as it is.
2. Take moves back that are not needed, since later ones did more.
3. Look for plans that reach a lower level with as many moves, and then the same level with fewer (reach.py).
4. Where another bundle of the same broker does as well and disturbs less, take that one.

Moves and steps are counted.  There is no clock and no chance, so the same problem has the same plan on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np

from controller.model.load import Bools, Floats
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.bounds import fewest_moves
from controller.planning.solving.reach import Effort, Target, reach
from controller.planning.solving.standing import Standing
from controller.planning.solving.steps import EPSILON, best_exchange, best_move

#: For each level, searches that keep a bundle where it was put for so many steps, at most so many steps each.
_TENURES: Final = (7, 12, 4)
#: Where the goal is reached, a last search for fewer moves, one by one, keeps bundles so long, and has this share of
#: the effort to itself: the searches before it may have used up all of theirs.
_LAST_TENURE: Final = 3
_LAST_SHARE: Final = 0.5
_STEPS: Final = 150
#: This close to the bound, as a share of it, is close enough.
_NEAR: Final = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """What a plan may do, and when it is good enough."""

    max_moves: int
    #: How many pairs of a bundle and a broker the search may look at, about, after it has a first plan.
    effort: int = 1_000_000
    #: Brokers above this utilisation give bundles; or (R,) above one for each resource,
    begin: float | Floats = 0.0
    #: until they are at or below this one.
    goal: float = 0.0


def searched(
    problem: BalanceProblem, limits: SearchLimits, bound: float = 0.0, allowed: Allowed | None = None
) -> tuple[PlannedMove, ...]:
    """The moves, in the order in which they are to be carried out; no plan is looked for that is below *bound*."""
    search = _Search(problem, limits, bound, allowed)
    if not search.gives:
        return ()
    search.descend()
    begun = search.orderable()
    search.drop_needless()
    search.descend()
    search.reach_lower(bound)
    reached = search.orderable()
    search.drop_needless()
    search.use_fewer()
    fewer = search.orderable()
    search.disturb_less()
    wanted, found = len(search.standing.moves), search.possible()
    # What filters do not let follow in the end may have been possible with the moves of an earlier plan.
    if allowed is None or len(found) == wanted:
        return found
    return min(found, fewer, reached, begun, key=search.above_goal)


class _Search:
    """A plan that is being made."""

    def __init__(self, problem: BalanceProblem, limits: SearchLimits, bound: float, allowed: Allowed | None) -> None:
        self._problem, self._limits, self._allowed = problem, limits, allowed
        self.standing = Standing(problem)
        #: No broker that receives a bundle may be above this.
        self.ceiling = max(1.0, limits.goal, bound)
        self._gives: Bools = np.any(self.standing.load / problem.capacity > limits.begin, axis=1)
        self._stuck = np.zeros(len(self._gives), np.bool_)
        self._effort = Effort(limits.effort)

    def descend(self) -> None:
        """Lower the fullest broker until all are at the goal, nothing helps, or the moves are used up."""
        while self._moves_left > 0:
            broker = self._fullest()
            if broker is None:
                return
            found = best_move(self.standing, broker, self._fits, self.ceiling)
            if found is None and self._moves_left > 1:
                exchanged = best_exchange(self.standing, broker, self._fits, self.ceiling)
                if exchanged is not None:
                    for move in exchanged:
                        self.standing.move(*move)
                    continue
            if found is None:
                self._stuck[broker] = True
            else:
                self.standing.move(*found)

    def drop_needless(self) -> None:
        """Take moves back without which their source is no fuller than the fullest broker, or than the goal."""
        for move in sorted(self.standing.moves, key=lambda move: -self._problem.disturbance[move.bundle]):
            level = max(self._limits.goal, self._peak() - EPSILON)
            without = self.standing.load[move.source] + self._problem.size[move.bundle]
            if float((without / self._problem.capacity[move.source]).max()) <= level:
                self.standing.take_back(move.bundle)

    def orderable(self) -> tuple[PlannedMove, ...]:
        """The moves so far that capacity and filters allow in some order; none where there is no filter to ask."""
        return () if self._allowed is None else self.standing.ordered(max(1.0, self.standing.peak), self._allowed)

    def above_goal(self, moves: Sequence[PlannedMove]) -> tuple[float, float]:
        """How far above the goal brokers are after *moves*: the fullest one, and the sum of the squares of all."""
        after = Standing(self._problem)
        after.back_to(moves)
        above = np.maximum(after.highest - self._limits.goal, 0.0)
        return round(float(above.max(initial=0.0)), 9), round(float((above * above).sum()), 9)

    def possible(self) -> tuple[PlannedMove, ...]:
        """The moves in an order that capacity and filters allow, without those that are not needed then."""
        standing = self.standing
        while True:
            moves = standing.ordered(max(1.0, standing.peak), self._allowed)
            if len(moves) == len(standing.moves):
                return moves
            # Filters were asked in the order of the search, with moves that were taken back later.
            standing.back_to(moves)
            self.drop_needless()

    @property
    def gives(self) -> bool:
        """Whether any broker gives bundles."""
        return bool(self._gives.any())

    def reach_lower(self, bound: float) -> None:
        """Look for plans that reach lower levels, between *bound* and what is reached, by bisection."""
        low = max(bound, self._limits.goal)
        failed, tenures = 0, cycle(_TENURES)
        # A level that differs by less is reached by a plan that changes nothing.
        while self._effort.left > 0 and (peak := self.standing.peak) > low * (1 + _NEAR) + EPSILON**2:
            level = (low + peak) / 2
            reached = self._reached(level, self._limits.max_moves, next(tenures)) and self.standing.peak < peak
            failed = 0 if reached else failed + 1
            if failed == len(_TENURES):
                low, failed = level, 0

    def use_fewer(self) -> None:
        """Look for plans with fewer moves that leave no broker fuller, by bisection from the fewest that it needs.

        Not where the moves are used up, or a broker is stuck: there, moves that do not lower the peak are wanted too.
        """
        level = max(self._limits.goal, self.standing.peak)
        if level > self._limits.goal and (self._moves_left <= 0 or self._stuck.any()):
            return
        low = fewest = fewest_moves(self._problem, level)
        while self._effort.left > 0 and low < len(self.standing.moves):
            moves = int(low + len(self.standing.moves)) // 2
            if not any(self._reached(level, moves, tenure) for tenure in _TENURES):
                low = moves + 1
        self._effort = Effort(int(_LAST_SHARE * self._limits.effort))
        while level <= self._limits.goal and self._effort.left > 0 and fewest < len(self.standing.moves):
            if not self._reached(level, len(self.standing.moves) - 1, _LAST_TENURE):
                return

    def _reached(self, level: float, max_moves: int, tenure: int) -> bool:
        target = Target(level=level, max_moves=max_moves, ceiling=max(1.0, level), tenure=tenure, steps=_STEPS)
        standing = self.standing
        before, peak = standing.moves, standing.peak
        if not reach(standing, target, self._fits, self._effort):
            return False
        # The filters were asked with moves that were taken back since then.
        moves = standing.ordered(target.ceiling, self._allowed)
        if len(moves) < len(standing.moves):
            standing.back_to(moves)
            most = level if max_moves < len(before) else peak - EPSILON
            if self._allowed is None or standing.peak > most:
                standing.back_to(before)
                return False
            self._stuck[:] = False
            return standing.peak <= level
        self._stuck[:] = False
        return True

    def disturb_less(self) -> None:
        """Put a bundle that disturbs less in the place of another one, where nothing gets fuller than it may be."""
        level, problem, standing = max(self._limits.goal, self._peak()), self._problem, self.standing
        for bundle, source, to in standing.moves:
            rows = standing.movable_on(source)
            rows = rows[problem.disturbance[rows] < problem.disturbance[bundle]]
            change = problem.size[bundle] - problem.size[rows]
            left = ((standing.load[source] + change) / problem.capacity[source]).max(axis=1)
            right = ((standing.load[to] - change) / problem.capacity[to]).max(axis=1)
            rows = rows[(left <= level) & (right <= max(level, standing.highest[to]))]
            standing.take_back(bundle)
            least = rows[np.argsort(problem.disturbance[rows], kind="stable")][:8].tolist()
            standing.move(next((row for row in least if self._fits(row)[to]), bundle), source, to)

    @property
    def _moves_left(self) -> int:
        return self._limits.max_moves - len(self.standing.moves)

    def _fits(self, bundle: int) -> Bools:
        """(n,) where *bundle* may go by the filters."""
        if self._allowed is None:
            return np.ones(len(self._gives), np.bool_)
        self._effort.ask()
        return self._allowed(bundle, self.standing.moves)

    def _fullest(self) -> int | None:
        """The fullest broker that may give and is above the goal; None where there is none."""
        level = np.where(self._gives & ~self._stuck, self.standing.highest, -1.0)
        broker = int(level.argmax()) if len(level) else 0
        return broker if len(level) and level[broker] > self._limits.goal + EPSILON else None

    def _peak(self) -> float:
        """The highest utilisation of brokers that gave, or could give."""
        level = self.standing.highest[self._gives & ~self._stuck]
        return float(level.max(initial=0.0))
