"""The fold over one shard of the bundles: the core of the streaming query.

``fold(state, rows, options) -> (state, snapshots)`` is pure and the same for Spark, replay and the simulator.  Only
the log says which records belong to which interval (controller.aggregate.ticks.intervals), sums are exact in any
order, and names break ties; so the snapshots are bit-identical however the log is cut into batches.
"""

from dataclasses import replace

from controller.aggregate.columns.rows import FACT, DatedRows, Partition, Rows
from controller.aggregate.shard.closing import close
from controller.aggregate.shard.ingest import ingest
from controller.aggregate.shard.shard_state import DetailLimits, FoldOptions, ShardState
from controller.aggregate.shard.tidying import tidy
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.facts import fact_to_text
from controller.aggregate.ticks.intervals import LATE, UNDUE, Advances
from controller.aggregate.waiting.limits import Floors, WaitLimits
from controller.aggregate.waiting.waiting_rows import WaitingRows
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
    has_ticks = any(isinstance(fact, Tick) for fact in rows.facts.values())
    state, dated, floors = _dated(state, rows, options.waiting)
    state = tidy(ingest(state, dated), floors)
    snapshots = []
    for interval in state.clock.closable()[: options.close_at_most] if has_ticks else ():
        state, snapshot = close(state, interval, options)
        snapshots.append(snapshot)
    return state, snapshots


def check_shards(state: ShardState, shards: int) -> None:
    """Raise StateError if *state* was made with another number of shards: its bundles are in other shards."""
    if state.shards != shards:
        raise StateError(
            f"the checkpoint was made with shards = {state.shards}, but the settings have {shards}: set "
            f"intervals.shards back, or start with a new checkpoint"
        )


# ---- dating rows ----


def _dated(state: ShardState, rows: Rows, limits: WaitLimits) -> tuple[ShardState, DatedRows, list[Floors]]:
    """The state after the ticks of *rows*, the rows with their intervals, and what is too much to wait."""
    state, offset = _offsets(state, rows)
    clock, advances = state.clock.advance(_ticks(rows, offset))
    state = replace(_with_due(state, advances), clock=clock)
    due = advances.due(rows, offset)
    texts = {i: fact_to_text(fact) for i, fact in sorted(rows.facts.items()) if rows.kind[i] == FACT}
    upto = state.arrivals.upto(rows, offset, texts)
    dated = DatedRows(**vars(rows) | {"offset": offset, "due": due, "upto": upto, "texts": texts})
    arrivals, floors = state.arrivals.with_rows(dated, advances, limits)
    return replace(state, arrivals=arrivals, late=state.late + int((due == LATE).sum())), dated, floors


def _offsets(state: ShardState, rows: Rows) -> tuple[ShardState, Ints]:
    if rows.file is None:
        return state, rows.offset
    rank = {name: i for i, name in enumerate(sorted(set(rows.file.used())))}
    base = rows.file.numbered(rank.__getitem__) + state.files
    return replace(state, files=state.files + len(rank)), base * _FILE_STRIDE + rows.offset


def _ticks(rows: Rows, offset: Ints) -> list[tuple[Partition, int, Tick]]:
    ticks = [
        ((int(rows.source[i]), int(rows.partition[i])), int(offset[i]), fact)
        for i, fact in rows.facts.items()
        if isinstance(fact, Tick)
    ]
    return sorted(ticks, key=lambda tick: tick[:2])


def _with_due(state: ShardState, advances: Advances) -> ShardState:
    """Assign an interval to waiting rows whose partition just ticked."""
    if not advances.steps:
        return state

    def due(waiting: WaitingRows) -> Ints:
        intervals = waiting.due.copy()
        for partition in advances.steps:
            intervals[waiting.of_partition(partition) & (intervals == UNDUE)] = advances.first(partition)
        return intervals

    return replace(
        state,
        claims=replace(state.claims, due=due(state.claims)),
        headers=replace(state.headers, due=due(state.headers)),
        facts=replace(state.facts, due=due(state.facts)),
    )
