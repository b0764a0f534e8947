"""Looks for better plans than the first one: a lower level with as many moves, then the same level with fewer.

Both by bisection.  Whether a plan reaches a level with so many moves, packing.py and reach.py find out.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Final, NamedTuple

from controller.planning.solving.assignment import Assignment
from controller.planning.solving.bounds import fewest_moves
from controller.planning.solving.limits import Effort
from controller.planning.solving.packing import pack
from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.reach import Target, reach
from controller.planning.solving.steps import EPSILON, Fits


class _Way(NamedTuple):
    """A search for a plan."""

    search: Callable[[Assignment, Target, Fits, Effort], bool]
    #: A bundle stays where it was put for so many steps.
    tenure: int
    #: At most so many steps.
    steps: int = 150


#: These are tried for each level.
_PACK: Final = _Way(pack, tenure=4, steps=30)
_REACH: Final = tuple(_Way(reach, tenure) for tenure in (7, 12, 4))
#: Where the goal is reached, a last search for fewer moves, one by one, has this share of the
#: effort to itself: the searches before it may have used up all of theirs.
_LAST: Final = _Way(reach, 3)
_LAST_SHARE: Final = 0.5
#: Packing has this share of the effort to itself as well.
_PACK_SHARE: Final = 0.3
#: So many times the bound, or the goal, is close enough to it.
NEAR: Final = 1.005


def reach_lower(draft: PartialPlan, bound: float) -> None:
    """Look for plans that reach lower levels, between *bound* and what is reached."""
    low, assignment, effort = max(bound, draft.limits.goal), draft.assignment, draft.effort
    moves_before = assignment.moves
    draft.effort = Effort(int(_PACK_SHARE * draft.limits.effort))
    _bisect(draft, low, (_PACK,))
    draft.effort = effort
    packed, peak = assignment.moves, assignment.peak
    if _is_near(low, peak):
        return
    # A search that goes on from another plan, step by step, may find a better one.
    assignment.back_to(moves_before)
    _bisect(draft, low, _REACH)
    if assignment.peak > peak:
        assignment.back_to(packed)


def _bisect(draft: PartialPlan, low: float, ways: Sequence[_Way]) -> None:
    """Look for plans at levels half way between *low* and what is reached; what is not reached is the next *low*."""
    in_turn = cycle(ways)
    while not draft.effort.exhausted and not _is_near(low, peak := draft.assignment.peak):
        level = (low + peak) / 2
        max_moves = draft.limits.max_moves
        tried = (_reached(draft, level, max_moves, way, lower=True) for way in islice(in_turn, len(ways)))
        if not any(reached and draft.assignment.peak < peak for reached in tried):
            low = level


def _is_near(low: float, peak: float) -> bool:
    # A level that differs by no more than rounding is reached by a plan that changes nothing.
    return peak <= low * NEAR + EPSILON**2


def use_fewer(draft: PartialPlan) -> None:
    """Look for plans with fewer moves that leave no broker fuller, from the fewest that this needs.

    Not where the moves are used up, or a broker is stuck: there, moves that do not lower the peak are wanted too.
    """
    goal, assignment = draft.limits.goal, draft.assignment
    level = max(goal, assignment.peak)
    if level > goal and (draft.moves_left <= 0 or draft.stuck.any()):
        return
    low = fewest = fewest_moves(draft.problem, level)
    _reached(draft, level, len(assignment.moves) - 1, _PACK)
    while not draft.effort.exhausted and low < len(assignment.moves):
        moves = int(low + len(assignment.moves)) // 2
        if not any(_reached(draft, level, moves, way) for way in _REACH):
            low = moves + 1
    draft.effort = Effort(int(_LAST_SHARE * draft.limits.effort))
    while level <= goal and not draft.effort.exhausted and fewest < len(assignment.moves):
        if not _reached(draft, level, len(assignment.moves) - 1, _LAST):
            return


def _reached(draft: PartialPlan, level: float, max_moves: int, way: _Way, *, lower: bool = False) -> bool:
    """Whether a plan of at most *max_moves* moves reaches *level*; it is the plan of *draft* then.

    Where filters let only a part of such a plan follow, the part is kept if it reaches the level as well or, where the
    peak is to be *lower*, if it lowers the peak.
    """
    assignment = draft.assignment
    before, limit = assignment.moves, assignment.peak - EPSILON if lower else level
    target = Target(level=level, max_moves=max_moves, ceiling=max(1.0, level), tenure=way.tenure, steps=way.steps)
    if not way.search(assignment, target, draft.fits, draft.effort):
        return False
    # The filters were asked with moves that were taken back since then.
    moves = draft.in_order()
    whole = len(moves) == len(assignment.moves)
    if not whole:
        assignment.back_to(moves)
        if not draft.filtered or assignment.peak > limit:
            assignment.back_to(before)
            return False
    draft.stuck[:] = False
    return whole or assignment.peak <= level
