"""Removes what a shard need not keep: replaced rows, rows above the limits of waiting, and unused names."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, TOPIC
from controller.aggregate.kept.bundles import NEVER
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.ticks.intervals import Partition
from controller.aggregate.waiting.claims import Claims, edge_of, positions
from controller.aggregate.waiting.headers import WaitingFacts, WaitingHeaders
from controller.aggregate.waiting.limits import Floors
from controller.model.load import Bools, Ints

#: Maximum number of (T, source, partition) kept as torn; the newest are kept.  Far more than ever wait.
_MOST_TORN = 10_000


def without_superseded(state: ShardState) -> ShardState:
    """*state* without topic stats and reports that a later one in the same partition, due at the same T, replaces.

    Only the last stats of a topic and the last report of a broker count.
    """
    claims, headers = state.claims, state.headers
    topics = claims.kind == TOPIC
    empty = state.pool.index("") if "" in state.pool else -1
    loose = headers.sweep == empty
    if not topics.any() and not loose.any():
        return state
    same = (claims.partition, claims.source, claims.due)
    about = (*claims.topic.T, claims.broker, claims.bundle, *same)
    keep = ~topics | edge_of(topics, about, positions(claims), first=False)
    same = (headers.partition, headers.source, headers.due)
    last = edge_of(loose, (headers.broker, *same), positions(headers), first=False)
    gone = headers.take(loose & ~last)
    for source, partition in set(zip(gone.source.tolist(), gone.partition.tolist(), strict=True)):
        of = (gone.source == source) & (gone.partition == partition)
        here = (claims.source == source) & (claims.partition == partition)
        keep &= ~(here & np.isin(claims.offset, gone.offset[of]))
    if keep.all() and not len(gone):
        return state
    return tidied(replace(state, claims=claims.take(keep), headers=headers.take(~loose | last)))


def without_overflow(state: ShardState, floors: Mapping[Partition, Floors]) -> ShardState:
    """*state* without the rows that the *floors* of their partitions drop.

    A sweep with a dropped part must not count as complete in any shard, so its T and partition are kept in ``torn``.
    Of topic stats it is not known which were dropped, so a flooded partition is torn as a whole at that T.
    """
    claims, headers, facts = state.claims, state.headers, state.facts
    empty = state.pool.index("") if "" in state.pool else -1
    swept, said = claims.kind == BUNDLE, headers.sweep != empty
    gone = (
        _beyond(floors, claims, swept),
        _beyond(floors, headers, said),
        _beyond(floors, facts, np.zeros(len(facts), np.bool_)),
    )
    dropped = sum(int(mask.sum()) for mask in gone)
    torn = {(tick, *partition) for partition, floor in floors.items() for tick in floor.flooded.tolist()}
    if not dropped and not torn:
        return state
    torn |= {*state.torn, *_places(claims, gone[0] & swept), *_places(headers, gone[1] & said)}
    return tidied(
        replace(
            state,
            claims=claims.take(~gone[0]),
            headers=headers.take(~gone[1]),
            facts=facts.take(~gone[2]),
            torn=frozenset(sorted(torn)[-_MOST_TORN:]),
            dropped=state.dropped + dropped,
        )
    )


def tidied(state: ShardState, gone: Bools | None = None) -> ShardState:
    """*state* without unused names, and without the bundles *gone*, (bundles,); by default those never seen."""
    claims, headers, bundles = state.claims, state.headers, state.bundles
    used = np.unique(np.concatenate([claims.broker, claims.sweep, headers.broker, headers.sweep]))
    pool = [state.pool[i] for i in used.tolist()]
    claims = replace(claims, broker=_moved(used, claims.broker), sweep=_moved(used, claims.sweep))
    headers = replace(headers, broker=_moved(used, headers.broker), sweep=_moved(used, headers.sweep))
    gone = bundles.seen == NEVER if gone is None else gone
    # A bundle that waiting claims of later intervals name stays, but as a new bundle.
    awaited = np.zeros(len(bundles), np.bool_)
    awaited[claims.bundle] = True
    bundles, gone = bundles.renewed(gone & awaited), gone & ~awaited
    if gone.any():
        moved = np.cumsum(~gone) - 1
        bundles, claims = bundles.keep(~gone), replace(claims, bundle=moved[claims.bundle])
    return replace(state, bundles=bundles, claims=claims, headers=headers, pool=pool)


def _beyond(floors: Mapping[Partition, Floors], waiting: Claims | WaitingHeaders | WaitingFacts, swept: Bools) -> Bools:
    gone = np.zeros(len(waiting), np.bool_)
    for (source, partition), floor in floors.items():
        if floor.any():
            here = (waiting.source == source) & (waiting.partition == partition)
            gone[here] = floor.gone(waiting.due[here], waiting.upto[here], swept=swept[here])
    return gone


def _moved(used: Ints, codes: Ints) -> Ints:
    return np.searchsorted(used, codes).astype(np.int64)


def _places(waiting: Claims | WaitingHeaders, mask: Bools) -> set[tuple[int, int, int]]:
    columns = (waiting.due[mask], waiting.source[mask], waiting.partition[mask])
    return set(zip(*(column.tolist() for column in columns), strict=True))
