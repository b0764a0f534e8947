"""Forgets what the shedder's moves promised of brokers that moves of others touched: it no longer holds there.

Others are an operator's plan and the membership rebalancer.  A broker that they send bundles to is fuller than the
shedder planned, and one that they take bundles from is emptier; neither says anything about the shedder's moves.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.model.decision import Command, Unload
from controller.model.memory import Memory
from controller.model.peak_history import PeakHistory


def with_lapsed_promises(memory: Memory, commands: Sequence[Command], own: Collection[Unload]) -> Memory:
    """*memory* without promises, moves to undo and the rest of a plan that *commands* made void, except *own* ones.

    *own*: the unloads that the shedder chose.
    """
    shedder, chosen = memory.shedder, {unload.bundle for unload in own}
    others = [each for each in commands if each.action == "unload" and each.bundle not in chosen]
    if not others or not isinstance(shedder, PeakHistory):
        return memory
    touched = {name for each in others for name in (each.source, each.destination)}
    bundles = {each.bundle for each in others}

    def holds(bundle: str, source: str, destination: str) -> bool:
        return bundle not in bundles and touched.isdisjoint((source, destination))

    promises = {name: each for name, each in shedder.promises.items() if holds(name, each.source, each.destination)}
    undo = {name: each for name, each in shedder.undo.items() if holds(name, each.source, each.destination)}
    return replace(memory, shedder=replace(shedder, promises=promises, undo=undo, plan=(), plan_end=0.0))
