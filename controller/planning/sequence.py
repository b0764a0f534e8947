"""Puts the moves of a plan one after another; knows how full the brokers are in between."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import numpy as np

from controller.model.load import Bools, Floats, Ints
from controller.planning.objective import loads
from controller.planning.problem import BalanceProblem, PlannedMove

#: (bundle, moves so far) -> (n,) the brokers that it may go to; no broker: it stays.
Allowed = Callable[[int, Sequence[PlannedMove]], Bools]


class Closing(Protocol):
    """Where bundles may go when brokers are closed."""

    def __call__(self, closed: Collection[int], owner: Ints | None, *, by_number: bool = True) -> Allowed:
        """Where bundles may go when the brokers *closed* (rows) get nothing.

        A filter that keeps the best of the brokers sees only the others.  *owner* (m,) has the bundles; None: that of
        the problem.  *by_number*: ask also the filters that prefer brokers with few bundles or topics.
        """
        ...


def among_those_with_room(
    closing: Closing,
    closed: Collection[int],
    owner: Ints | None,
    bundle: int,
    moves: Sequence[PlannedMove],
    room: Bools,
    *,
    by_number: bool = True,
) -> Bools:
    """(n,) where *bundle*, which has to leave its broker, may go: brokers that have *room* (n,) for it.

    Filters that keep the best brokers, as anti-affinity does, choose among all.  Where none of these has room, they
    choose among those that do.
    """
    best = closing(closed, owner, by_number=by_number)(bundle, moves) & room
    if best.any():
        return best
    return closing({*closed, *np.flatnonzero(~room).tolist()}, owner, by_number=by_number)(bundle, moves)


class MoveSequence:
    """Moves that wait, and those that were taken, in their order."""

    def __init__(self, problem: BalanceProblem, moves: Iterable[PlannedMove], allowed: Allowed | None = None) -> None:
        self._problem, self._allowed = problem, allowed
        #: (n, R) of the brokers, after the moves that were taken.
        self.load: Floats = loads(problem, problem.owner)
        self.waiting, self.taken = list(moves), list[PlannedMove]()
        #: Broker -> how many of the moves that were taken left it.
        self._departed = Counter[int]()

    def full(self, move: PlannedMove) -> float:
        """The utilisation of the receiving broker's fullest resource when the bundle has come to it."""
        there = self.load[move.destination] + self._problem.size[move.bundle]
        return float((there / self._problem.capacity[move.destination]).max())

    def may_follow(self, move: PlannedMove) -> bool:
        """Whether the bundle may go there after the moves that were taken."""
        return self._allowed is None or bool(self._allowed(move.bundle, self.taken)[move.destination])

    def take_all(self, ceiling: Floats | None = None) -> tuple[PlannedMove, ...]:
        """Take the moves that wait, as far as filters allow each after those before it; returns all that were taken.

        No broker is above its *ceiling* (n,) when a bundle has come to it.
        """

        # Move that found no room -> how many had left its destination by then: until one more has, there is none.
        no_room = dict[PlannedMove, int]()

        def fits(move: PlannedMove) -> bool:
            if ceiling is None:
                return True
            departed = self._departed[move.destination]
            if no_room.get(move) == departed:
                return False
            has_room = bool(self.full(move) <= ceiling[move.destination])
            if not has_room:
                no_room[move] = departed
            return has_room

        while self.take_first(move for move in self.waiting if fits(move) and self.may_follow(move)):
            pass
        return tuple(self.taken)

    def take_first(self, moves: Iterable[PlannedMove]) -> bool:
        """Take the first of *moves*, which wait; False where there is none."""
        for move in moves:
            self.waiting.remove(move)
            self.taken.append(move)
            self._departed[move.source] += 1
            self.load[move.source] -= self._problem.size[move.bundle]
            self.load[move.destination] += self._problem.size[move.bundle]
            return True
        return False
