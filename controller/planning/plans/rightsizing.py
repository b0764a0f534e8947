"""How many brokers a load needs, and what one broker more or less would change."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Floats
from controller.planning.objective import ROUNDING
from controller.planning.plans.emptying import Emptied, Stuck, emptied
from controller.planning.problem import BalanceProblem
from controller.planning.sequence import Closing

#: On more brokers than this nothing is placed.
MAX_BROKERS: Final = 10_000
#: More brokers than this are not counted.
_COUNTLESS: Final = 1e15
#: So many brokers are tried as the next one to go, those whose bundles disturb least.
_TRIED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersNeeded:
    """How many brokers, each like the average one, keep a headroom: what is proved, and what is shown."""

    #: No fewer keep it, proved; None: no number does.
    at_least: int | None
    #: So many keep it: all bundles were placed on them; None: no number was found.
    sufficient: int | None
    #: The resource that needs the most brokers.
    resource: int


def brokers_needed(problem: BalanceProblem, headroom: float) -> BrokersNeeded:
    """How many brokers, each like the average one, stay *headroom* (a fraction) below their capacity.

    Proved by the load as a liquid, and by counting: a broker has room for so many bundles of at least some load.  Shown
    by placing all bundles on empty brokers.  What brokers use without bundles is counted once for each broker, as in
    the one that uses least.
    """
    room, each = 1 - headroom, problem.capacity.mean(axis=0)
    own = problem.fixed.min(axis=0, initial=np.inf)
    room_for_bundles = each * room - own
    if room <= 0 or (room_for_bundles <= 0).any() or (problem.size > room_for_bundles * (1 + ROUNDING)).any():
        short = room_for_bundles - problem.size.max(axis=0, initial=0.0)
        return BrokersNeeded(at_least=None, sufficient=None, resource=int((short / each).argmin()) if room > 0 else 0)
    # What stays where it is although it is not the broker's own: it has to fit as well.
    immovable = np.maximum(problem.fixed - own, 0.0)
    load = problem.size.sum(axis=0) + immovable.sum(axis=0)
    with np.errstate(over="ignore"):
        liquid = np.minimum(np.ceil(load / room_for_bundles - ROUNDING), _COUNTLESS)
    needed = [
        max(int(liquid[at]), _counted(problem.size[:, at], float(room_for_bundles[at])))
        for at in range(len(room_for_bundles))
    ]
    resource = int(np.argmax(needed))
    sizes = np.vstack([problem.size, immovable[immovable.any(axis=1)]])
    empty = _Empty(problem.resources, each, own, sizes, room)
    # Where what stays fits on no broker, no number is enough.  To find that out by placing takes minutes.
    fits = bool((immovable <= room_for_bundles * (1 + ROUNDING)).all())
    return BrokersNeeded(
        at_least=needed[resource],
        sufficient=_fewest_that_fit(empty, needed[resource]) if fits else None,
        resource=resource,
    )


def _counted(sizes: Floats, room: float) -> int:
    """So many brokers with so much *room*, one at least, are needed for the bundles of any load or more."""
    largest = np.sort(sizes)[::-1]
    with np.errstate(over="ignore", divide="ignore"):
        fit = np.floor(room / largest + ROUNDING).clip(min=1)
    return int(np.ceil(np.arange(1, len(largest) + 1) / fit).max(initial=1))


class _Empty(NamedTuple):
    """Empty brokers that are all alike, and what is to be placed on them."""

    resources: tuple[str, ...]
    #: (R,) of each broker, and what it uses without bundles.
    capacity: Floats
    own: Floats
    #: (m, R)
    sizes: Floats
    #: So full a broker may be.
    room: float

    def hold(self, number: int) -> bool:
        """Whether a placement is found that keeps *number* of them at or below the room: the largest bundles first."""
        # On the last one they wait to be placed.
        none = np.zeros(len(self.sizes))
        waiting = BalanceProblem(
            resources=self.resources,
            capacity=np.tile(self.capacity, (number + 1, 1)),
            fixed=np.tile(self.own, (number + 1, 1)),
            size=self.sizes,
            owner=np.full(len(self.sizes), number),
            connections=none,
            disturbance=none,
        )
        return not emptied(waiting, [number], self.room).stuck


def _fewest_that_fit(empty: _Empty, at_least: int) -> int | None:
    """The fewest brokers, from *at_least* on, for which a placement was found; None: none for up to MAX_BROKERS."""
    # With a broker for each bundle there is room.
    limit = min(MAX_BROKERS, max(at_least, len(empty.sizes)))
    if at_least > limit:
        return None
    below = number = at_least
    while not empty.hold(number):
        if number == limit:
            return None
        below, number = number, min(limit, number + 2 * (number - at_least) + 1)
    while number - below > 1:
        middle = (below + number) // 2
        below, number = (below, middle) if empty.hold(middle) else (middle, number)
    return number


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
    is_complete: bool
    #: Then: the bundles of the next one that have no place.
    stuck: tuple[Stuck, ...] = ()


def removable(problem: BalanceProblem, number: int, ceiling: float, closing: Closing | None = None) -> Removed:
    """*number* brokers that can go, chosen one by one: those whose bundles disturb least, if they fit elsewhere.

    No broker that stays gets above *ceiling*.
    """
    cost = np.bincount(problem.owner, weights=problem.disturbance, minlength=len(problem.capacity))
    cheapest: list[int] = np.argsort(cost, kind="stable").tolist()
    chosen, result = list[int](), Emptied(moves=(), stuck=())
    while len(chosen) < min(number, len(problem.capacity) - 1):
        more, now = _one_more(problem, chosen, cheapest, ceiling, closing)
        if now.stuck:
            return Removed(brokers=tuple(chosen), emptied=result, is_complete=False, stuck=now.stuck)
        chosen, result = more, now
    return Removed(brokers=tuple(chosen), emptied=result, is_complete=len(chosen) == number)


def _one_more(
    problem: BalanceProblem, chosen: list[int], cheapest: list[int], ceiling: float, closing: Closing | None
) -> tuple[list[int], Emptied]:
    """*chosen* and one more of *cheapest*, and how all of them are emptied; the cheapest one where none can go."""
    first = None
    for row in [row for row in cheapest if row not in chosen][:_TRIED]:
        attempt = [*chosen, row], emptied(problem, [*chosen, row], ceiling, closing=closing)
        if not attempt[1].stuck:
            return attempt
        first = first or attempt
    assert first is not None, "there is a broker that is not chosen"
    return first
