"""Finds the moves of a plan.

1. Lower the fullest broker, step by step (descent.py).
2. Take moves back that are not needed, since later ones did more (tidying.py).
3. Look for plans that reach a lower level with as many moves, and then the same level with fewer (levels.py).
4. Where another bundle of the same broker does as well and disturbs less, take that one (tidying.py).

Moves and steps are counted.  There is no clock and no chance, so the same problem has the same plan on every machine.
"""

from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.descent import descend
from controller.planning.solving.levels import reach_lower, use_fewer
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.tidying import disturb_less, drop_needless, possible


def searched(
    problem: BalanceProblem, limits: SearchLimits, bound: float = 0.0, allowed: Allowed | None = None
) -> tuple[PlannedMove, ...]:
    """The moves, in the order in which they are to be carried out; no plan is looked for that is below *bound*."""
    draft = PartialPlan(problem, limits, allowed)
    if not draft.gives.any():
        return ()
    ceiling = max(1.0, limits.goal, bound)
    descend(draft, ceiling)
    partial = draft.orderable()
    drop_needless(draft)
    descend(draft, ceiling)
    reach_lower(draft, bound)
    reached = draft.orderable()
    drop_needless(draft)
    use_fewer(draft)
    fewer = draft.orderable()
    disturb_less(draft)
    max_moves, best = len(draft.assignment.moves), possible(draft)
    # What filters do not let follow in the end may have been possible with the moves of an earlier plan.
    if not draft.filtered or len(best) == max_moves:
        return best
    return min(best, fewer, reached, partial, key=draft.above_goal)
