"""Looks for better plans than the first one: a lower level with as many moves, then the same level with fewer.

Both by bisection.  Whether a plan reaches a level with so many moves, packing.py and reach.py find out.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Final, NamedTuple

from controller.planning.solving.bounds import fewest_moves
from controller.planning.solving.draft import Draft
from controller.planning.solving.limits import Effort
from controller.planning.solving.packing import pack
from controller.planning.solving.reach import Target, reach
from controller.planning.solving.standing import Standing
from controller.planning.solving.steps import EPSILON, Fits


class _Way(NamedTuple):
    """A search for a plan."""

    search: Callable[[Standing, Target, Fits, Effort], bool]
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


def reach_lower(draft: Draft, bound: float) -> None:
    """Look for plans that reach lower levels, between *bound* and what is reached."""
    low, standing, effort = max(bound, draft.limits.goal), draft.standing, draft.effort
    begun = standing.moves
    draft.effort = Effort(int(_PACK_SHARE * draft.limits.effort))
    _bisect(draft, low, (_PACK,))
    draft.effort = effort
    packed, peak = standing.moves, standing.peak
    if _is_near(low, peak):
        return
    # A search that goes on from another plan, step by step, may find a better one.
    standing.back_to(begun)
    _bisect(draft, low, _REACH)
    if standing.peak > peak:
        standing.back_to(packed)


def _bisect(draft: Draft, low: float, ways: Sequence[_Way]) -> None:
    """Look for plans at levels half way between *low* and what is reached; what is not reached is the next *low*."""
    in_turn = cycle(ways)
    while not draft.effort.spent and not _is_near(low, peak := draft.standing.peak):
        level = (low + peak) / 2
        most = draft.limits.max_moves
        tried = (_reached(draft, level, most, way, lower=True) for way in islice(in_turn, len(ways)))
        if not any(reached and draft.standing.peak < peak for reached in tried):
            low = level


def _is_near(low: float, peak: float) -> bool:
    # A level that differs by no more than rounding is reached by a plan that changes nothing.
    return peak <= low * NEAR + EPSILON**2


def use_fewer(draft: Draft) -> None:
    """Look for plans with fewer moves that leave no broker fuller, from the fewest that this needs.

    Not where the moves are used up, or a broker is stuck: there, moves that do not lower the peak are wanted too.
    """
    goal, standing = draft.limits.goal, draft.standing
    level = max(goal, standing.peak)
    if level > goal and (draft.moves_left <= 0 or draft.stuck.any()):
        return
    low = fewest = fewest_moves(draft.problem, level)
    _reached(draft, level, len(standing.moves) - 1, _PACK)
    while not draft.effort.spent and low < len(standing.moves):
        moves = int(low + len(standing.moves)) // 2
        if not any(_reached(draft, level, moves, way) for way in _REACH):
            low = moves + 1
    draft.effort = Effort(int(_LAST_SHARE * draft.limits.effort))
    while level <= goal and not draft.effort.spent and fewest < len(standing.moves):
        if not _reached(draft, level, len(standing.moves) - 1, _LAST):
            return


def _reached(draft: Draft, level: float, max_moves: int, way: _Way, *, lower: bool = False) -> bool:
    """Whether a plan of at most *max_moves* moves reaches *level*; it is the plan of *draft* then.

    Where filters let only a part of such a plan follow, the part is kept if it reaches the level as well or, where the
    peak is to be *lower*, if it lowers the peak.
    """
    standing = draft.standing
    before, kept = standing.moves, standing.peak - EPSILON if lower else level
    target = Target(level=level, max_moves=max_moves, ceiling=max(1.0, level), tenure=way.tenure, steps=way.steps)
    if not way.search(standing, target, draft.fits, draft.effort):
        return False
    # The filters were asked with moves that were taken back since then.
    moves = draft.in_order()
    whole = len(moves) == len(standing.moves)
    if not whole:
        standing.back_to(moves)
        if not draft.filtered or standing.peak > kept:
            standing.back_to(before)
            return False
    draft.stuck[:] = False
    return whole or standing.peak <= level
