"""The broker of every bundle while a plan is made, and how full the brokers are."""

from collections.abc import Sequence

import numpy as np

from controller.model.load import Floats, Ints
from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed, MoveSequence


class Assignment:
    """The brokers' loads after the moves of a plan, kept as moves come and go."""

    def __init__(self, problem: BalanceProblem) -> None:
        self.problem = problem
        self.load: Floats = loads(problem, problem.owner)
        #: (n,) the utilisation of each broker's fullest resource.
        self.highest: Floats = highest(self.load, problem.capacity)
        self._moves: dict[int, PlannedMove] = {}
        self._moved = np.zeros(len(problem.owner), np.bool_)
        order = np.argsort(problem.owner, kind="stable")
        #: Rows by their owners, and where in them those of each broker begin.
        self._order, owners = order, np.arange(len(self.load) + 1)
        self._begin: list[int] = np.searchsorted(problem.owner[order], owners).tolist()

    @property
    def moves(self) -> tuple[PlannedMove, ...]:
        """The moves, in the order in which they were made."""
        return tuple(self._moves.values())

    @property
    def peak(self) -> float:
        """The highest utilisation over brokers and resources."""
        return float(self.highest.max(initial=0.0))

    def movable_on(self, broker: int) -> Ints:
        """Rows of the bundles that *broker* owns and that no move has taken yet."""
        rows = self._order[self._begin[broker] : self._begin[broker + 1]]
        return rows[~self._moved[rows]]

    def place(self, bundle: int) -> int:
        """The broker that has *bundle* after the plan."""
        move = self._moves.get(bundle)
        return int(self.problem.owner[bundle]) if move is None else move.destination

    def move(self, bundle: int, source: int, destination: int) -> None:
        """Add a move to the plan."""
        self._moves[bundle] = PlannedMove(bundle, source, destination)
        self._moved[bundle] = True
        self._shift(bundle, source, destination)

    def take_back(self, bundle: int) -> None:
        """Remove the move of *bundle* from the plan."""
        move = self._moves.pop(bundle)
        self._moved[bundle] = False
        self._shift(bundle, move.destination, move.source)

    def back_to(self, moves: Sequence[PlannedMove]) -> None:
        """Make *moves* the plan."""
        for bundle in list(self._moves):
            self.take_back(bundle)
        for move in moves:
            self.move(*move)

    def ordered(self, ceiling: Floats, allowed: Allowed | None = None) -> tuple[PlannedMove, ...]:
        """The moves in an order in which no broker is above its *ceiling* (n,) when a bundle has come to it.

        *allowed* lets each move go where it goes after those before it.  A move that has no place in such an order is
        left out.
        """
        return MoveSequence(self.problem, self._moves.values(), allowed).take_all(ceiling)

    def _shift(self, bundle: int, source: int, destination: int) -> None:
        self.load[source] -= self.problem.size[bundle]
        self.load[destination] += self.problem.size[bundle]
        for broker in (source, destination):
            # As max(), which takes twice as long of a row as short as this one.
            self.highest[broker] = np.maximum.reduce(self.load[broker] / self.problem.capacity[broker])
