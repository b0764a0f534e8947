"""Empties brokers: every bundle that can move goes to a broker where it can stay, and none moves that need not."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import Bools, Floats, Ints
from controller.planning.objective import ROUNDING, loads
from controller.planning.problem import RATE_SHARE, BalanceProblem, PlannedMove
from controller.planning.sequence import Closing, among_those_with_room

#: No broker gets a bundle above this usage while another one may have it: filters that prefer brokers by the number of
#: their bundles are not asked there.  So does Pulsar, ModularLoadManagerImpl.selectBroker, with the default of
#: loadBalancerBrokerOverloadedThresholdPercentage.
_OVERLOADED: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A bundle that has no other broker to go to."""

    bundle: int
    #: True: brokers may have it, and none has room for it.  False: no broker may have it.
    no_room: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """The moves that empty brokers, one for each bundle, and the bundles that stay."""

    moves: tuple[PlannedMove, ...]
    stuck: tuple[Stuck, ...]


def emptied(
    problem: BalanceProblem,
    brokers: Collection[int],
    ceiling: float,
    *,
    owner: Ints | None = None,
    last_choice: Collection[int] = (),
    closing: Closing | None = None,
) -> Emptied:
    """Move every bundle off *brokers*, the largest first, each to the broker that is emptiest with it.

    Where the share of the message rate is one of the resources, the emptiest broker is that with the smallest share.

    No broker gets above *ceiling*, even while all of them move at the same time.  None of *brokers* gets a bundle;
    one of *last_choice* gets those that fit nowhere else.  *owner* (m,) is where the bundles are now, if that is not
    the problem's.
    """
    placed = problem.owner if owner is None else owner
    load, capacity = loads(problem, placed), problem.capacity
    shut, later = _marked(len(capacity), brokers), _marked(len(capacity), last_choice)
    ranked = _ranked(problem)
    rows = _largest_first(problem, placed, brokers, ranked)
    allowed = [None if closing is None else closing(brokers, owner, by_number=each) for each in (False, True)]
    moves, stuck = list[PlannedMove](), list[Stuck]()
    for bundle in rows.tolist():
        filled = full_with(load, capacity, problem.size[bundle])
        for level, by_number in ((min(_OVERLOADED, ceiling), True), (ceiling, False)):
            ask = allowed[by_number]
            may = ~shut if ask is None else ask(bundle, moves) & ~shut
            room = (filled <= level + ROUNDING) & ~shut
            may_with_room = may & room
            if closing is not None and may.any() and not may_with_room.any():
                best = among_those_with_room(closing, brokers, owner, bundle, moves, room, by_number=by_number)
                may_with_room = best & room
            if (may_with_room & ~later).any():
                break
        to = _emptiest(
            full_with(*(each[..., ranked] for each in (load, capacity, problem.size[bundle]))), may_with_room, later
        )
        if to is None:
            stuck.append(Stuck(bundle=bundle, no_room=bool(may.any())))
            continue
        moves.append(PlannedMove(bundle, int(placed[bundle]), to))
        load[to] += problem.size[bundle]
    return Emptied(moves=tuple(moves), stuck=tuple(stuck))


def _marked(n: int, rows: Collection[int]) -> Bools:
    mask = np.zeros(n, np.bool_)
    mask[list(rows)] = True
    return mask


def _ranked(problem: BalanceProblem) -> list[int]:
    """The resources by which one broker is emptier than another: the share of the message rate, if it is there."""
    shares = [column for column, name in enumerate(problem.resources) if name == RATE_SHARE]
    return shares or list(range(len(problem.resources)))


def _largest_first(problem: BalanceProblem, owner: Ints, brokers: Collection[int], ranked: list[int]) -> Ints:
    """Rows of the bundles on *brokers*, by the largest share of any resource of *ranked* of the widest broker."""
    rows = np.flatnonzero(np.isin(owner, list(brokers)))
    widest = problem.capacity[:, ranked].max(axis=0, initial=0.0)
    share = (problem.size[rows][:, ranked] / widest).max(axis=1, initial=0.0) if len(rows) else np.zeros(0)
    return rows[np.argsort(-share, kind="stable")]


def full_with(load: Floats, capacity: Floats, size: Floats) -> Floats:
    """(n,) the utilisation of each broker's fullest resource with *size* (R,) on top of its *load* (n, R)."""
    filled: Floats = ((load + size) / capacity).max(axis=1, initial=0.0)
    return filled


def _emptiest(filled: Floats, may: Bools, later: Bools) -> int | None:
    """The row of *may* that is emptiest, none of *later* if there is another; None where there is none."""
    for rows in (may & ~later, may):
        if rows.any():
            return int(np.where(rows, filled, np.inf).argmin())
    return None
