"""A rolling restart: in which order brokers are emptied and restarted, so that few bundles move twice.

Every bundle has to leave its broker once.  A bundle that goes to a broker that was restarted already, or that is not
restarted at all, is done.  The first brokers to be emptied have nowhere to send theirs but to brokers whose turn is
still to come, if all brokers are restarted.  So these bundles move at least twice, and it is best to begin where the
fewest bundles are.  Then the bundles of each next broker go to those that were restarted before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.model.load import Ints
from controller.planning.objective import highest, loads, owner_after
from controller.planning.plans.emptying import Stuck, emptied
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Closing


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStep:
    """One group of brokers: what moves before they are restarted together."""

    brokers: tuple[int, ...]
    moves: tuple[PlannedMove, ...]
    stuck: tuple[Stuck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """All steps, in their order."""

    steps: tuple[RestartStep, ...]
    #: No order of these groups, and no choice of destinations, needs fewer moves.
    fewest: int
    #: (m,) where each bundle is at the end.
    owner: Ints

    @property
    def moves(self) -> int:
        """How many moves all steps have."""
        return sum(len(step.moves) for step in self.steps)

    def times(self) -> Ints:
        """(m,) how often each bundle moves."""
        counts = np.zeros(len(self.owner), np.int64)
        for step in self.steps:
            counts[[move.bundle for move in step.moves]] += 1
        return counts


def fewest_restart_moves(problem: BalanceProblem, groups: Sequence[Sequence[int]]) -> int:
    """So many moves a restart of all *groups* needs at least, in any order.

    Each bundle on them moves once.  Where no other broker is left, those of the group that comes first move again.
    """
    owned = [int(np.isin(problem.owner, list(group)).sum()) for group in groups]
    everything = len({row for group in groups for row in group}) == len(problem.capacity)
    return sum(owned) + (min(owned, default=0) if everything and len(groups) > 1 else 0)


def rolling_restart(
    problem: BalanceProblem,
    groups: Sequence[Sequence[int]],
    ceiling: float,
    closing: Closing | None = None,
) -> RollingRestart:
    """Restart the brokers of each of *groups* together, one group after the other.

    No broker gets above *ceiling*.  The group with the fewest bundles comes first, then the one with the least load.
    """
    owner, steps, waiting = problem.owner.copy(), list[RestartStep](), _ordered(problem, groups)
    for at, group in enumerate(waiting):
        later = {row for other in waiting[at + 1 :] for row in other}
        result = emptied(problem, group, ceiling, owner=owner, last_choice=later, closing=closing)
        owner = owner_after(replace(problem, owner=owner), result.moves)
        steps.append(RestartStep(brokers=tuple(group), moves=result.moves, stuck=result.stuck))
    return RollingRestart(steps=tuple(steps), fewest=fewest_restart_moves(problem, groups), owner=owner)


def _ordered(problem: BalanceProblem, groups: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """*groups* in the order of the restart."""
    full = highest(loads(problem, problem.owner), problem.capacity)
    owned = np.bincount(problem.owner, minlength=len(full))
    by_load = sorted(groups, key=lambda group: (float(full[list(group)].max(initial=0.0)), list(group)))
    if not by_load:
        return []
    first = min(by_load, key=lambda group: int(owned[list(group)].sum()))
    return [first, *(group for group in by_load if group is not first)]
