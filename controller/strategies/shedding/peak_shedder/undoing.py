"""Moves that made things worse go back once, where that pays, as soon as their bundles may move again.

What is to be undone lapses after an hour, when brokers come or go, and when somebody else moves the bundle or moves
others off or to its brokers.  A move back promises nothing, so it is never undone itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controller.model.load import Floats
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.situation import Situation

#: So long after a move was found to have made things worse it may still be undone, ms.
_LAPSES_MS: Final = 3_600_000


def still_to_undo(now: Situation, memory: PeakHistory) -> PeakHistory:
    """*memory* without what is too old to be undone, and without bundles that another broker owns by now.

    A bundle on its way, and one without an owner, is waited for.
    """
    at, kept = now.view.as_of_ms, dict(memory.undo)
    for name, move in memory.undo.items():
        old = not 0 <= at - move.noted_ms <= _LAPSES_MS
        if old or now.cluster.owner(name) not in (None, "", move.destination):
            del kept[name]
    return memory if len(kept) == len(memory.undo) else replace(memory, undo=kept)


def undoing(now: Situation, memory: PeakHistory, allowed: Allowed | None) -> tuple[PlannedMove, ...]:
    """One move that takes a bundle back to where it came from; none where none pays."""
    problem, names = now.found.problem, now.view.bundles.names
    row_of = {names[row]: bundle for bundle, row in enumerate(now.found.rows.tolist())} if memory.undo else {}
    for name, move in memory.undo.items():
        bundle, to = row_of.get(name), now.view.brokers.code_of.get(move.source)
        if bundle is None or to is None or problem.owner[bundle] == to:
            continue
        here = int(problem.owner[bundle])
        left = _full(now, here, -problem.size[bundle])
        arrived = _full(now, to, problem.size[bundle])
        pays = max(left, arrived) <= float(now.before[here]) - now.options.min_gain
        if pays and arrived <= 1.0 and (allowed is None or allowed(bundle, ())[to]):
            return (PlannedMove(bundle, here, to),)
    return ()


def without(now: Situation, memory: PeakHistory, moved: Sequence[PlannedMove]) -> PeakHistory:
    """*memory* without what is to be undone of bundles that may move by now, or that are gone: once is enough."""
    if not memory.undo:
        return memory
    free = {now.view.bundles.names[row] for row in now.found.rows.tolist()}
    kept = {name: each for name, each in memory.undo.items() if name not in free and name in now.view.bundles.code_of}
    proven = replace(memory.proven, undone=memory.proven.undone + len(moved))
    return replace(memory, undo=kept, proven=proven)


def _full(now: Situation, broker: int, change: Floats) -> float:
    return float(((now.load[broker] + change) / now.found.problem.capacity[broker]).max())
