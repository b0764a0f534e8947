"""The rest of a plan that takes several rounds: what is left of it, and whether it still leads where it was to lead."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed, MoveSequence
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.situation import Situation

#: The rest of a plan is carried out if it ends at most this far, as a share, above what it was to reach.
_WORSE: Final = 0.05


def continued(now: Situation, memory: PeakHistory, allowed: Allowed | None) -> tuple[PlannedMove, ...]:
    """What can still be carried out of the rest of the last plan, in an order that filters allow."""
    if not memory.plan:
        return ()
    problem, code_of = now.found.problem, now.view.brokers.code_of
    wanted = {bundle for bundle, _ in memory.plan}
    names = now.view.bundles.names
    row_of = {names[row]: at for at, row in enumerate(now.found.rows.tolist()) if names[row] in wanted}
    moves = [
        PlannedMove(row, int(problem.owner[row]), to)
        for row, to in ((row_of.get(bundle), code_of.get(broker)) for bundle, broker in memory.plan)
        if row is not None and to is not None and problem.owner[row] != to
    ]
    return MoveSequence(problem, moves, allowed).take_all()


def leads_as_far(now: Situation, memory: PeakHistory, moves: Sequence[PlannedMove]) -> bool:
    """Whether *moves*, the rest of the last plan, reach what it was to reach."""
    return bool(moves) and end_of(now, moves) <= memory.plan_end * (1 + _WORSE)


def end_of(now: Situation, moves: Sequence[PlannedMove]) -> float:
    """The highest utilisation after *moves*."""
    return float(now.ends_of(moves).max(initial=0.0))


def with_rest(
    memory: PeakHistory, now: Situation, whole: Sequence[PlannedMove], part: Sequence[PlannedMove]
) -> PeakHistory:
    """*memory* with what is left of the plan *whole* after *part*."""
    names = now.view.bundles.names
    left = [move for move in whole if move not in part] if part else []
    plan = tuple((names[int(now.found.rows[move.bundle])], now.view.brokers.names[move.destination]) for move in left)
    return replace(memory, plan=plan, plan_end=end_of(now, whole) if left else 0.0)
