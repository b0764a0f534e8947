"""How many brokers a load needs, and what one broker more or less would change."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controller.planning.plans.emptying import Emptied, Stuck, emptied
from controller.planning.problem import BalanceProblem
from controller.planning.sequence import Closing

#: More brokers than this are not looked for.
MOST_BROKERS: Final = 100_000
#: So many brokers are tried as the next one to go, those whose bundles disturb least.
_TRIED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersNeeded:
    """How many brokers keep a headroom."""

    #: Like the average broker of the cluster; None: no number of brokers is enough.
    brokers: int | None
    #: What needs the most brokers.
    resource: int


def brokers_needed(problem: BalanceProblem, headroom: float) -> BrokersNeeded:
    """How many brokers, each like the average one, stay *headroom* (a fraction) below their capacity.

    It counts with a load that is spread evenly, and with the largest bundle, which has to be somewhere.  What brokers
    use without bundles is counted once for each broker, as in the one that uses least.
    """
    room, load, each = 1 - headroom, problem.size.sum(axis=0), problem.capacity.mean(axis=0)
    if room <= 0:
        return BrokersNeeded(brokers=None, resource=0)
    own = problem.fixed.min(axis=0, initial=np.inf)
    # What stays where it is although it is not the broker's own: it has to fit as well.
    load = load + problem.fixed.sum(axis=0) - own * len(problem.fixed)
    left = each * room - own
    if problem.size.size:
        left = np.where(problem.size.max(axis=0) > left, 0.0, left)
    if (left <= 0).any():
        return BrokersNeeded(brokers=None, resource=int(left.argmin()))
    # Rounding does not make it one more.
    needed = np.ceil(load / left - 1e-9)
    resource = int(needed.argmax())
    most = max(1.0, float(needed[resource]))
    return BrokersNeeded(brokers=int(most) if most <= MOST_BROKERS else None, resource=resource)


def with_more_brokers(problem: BalanceProblem, number: int) -> BalanceProblem:
    """*problem* with *number* more brokers, empty, each like the average one."""
    each = np.tile(problem.capacity.mean(axis=0), (number, 1))
    own = np.tile(problem.fixed.min(axis=0, initial=np.inf), (number, 1))
    return replace(problem, capacity=np.vstack([problem.capacity, each]), fixed=np.vstack([problem.fixed, own]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Which brokers can go, and where their bundles go."""

    brokers: tuple[int, ...]
    emptied: Emptied
    #: False: fewer can go than were asked for.
    enough: bool
    #: Then: the bundles of the next one that have no place.
    stuck: tuple[Stuck, ...] = ()


def removable(problem: BalanceProblem, number: int, ceiling: float, closing: Closing | None = None) -> Removed:
    """*number* brokers that can go, chosen one by one: those whose bundles disturb least, if they fit elsewhere.

    No broker that stays gets above *ceiling*.
    """
    cost = np.bincount(problem.owner, weights=problem.disturbance, minlength=len(problem.capacity))
    cheapest: list[int] = np.argsort(cost, kind="stable").tolist()
    chosen, found = list[int](), Emptied(moves=(), stuck=())
    while len(chosen) < min(number, len(problem.capacity) - 1):
        more, now = _one_more(problem, chosen, cheapest, ceiling, closing)
        if now.stuck:
            return Removed(brokers=tuple(chosen), emptied=found, enough=False, stuck=now.stuck)
        chosen, found = more, now
    return Removed(brokers=tuple(chosen), emptied=found, enough=len(chosen) == number)


def _one_more(
    problem: BalanceProblem, chosen: list[int], cheapest: list[int], ceiling: float, closing: Closing | None
) -> tuple[list[int], Emptied]:
    """*chosen* and one more of *cheapest*, and how all of them are emptied; the cheapest one where none can go."""
    first = None
    for row in [row for row in cheapest if row not in chosen][:_TRIED]:
        found = [*chosen, row], emptied(problem, [*chosen, row], ceiling, closing=closing)
        if not found[1].stuck:
            return found
        first = first or found
    assert first is not None, "there is a broker that is not chosen"
    return first
