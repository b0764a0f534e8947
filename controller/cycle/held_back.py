"""Corrects the memory of strategies for commands that were held back: as if they had not been chosen.

So a strategy that counts hits before it acts, or has a cool-down after it acted, chooses the same again in the next
interval.  Averages stay updated.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from controller.model.decision import Unload
from controller.model.memory import BrokerHitCounts, SplitHitCounts, StrategyMemory, TransferHistory
from controller.model.peak_history import PeakHistory

V = TypeVar("V")


def splits_held_back(before: StrategyMemory, after: StrategyMemory, bundles: Collection[str]) -> StrategyMemory:
    """The memory *after* a split policy's decision, corrected for the splits of *bundles*, which were held back."""
    if not isinstance(before, SplitHitCounts) or not isinstance(after, SplitHitCounts):
        return after
    return SplitHitCounts(
        hits=_restored(before.hits, after.hits, bundles), owners=_restored(before.owners, after.owners, bundles)
    )


def unloads_held_back(
    before: StrategyMemory, after: StrategyMemory, held: Collection[Unload], issued: Collection[Unload]
) -> StrategyMemory:
    """The memory *after* a shedder's decision, of which *issued* were issued and *held* were held back."""
    if isinstance(after, PeakHistory):
        return _put_off(after, held)
    gave = {unload.source for unload in issued}
    idle = [unload for unload in held if unload.source not in gave]
    if not idle:
        return after
    if isinstance(before, TransferHistory) and isinstance(after, TransferHistory):
        return _transfer_history(before, after, {unload.source for unload in idle}, nothing=not gave)
    if isinstance(before, BrokerHitCounts) and isinstance(after, BrokerHitCounts):
        brokers = {name for unload in idle for name in (unload.source, unload.destination) if name}
        return BrokerHitCounts(
            high=_restored(before.high, after.high, brokers), low=_restored(before.low, after.low, brokers)
        )
    return after


def _put_off(after: PeakHistory, held: Collection[Unload]) -> PeakHistory:
    """Moves that were held back promise nothing; they are the first of the rest of the plan, if there is one."""
    bundles = {unload.bundle for unload in held}
    return replace(
        after,
        promises={name: each for name, each in after.promises.items() if name not in bundles},
        plan=(*((unload.bundle, unload.destination) for unload in held), *after.plan) if after.plan else (),
    )


def _transfer_history(
    before: TransferHistory, after: TransferHistory, idle: Collection[str], *, nothing: bool
) -> TransferHistory:
    """No cool-down for brokers in *idle*, which gave no bundle; the hit count too is kept if *nothing* was issued."""
    settling = {name: t for name, t in after.recently_unloaded_brokers.items() if name not in idle}
    settling |= {name: t for name, t in before.recently_unloaded_brokers.items() if name in idle}
    return replace(
        after,
        hit_count=before.hit_count if nothing else after.hit_count,
        recently_unloaded_brokers=settling,
    )


def _restored(before: Mapping[str, V], after: Mapping[str, V], names: Collection[str]) -> dict[str, V]:
    """*after*, but with what *before* has of *names*."""
    return {**after, **{name: before[name] for name in sorted(names) if name in before}}
