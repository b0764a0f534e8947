"""From a problem to a plan with its certificate: search and bounds together."""

from collections.abc import Sequence

from controller.planning.bounds import LowerBound, lower_bounds
from controller.planning.objective import score
from controller.planning.problem import BalanceProblem, Certificate, CertifiedPlan, PlannedMove
from controller.planning.search import SearchLimits, searched
from controller.planning.standing import Allowed


def planned(problem: BalanceProblem, limits: SearchLimits, allowed: Allowed | None = None) -> CertifiedPlan:
    """The best plan found within *limits*, where *allowed* lets bundles go, and what is proved of it."""
    bound = lower_bounds(problem, limits.max_moves)[0]
    moves = searched(problem, limits, bound.level, allowed)
    return CertifiedPlan(moves=moves, certificate=_certified(problem, moves, limits.max_moves, bound))


def part_of(problem: BalanceProblem, moves: Sequence[PlannedMove], max_moves: int) -> CertifiedPlan:
    """*moves*, a part of a plan, with what is proved of it: against all plans of at most *max_moves* moves."""
    bound = lower_bounds(problem, max_moves)[0]
    return CertifiedPlan(moves=tuple(moves), certificate=_certified(problem, moves, max_moves, bound))


def without_moves(problem: BalanceProblem, max_moves: int) -> CertifiedPlan:
    """The plan that leaves everything where it is, of those of at most *max_moves* moves."""
    return CertifiedPlan(moves=(), certificate=_certified(problem, (), max_moves, lower_bounds(problem, max_moves)[0]))


def _certified(problem: BalanceProblem, moves: Sequence[PlannedMove], max_moves: int, bound: LowerBound) -> Certificate:
    before, after = score(problem, ()), score(problem, moves)
    return Certificate(
        max_moves=max_moves,
        before=before.peak,
        reached=after.peak,
        # Rounding may put the bound a last bit above what is reached.
        bound=min(bound.level, after.peak),
        kind=bound.kind,
        resource=bound.resource,
        size=bound.size,
    )
