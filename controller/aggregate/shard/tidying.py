"""Removes superseded rows, rows above the limits of waiting, and unused names from a shard."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, TOPIC
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.state.bundles import NEVER
from controller.aggregate.ticks.intervals import UNDUE
from controller.aggregate.waiting.limits import Floors
from controller.aggregate.waiting.settling import edge_of
from controller.aggregate.waiting.waiting_rows import WaitingHeaders, WaitingRows
from controller.model.load import Bools, Ints

#: Maximum number of (T, source, partition) kept as torn; the newest are kept.  Far more than ever wait.
_MAX_TORN = 10_000


def tidy(state: ShardState, floors: Sequence[Floors]) -> ShardState:
    """*state* without waiting rows that later ones replace, and without those that the *floors* drop."""
    tidied = _without_overflow(_without_superseded(state), floors)
    return state if tidied is state else without_unused_names(tidied)


def _without_superseded(state: ShardState) -> ShardState:
    """*state* without topic stats and reports that a later one in the same partition, due at the same T, replaces.

    Only the last stats of a topic and the last report of a broker count.
    """
    claims, headers = state.claims, state.headers
    topics = claims.kind == TOPIC
    loose = ~_swept(state, headers)
    if not topics.any() and not loose.any():
        return state
    about = (*claims.topic.T, claims.broker, claims.bundle, claims.partition, claims.source, claims.due)
    keep = ~topics | edge_of(topics, about, claims.place, first=False)
    same = (headers.broker, headers.partition, headers.source, headers.due)
    last = edge_of(loose, same, headers.place, first=False)
    superseded = headers.take(loose & ~last)
    for partition in set(zip(superseded.source.tolist(), superseded.partition.tolist(), strict=True)):
        offsets = superseded.offset[superseded.of_partition(partition)]
        keep &= ~(claims.of_partition(partition) & np.isin(claims.offset, offsets))
    if keep.all() and not len(superseded):
        return state
    return replace(state, claims=claims.take(keep), headers=headers.take(~loose | last))


def _without_overflow(state: ShardState, floors: Sequence[Floors]) -> ShardState:
    """*state* without the rows that the *floors* of their partitions drop.

    A sweep with a dropped part must not count as complete in any shard, so its T and partition are kept in ``torn``.
    Of topic stats it is not known which were dropped, so a flooded partition is torn as a whole at that T.
    """
    claims, headers, facts = state.claims, state.headers, state.facts
    torn = {(tick, *floor.partition) for floor in floors for tick in floor.flooded.tolist()}
    dropped_masks = [np.zeros(len(waiting), np.bool_) for waiting in (claims, headers, facts)]
    swept = claims.kind == BUNDLE, _swept(state, headers), dropped_masks[2]
    for floor in floors:
        for mask, waiting, is_swept in zip(dropped_masks, (claims, headers, facts), swept, strict=True):
            mask |= _dropped(floor, waiting, is_swept)
    dropped = sum(int(mask.sum()) for mask in dropped_masks)
    if not dropped and not torn:
        return state
    torn |= {
        *state.torn,
        *_intervals(claims, dropped_masks[0] & swept[0]),
        *_intervals(headers, dropped_masks[1] & swept[1]),
    }
    return replace(
        state,
        claims=claims.take(~dropped_masks[0]),
        headers=headers.take(~dropped_masks[1]),
        facts=facts.take(~dropped_masks[2]),
        torn=frozenset(sorted(torn)[-_MAX_TORN:]),
        dropped=state.dropped + dropped,
    )


def without_unused_names(state: ShardState, expired: Bools | None = None) -> ShardState:
    """*state* without unused names, and without the bundles *expired*, (bundles,); by default those never seen."""
    claims, headers, bundles = state.claims, state.headers, state.bundles
    used = np.unique(np.concatenate([claims.broker, claims.sweep, headers.broker, headers.sweep]))
    pool = [state.pool[i] for i in used.tolist()]
    claims = replace(claims, broker=_moved(used, claims.broker), sweep=_moved(used, claims.sweep))
    headers = replace(headers, broker=_moved(used, headers.broker), sweep=_moved(used, headers.sweep))
    expired = bundles.seen == NEVER if expired is None else expired
    # A bundle that waiting claims of later intervals name stays, but as a new bundle.
    awaited = np.zeros(len(bundles), np.bool_)
    awaited[claims.bundle] = True
    bundles, expired = bundles.renewed(expired & awaited), expired & ~awaited
    if expired.any():
        moved = np.cumsum(~expired) - 1
        bundles, claims = bundles.keep(~expired), replace(claims, bundle=moved[claims.bundle])
    return replace(state, bundles=bundles, claims=claims, headers=headers, pool=pool)


def _swept(state: ShardState, headers: WaitingHeaders) -> Bools:
    """(headers,) whether each is of a sweep; else it is a report."""
    empty = state.pool.index("") if "" in state.pool else -1
    swept: Bools = headers.sweep != empty
    return swept


def _moved(used: Ints, codes: Ints) -> Ints:
    return np.searchsorted(used, codes).astype(np.int64)


def _dropped(floor: Floors, waiting: WaitingRows, swept: Bools) -> Bools:
    """(rows,) whether *floor* drops each.  *swept*: whether its ``due`` is its own interval, as of sweeps."""
    if not ((floor.upto > 0).any() or (floor.interval >= 0).any()):
        return np.zeros(len(waiting), np.bool_)
    due = waiting.due
    at = np.where(due == UNDUE, len(floor.ticks), np.searchsorted(floor.ticks, due))
    too_old = (waiting.upto <= floor.upto[at]) | (swept & (due < floor.interval[at]))
    dropped: Bools = too_old & ((due == UNDUE) | (due > floor.before)) & waiting.of_partition(floor.partition)
    return dropped


def _intervals(waiting: WaitingRows, mask: Bools) -> set[tuple[int, int, int]]:
    """T, source and partition of the rows in *mask*."""
    columns = (waiting.due[mask], waiting.source[mask], waiting.partition[mask])
    return set(zip(*(column.tolist() for column in columns), strict=True))
