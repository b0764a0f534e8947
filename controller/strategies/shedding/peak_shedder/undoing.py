"""Moves that made things worse go back once, where that pays, as soon as their bundles may move again."""

from collections.abc import Sequence
from dataclasses import replace

from controller.model.load import Floats
from controller.model.peak_history import PeakHistory
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.strategies.shedding.peak_shedder.situation import Situation


def undoing(now: Situation, memory: PeakHistory, allowed: Allowed | None) -> tuple[PlannedMove, ...]:
    """One move that takes a bundle back to where it came from; none where none pays."""
    problem, names = now.found.problem, now.view.bundles.names
    row_of = {names[row]: bundle for bundle, row in enumerate(now.found.rows.tolist())} if memory.undo else {}
    for name, source in memory.undo.items():
        bundle, to = row_of.get(name), now.view.brokers.code_of.get(source)
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
    kept = {name: to for name, to in memory.undo.items() if name not in free and name in now.view.bundles.code_of}
    proven = replace(memory.proven, undone=memory.proven.undone + len(moved))
    return replace(memory, undo=kept, proven=proven)


def _full(now: Situation, broker: int, change: Floats) -> float:
    return float(((now.load[broker] + change) / now.found.problem.capacity[broker]).max())
