"""A plan under construction: the assignment, the brokers that still give, and the moves that filters allow next."""

from collections.abc import Sequence

import numpy as np

from controller.model.load import Bools
from controller.planning.objective import above, ceilings
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.assignment import Assignment
from controller.planning.solving.limits import Effort, SearchLimits
from controller.planning.solving.steps import EPSILON


class PartialPlan:
    """What every part of the search reads and changes."""

    def __init__(self, problem: BalanceProblem, limits: SearchLimits, allowed: Allowed | None) -> None:
        self.problem, self.limits = problem, limits
        self.assignment = Assignment(problem)
        #: (n,) which brokers give bundles, and which of those no step helps.
        self.gives: Bools = np.any(self.assignment.load / problem.capacity > limits.begin, axis=1)
        self.stuck: Bools = np.zeros(len(self.gives), np.bool_)
        self.effort = Effort(limits.effort)
        self._allowed = allowed

    @property
    def filtered(self) -> bool:
        """Whether there are filters to ask."""
        return self._allowed is not None

    @property
    def moves_left(self) -> int:
        """How many moves the plan may still get."""
        return self.limits.max_moves - len(self.assignment.moves)

    def fits(self, bundle: int) -> Bools:
        """(n,) where *bundle* may go by the filters, after the moves so far."""
        if self._allowed is None:
            return np.ones(len(self.gives), np.bool_)
        self.effort.ask()
        return self._allowed(bundle, self.assignment.moves)

    def fullest(self) -> int | None:
        """The fullest broker that may give and is above the goal; None where there is none."""
        utilisation = np.where(self.gives & ~self.stuck, self.assignment.highest, -1.0)
        broker = int(utilisation.argmax()) if len(utilisation) else 0
        return broker if len(utilisation) and utilisation[broker] > self.limits.goal + EPSILON else None

    def peak_of_givers(self) -> float:
        """The highest utilisation of the brokers that give and are not stuck."""
        return float(self.assignment.highest[self.gives & ~self.stuck].max(initial=0.0))

    def in_order(self) -> tuple[PlannedMove, ...]:
        """The moves that have a place in an order that filters allow, in which no broker gets fuller than it may be."""
        return self.assignment.ordered(ceilings(self.problem, self.assignment.moves), self._allowed)

    def orderable(self) -> tuple[PlannedMove, ...]:
        """The moves so far that capacity and filters allow in some order; none where there is no filter to ask."""
        return self.in_order() if self.filtered else ()

    def above_goal(self, moves: Sequence[PlannedMove]) -> tuple[float, float]:
        """How far above the goal brokers are after *moves*: the fullest one, and the sum of the squares of all."""
        after = Assignment(self.problem)
        after.back_to(moves)
        return above(after.highest, self.limits.goal)
