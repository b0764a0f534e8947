"""From a problem to a plan with its certificate: search and bounds together."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.planning.objective import score
from controller.planning.problem import BalanceProblem, Certificate, CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.bounds import LowerBound, lower_bounds
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.search import searched

#: Numbers below this have few bits, so that no bound of theirs can be verified.
_LEAST: Final = float(np.finfo(np.float64).tiny)


def planned(problem: BalanceProblem, limits: SearchLimits, allowed: Allowed | None = None) -> CertifiedPlan:
    """The best plan found within *limits*, where *allowed* lets bundles go, and what is proved of it."""
    bound = lower_bounds(problem, limits.max_moves)[0]
    return certified(problem, searched(problem, limits, bound.level, allowed), limits.max_moves, bound)


def certified(
    problem: BalanceProblem, moves: Sequence[PlannedMove], max_moves: int, bound: LowerBound
) -> CertifiedPlan:
    """*moves*, a plan or a part of one, with what is proved of it: no plan of at most *max_moves* is below *bound*."""
    return CertifiedPlan(moves=tuple(moves), certificate=_certificate(problem, moves, max_moves, bound))


def _certificate(
    problem: BalanceProblem, moves: Sequence[PlannedMove], max_moves: int, bound: LowerBound
) -> Certificate:
    before, after = score(problem, ()), score(problem, moves)
    return Certificate(
        max_moves=max_moves,
        before=before.peak,
        reached=after.peak,
        # Rounding may put the bound a last bit above what is reached; next to nothing, by much of it.
        bound=min(bound.level, after.peak) if bound.level >= _LEAST else 0.0,
        kind=bound.kind,
        resource=bound.resource,
        size=bound.size,
    )
