"""The fold over one shard of the bundles: the core of the streaming query.

``fold(state, rows, options) -> (state, snapshots)`` is pure and the same for Spark, replay and the simulator.  Only
the log says which records belong to which interval (controller.aggregate.ticks.intervals), sums are exact in any
order, and names break ties; so the snapshots are bit-identical however the log is cut into batches.
"""

from dataclasses import replace

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, FACT, SWEEP, Rows
from controller.aggregate.kept.fact_text import fact_to_text
from controller.aggregate.shard.closing import close
from controller.aggregate.shard.shard_state import DetailLimits, FoldOptions, ShardState
from controller.aggregate.shard.taking_in import with_claims, with_facts, with_headers
from controller.aggregate.shard.tidying import without_overflow, without_superseded
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.ticks.intervals import LATE, UNDUE, Advances, Partition
from controller.aggregate.waiting.limits import sizes_of
from controller.model.errors import StateError
from controller.model.load import Ints
from controller.model.records import Tick

__all__ = ["DetailLimits", "FoldOptions", "ShardState", "check_shards", "fold"]

#: In a folder log, line n of file i has the offset i * _FILE_STRIDE + n.
_FILE_STRIDE = 1 << 32


def fold(state: ShardState, rows: Rows, options: FoldOptions) -> tuple[ShardState, list[Snapshot]]:
    """Add one batch of rows and close the intervals that can be closed, oldest first.  O(rows log rows + bundles).

    Only a batch with a tick closes intervals: every shard gets every tick, so all shards close the same intervals in
    the same batch.  A batch without a tick may reach only some shards.
    """
    state, offset = _offsets(state, rows)
    ticks = _ticks(rows, offset)
    clock, advances = state.clock.advance(ticks)
    due = _due(rows, offset, advances)
    state = _redue(replace(state, clock=clock, late=state.late + int((due == LATE).sum())), advances)
    texts = {i: fact_to_text(fact) for i, fact in sorted(rows.facts.items()) if rows.kind[i] == FACT}
    sizes = sizes_of(rows, texts)
    arrivals, upto, floors = state.arrivals.with_rows(rows, offset, due, sizes, advances, options.waiting)
    state = with_claims(replace(state, arrivals=arrivals), rows, offset, due, upto)
    state = with_facts(with_headers(state, rows, offset, due, upto), rows, offset, due, upto, texts)
    state = without_overflow(without_superseded(state), floors)
    snapshots = []
    for interval in clock.closable()[: options.close_at_most] if ticks else ():
        state, snapshot = close(state, interval, options)
        snapshots.append(snapshot)
    return state, snapshots


def check_shards(state: ShardState, shards: int) -> None:
    """Raise StateError if *state* was made with another number of shards: its bundles are in other shards."""
    if state.shards != shards:
        raise StateError(
            f"the checkpoint was made with shards = {state.shards}, the settings say {shards}: "
            "set intervals.shards back, or start with a new checkpoint"
        )


# ---- dating rows ----


def _offsets(state: ShardState, rows: Rows) -> tuple[ShardState, Ints]:
    if rows.file is None:
        return state, rows.offset
    rank = {name: i for i, name in enumerate(sorted(set(rows.file.used())))}
    base = rows.file.numbered(rank.__getitem__) + state.files
    return replace(state, files=state.files + len(rank)), base * _FILE_STRIDE + rows.offset


def _ticks(rows: Rows, offset: Ints) -> list[tuple[Partition, int, Tick]]:
    found = [
        ((int(rows.source[i]), int(rows.partition[i])), int(offset[i]), fact)
        for i, fact in rows.facts.items()
        if isinstance(fact, Tick)
    ]
    return sorted(found, key=lambda tick: tick[:2])


def _due(rows: Rows, offset: Ints, advances: Advances) -> Ints:
    dated = rows.of_kind([SWEEP, BUNDLE])
    interval = np.where(dated, rows.interval, UNDUE)
    due = np.empty(len(rows), np.int64)
    for source, partition in rows.partitions():
        here = (rows.source == source) & (rows.partition == partition)
        due[here] = advances.due((source, partition), offset[here], interval[here])
    return due


def _redue(state: ShardState, advances: Advances) -> ShardState:
    """Set ``due`` of rows that waited since earlier batches for the next tick of their partition."""
    dues = []
    for waiting in (state.claims, state.headers, state.facts):
        due = waiting.due.copy()
        for partition in advances.steps:
            here = (waiting.source == partition[0]) & (waiting.partition == partition[1]) & (due == UNDUE)
            due[here] = advances.first(partition)
        dues.append(due)
    return replace(
        state,
        claims=replace(state.claims, due=dues[0]),
        headers=replace(state.headers, due=dues[1]),
        facts=replace(state.facts, due=dues[2]),
    )
