"""Looks for better plans than the first one: a lower level with as many moves, then the same level with fewer.

Both by bisection.  Whether a plan reaches a level with so many moves, a tabu search finds out (reach.py).
"""

from itertools import cycle
from typing import Final

from controller.planning.solving.bounds import fewest_moves
from controller.planning.solving.draft import Draft
from controller.planning.solving.limits import Effort
from controller.planning.solving.reach import Target, reach
from controller.planning.solving.steps import EPSILON

#: For each level, searches that keep a bundle where it was put for so many steps, at most so many steps each.
_TENURES: Final = (7, 12, 4)
_STEPS: Final = 150
#: Where the goal is reached, a last search for fewer moves, one by one, keeps bundles so long, and has this share of
#: the effort to itself: the searches before it may have used up all of theirs.
_LAST_TENURE: Final = 3
_LAST_SHARE: Final = 0.5
#: This close to the bound, as a share of it, is close enough.
_NEAR: Final = 0.005


def reach_lower(draft: Draft, bound: float) -> None:
    """Look for plans that reach lower levels, between *bound* and what is reached."""
    low = max(bound, draft.limits.goal)
    failed, tenures = 0, cycle(_TENURES)
    # A level that differs by less is reached by a plan that changes nothing.
    while draft.effort.left > 0 and (peak := draft.standing.peak) > low * (1 + _NEAR) + EPSILON**2:
        level = (low + peak) / 2
        reached = _reached(draft, level, draft.limits.max_moves, next(tenures)) and draft.standing.peak < peak
        failed = 0 if reached else failed + 1
        if failed == len(_TENURES):
            low, failed = level, 0


def use_fewer(draft: Draft) -> None:
    """Look for plans with fewer moves that leave no broker fuller, from the fewest that this needs.

    Not where the moves are used up, or a broker is stuck: there, moves that do not lower the peak are wanted too.
    """
    goal, standing = draft.limits.goal, draft.standing
    level = max(goal, standing.peak)
    if level > goal and (draft.moves_left <= 0 or draft.stuck.any()):
        return
    low = fewest = fewest_moves(draft.problem, level)
    while draft.effort.left > 0 and low < len(standing.moves):
        moves = int(low + len(standing.moves)) // 2
        if not any(_reached(draft, level, moves, tenure) for tenure in _TENURES):
            low = moves + 1
    draft.effort = Effort(int(_LAST_SHARE * draft.limits.effort))
    while level <= goal and draft.effort.left > 0 and fewest < len(standing.moves):
        if not _reached(draft, level, len(standing.moves) - 1, _LAST_TENURE):
            return


def _reached(draft: Draft, level: float, max_moves: int, tenure: int) -> bool:
    """Whether a plan of at most *max_moves* moves reaches *level*; it is the plan of *draft* then.

    Where filters let only a part of such a plan follow, the part is kept if it is better than the plan before.
    """
    standing = draft.standing
    before, peak = standing.moves, standing.peak
    target = Target(level=level, max_moves=max_moves, ceiling=max(1.0, level), tenure=tenure, steps=_STEPS)
    if not reach(standing, target, draft.fits, draft.effort):
        return False
    # The filters were asked with moves that were taken back since then.
    moves = draft.in_order(target.ceiling)
    whole = len(moves) == len(standing.moves)
    if not whole:
        standing.back_to(moves)
        most = level if max_moves < len(before) else peak - EPSILON
        if not draft.filtered or standing.peak > most:
            standing.back_to(before)
            return False
    draft.stuck[:] = False
    return whole or standing.peak <= level
