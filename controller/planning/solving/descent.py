"""Lowers the fullest broker, step by step: the first plan of a search.

A step takes the fullest broker that may still give.  Of all its bundles and all destinations, it takes the pair after
which the fuller one of the two brokers is emptiest.  Where no single move helps, it exchanges two bundles.  Where that
does not help either, the broker is stuck and stays as it is.
"""

from controller.planning.solving.partial_plan import PartialPlan
from controller.planning.solving.steps import best_exchange, best_move


def descend(draft: PartialPlan, ceiling: float) -> None:
    """Step until all brokers are at the goal, nothing helps, or the moves are used up.

    No broker that receives a bundle gets above *ceiling*.
    """
    while draft.moves_left > 0 and (broker := draft.fullest()) is not None:
        move = best_move(draft.assignment, broker, draft.fits, ceiling)
        if move is not None:
            draft.assignment.move(*move)
            continue
        both = best_exchange(draft.assignment, broker, draft.fits, ceiling) if draft.moves_left > 1 else None
        for one in both or ():
            draft.assignment.move(*one)
        draft.stuck[broker] = both is None
