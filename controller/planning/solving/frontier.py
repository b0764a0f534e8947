"""How even a cluster can be with how many moves: for each number of moves a plan, and what is proved of it."""

from collections.abc import Iterable, Iterator
from typing import Final

from controller.planning.objective import score
from controller.planning.problem import BalanceProblem, CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.bounds import lower_bounds, mean_level
from controller.planning.solving.certify import certified
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.search import searched

#: What so many moves more than a plan has would give is told.
FURTHER_MOVES: Final = 2
#: About so many numbers of moves are looked at.
_NUMBERS: Final = 12


def numbers_of_moves(max_moves: int, also: Iterable[int] = ()) -> list[int]:
    """Numbers of moves from 0 to *max_moves*, ascending: all of them, or about a dozen, the lower ones closer together.

    *also*: numbers that are looked at besides; those below 0 count as 0.
    """
    some = (
        range(max_moves + 1)
        if max_moves <= _NUMBERS
        else (round(max_moves * (at / _NUMBERS) ** 2) for at in range(_NUMBERS + 1))
    )
    return sorted({*some, *(max(number, 0) for number in also)})


def plans_by_moves(
    problem: BalanceProblem, numbers: Iterable[int], effort: int, allowed: Allowed | None = None
) -> Iterator[CertifiedPlan]:
    """The best plan found of at most so many moves, for each of *numbers*, which ascend.

    A plan is no worse than one of fewer moves.  Where that is proved to be the best already, nothing is searched.
    """
    mean = mean_level(problem)
    best: tuple[PlannedMove, ...] = ()
    reached = score(problem, ()).peak
    for number in numbers:
        bound = lower_bounds(problem, number)[0]
        if reached > bound.level:
            limits = SearchLimits(max_moves=number, begin=mean, goal=mean, effort=effort)
            plan = searched(problem, limits, bound.level, allowed)
            peak = score(problem, plan).peak
            best, reached = (plan, peak) if peak < reached else (best, reached)
        yield certified(problem, best, number, bound)
