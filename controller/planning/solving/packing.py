"""Packs a plan of few moves: chooses the bundles that leave, then their destinations, then improves both.

1. Every broker above the level gives the largest bundles of its fullest resource, until it is at the level.  With one
   resource no plan has fewer moves.
2. From the largest on, each of these goes to the broker that is least above the level with it.
3. While a broker is above the level, the best change of a bundle that leaves it or comes to it: another destination,
   that of another bundle of the plan in exchange for its own, or another bundle of the same broker instead of it.  The
   bundles of a change then stay for some steps (tabu), so that the next ones do not undo it.

reach.py adds and takes back moves instead: it finds plans where more moves are needed than these.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Floats, Ints
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.excess import Excess
from controller.planning.solving.limits import Effort
from controller.planning.solving.reach import Target
from controller.planning.solving.steps import EPSILON, Fits, largest

#: So many changes are asked of the filters in a step.
_MAX_CHECKS: Final = 32
#: Of the bundles that come to the fullest broker, and of the others of the plan, so many are looked at.
_MAX_COMING: Final = 128
_MAX_OTHERS: Final = 1024
_NOBODY: Final = -1


def pack(assignment: Assignment, target: Target, fits: Fits, effort: Effort) -> bool:
    """Make a plan of few moves the plan of *assignment*, in which all brokers are at the level.

    False, and the plan is as it was, if no such plan is found.  Ends when *effort* is spent.
    """
    effort.spend(0, assignment.load.shape[1])
    before = assignment.moves
    assignment.back_to(())
    leaving = _leaving(assignment, target, effort)
    if leaving is not None:
        packing = _Packing(assignment, target, fits, effort)
        if packing.place(leaving) and packing.mend():
            return True
    assignment.back_to(before)
    return False


def _leaving(assignment: Assignment, target: Target, effort: Effort) -> list[int] | None:
    """Bundles without which every broker is at the level, the largest first; None where the moves or *effort* end."""
    problem, chosen = assignment.problem, list[int]()
    for broker in np.flatnonzero(assignment.highest > target.level + EPSILON).tolist():
        bundles, load, capacity = assignment.movable_on(broker), assignment.load[broker], problem.capacity[broker]
        size = problem.size[bundles]
        while float((utilisation := load / capacity).max()) > target.level + EPSILON:
            remaining = size[:, int(utilisation.argmax())]
            if len(chosen) == target.max_moves or effort.exhausted or float(remaining.max(initial=0.0)) <= 0:
                return None
            effort.choose(len(bundles))
            at = int(remaining.argmax())
            chosen.append(int(bundles[at]))
            load = load - size[at]
            size[at] = 0.0
    leaving = np.array(chosen, np.int64)
    share = (problem.size[leaving] / problem.capacity.max(axis=0)).max(axis=1)
    largest_first: list[int] = leaving[np.argsort(-share, kind="stable")].tolist()
    return largest_first


class _Changes(NamedTuple):
    """Changes of a plan, k: one or two bundles each, and the brokers that they go to; the owner: they stay."""

    #: (k, 2); the second one may be nobody.
    bundles: Ints
    to: Ints
    #: (k,) how much more all brokers are above the level afterwards.
    more: Floats


class _Packing:
    def __init__(self, assignment: Assignment, target: Target, fits: Fits, effort: Effort) -> None:
        self._assignment, self._target, self._fits, self._effort = assignment, target, fits, effort
        self._excess = Excess(assignment, target.level, np.inf)
        #: (m + 1,) the step from which each bundle may change again; behind them nobody, who always may.
        self._tabu = np.zeros(len(assignment.problem.owner) + 1, np.int64)

    def place(self, leaving: Sequence[int]) -> bool:
        """Give each of the bundles a destination; False where filters leave none, or the effort ends."""
        for bundle in leaving:
            self._effort.choose(len(self._excess.now))
            if self._effort.exhausted:
                return False
            owner = int(self._assignment.problem.owner[bundle])
            allowed = self._fits(bundle)
            allowed[owner] = False
            to, added = self._excess.best_place(bundle, allowed)
            if not np.isfinite(added):
                return False
            self._assignment.move(bundle, owner, to)
            self._excess.changed((owner, to))
        return True

    def mend(self) -> bool:
        """Change the plan until the level is reached; False where it is not."""
        for step in range(self._target.steps):
            if self._excess.none or self._effort.exhausted or not self._step(step):
                break
        return self._excess.none

    def _step(self, step: int) -> bool:
        """Make the best change that filters allow; False where there is none."""
        changes = self._changes(int(self._excess.now.argmax()))
        self._effort.spend(len(changes.more), self._assignment.load.shape[1])
        more = np.where((self._tabu[changes.bundles] > step).any(axis=1), np.inf, changes.more)
        for at in np.argsort(more, kind="stable")[:_MAX_CHECKS].tolist():
            if not np.isfinite(more[at]):
                return False
            bundles = [each for each in changes.bundles[at].tolist() if each != _NOBODY]
            if self._changed(bundles, changes.to[at].tolist()):
                self._tabu[bundles] = step + self._target.tenure
                return True
        return False

    def _changes(self, broker: int) -> _Changes:
        """All changes of bundles of the plan that leave *broker* or come to it."""
        moves = np.array(self._assignment.moves, np.int64).reshape(-1, 3)
        # The first ones were placed first: they are the largest, but for those that were changed.
        coming, others = moves[moves[:, 2] == broker][:_MAX_COMING], moves[moves[:, 2] != broker][:_MAX_OTHERS]
        touching = moves[(moves[:, 1] == broker) | (moves[:, 2] == broker)][:_MAX_COMING]
        parts = (self._elsewhere(coming), self._exchanged(broker, coming, others), self._instead(touching))
        return _Changes(
            np.concatenate([part.bundles for part in parts]),
            np.concatenate([part.to for part in parts]),
            np.concatenate([part.more for part in parts]),
        )

    def _elsewhere(self, moves: Ints) -> _Changes:
        """Each of *moves* to every other broker."""
        bundle, source, to = moves.T
        n = len(self._excess.now)
        relief = self._excess.with_change(to, -self._assignment.problem.size[bundle]) - self._excess.now[to]
        more = relief[:, None] + self._excess.added(bundle)
        rows = np.arange(len(moves))
        more[rows, source] = more[rows, to] = np.inf
        bundles = np.stack([np.repeat(bundle, n), np.full(len(moves) * n, _NOBODY)], axis=1)
        places = np.tile(np.arange(n), len(moves))
        return _Changes(bundles, np.stack([places, places], axis=1), more.ravel())

    def _exchanged(self, broker: int, coming: Ints, others: Ints) -> _Changes:
        """Each bundle that comes to *broker* there where another one goes, which comes to *broker* instead."""
        mine, theirs = np.repeat(coming, len(others), axis=0), np.tile(others, (len(coming), 1))
        change = self._assignment.problem.size[theirs[:, 0]] - self._assignment.problem.size[mine[:, 0]]
        to = theirs[:, 2]
        more = self._excess.with_change(broker, change) - self._excess.now[broker]
        more += self._excess.with_change(to, -change) - self._excess.now[to]
        more[(theirs[:, 1] == broker) | (mine[:, 1] == to)] = np.inf
        return _Changes(np.stack([mine[:, 0], theirs[:, 0]], axis=1), np.stack([to, mine[:, 2]], axis=1), more)

    def _instead(self, moves: Ints) -> _Changes:
        """For each of *moves* every other bundle of the same source; of many, the largest."""
        sources = moves[:, 1].tolist()
        largest_of = {source: largest(self._assignment, source) for source in dict.fromkeys(sources)}
        replaced = [largest_of[source] for source in sources]
        again = np.repeat(moves, [len(bundles) for bundles in replaced], axis=0)
        instead = np.concatenate([*replaced, np.zeros(0, np.int64)])
        bundle, source, to = again.T
        change = self._assignment.problem.size[instead] - self._assignment.problem.size[bundle]
        more = self._excess.with_change(source, -change) - self._excess.now[source]
        more += self._excess.with_change(to, change) - self._excess.now[to]
        return _Changes(np.stack([bundle, instead], axis=1), np.stack([source, to], axis=1), more)

    def _changed(self, bundles: Sequence[int], to: Sequence[int]) -> bool:
        """Let *bundles* go *to* these brokers; False, and nothing has changed, where filters do not let them."""
        assignment, before = self._assignment, self._assignment.moves
        planned = [move for move in before if move.bundle in bundles]
        for move in planned:
            assignment.take_back(move.bundle)
        for bundle, destination in zip(bundles, to, strict=False):
            owner = int(assignment.problem.owner[bundle])
            if destination == owner:
                continue
            if not self._fits(bundle)[destination]:
                assignment.back_to(before)
                return False
            assignment.move(bundle, owner, destination)
        self._excess.changed({*(broker for move in planned for broker in move[1:]), *to})
        return True
