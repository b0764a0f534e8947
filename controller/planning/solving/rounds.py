"""A plan for several rounds: search as far as the goal, and take the part of it that one round may carry out.

The next round plans again, from where it is then.
"""

from dataclasses import dataclass

import numpy as np

from controller.planning.objective import ceilings, highest
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed, MoveSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLimits:
    """What one round may do."""

    max_moves: int
    #: Producers and consumers that may have to reconnect, in total; None: any number.
    max_connections: float | None = None
    #: Bundles that may leave any one broker, and that may come to it.
    max_per_broker: int


def part_for_a_round(
    problem: BalanceProblem, moves: tuple[PlannedMove, ...], limits: PartLimits, allowed: Allowed | None = None
) -> tuple[PlannedMove, ...]:
    """Those of *moves*, a whole plan in its order, that one round carries out: all, or those off the fullest brokers.

    Where it is not all, no broker is fuller after a move than the one that gave was before it.  Where filters would not
    let the rest follow later, because of the order, the part is the beginning of the plan instead.
    """
    if _fits(problem, moves, limits):
        return moves
    part = _off_the_fullest(problem, moves, limits, allowed)
    if allowed is None or not _may_follow(moves, (), allowed) or _may_follow(moves, part, allowed):
        return part
    fitting = (number for number in range(len(moves), 0, -1) if _fits(problem, moves[:number], limits))
    return moves[: next(fitting, 0)] or part


def _may_follow(moves: tuple[PlannedMove, ...], part: tuple[PlannedMove, ...], allowed: Allowed) -> bool:
    """Whether filters let the other *moves* follow, in their order, once *part* is carried out."""
    done = list(part)
    for move in moves:
        if move not in part:
            if not allowed(move.bundle, done)[move.destination]:
                return False
            done.append(move)
    return True


def _off_the_fullest(
    problem: BalanceProblem, moves: tuple[PlannedMove, ...], limits: PartLimits, allowed: Allowed | None
) -> tuple[PlannedMove, ...]:
    """A part of *moves* that leaves the fullest brokers first."""
    ceiling = ceilings(problem, moves)
    sequence, has_moves = MoveSequence(problem, moves, allowed), True
    while has_moves:
        usage = highest(sequence.load, problem.capacity)
        fullest = sorted(sequence.waiting, key=lambda move: -float(usage[move.source]))
        has_moves = sequence.take_first(
            move
            for move in fullest
            if sequence.full(move) < float(usage[move.source])
            and sequence.full(move) <= ceiling[move.destination]
            and _fits(problem, (*sequence.taken, move), limits)
            and sequence.may_follow(move)
        )
    return tuple(sequence.taken)


def _fits(problem: BalanceProblem, moves: tuple[PlannedMove, ...], limits: PartLimits) -> bool:
    """Whether one round may carry out all of *moves*."""
    if not moves:
        return True
    bundle, source, destination = np.array(moves, np.int64).T
    return (
        len(moves) <= limits.max_moves
        and max(int(np.bincount(rows).max()) for rows in (source, destination)) <= limits.max_per_broker
        and (limits.max_connections is None or float(problem.connections[bundle].sum()) <= limits.max_connections)
    )
