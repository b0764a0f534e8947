"""The decision sink with its batches played: no Spark, a journal in a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from controller.adapters.disk.verdicts import VerdictStore
from controller.aggregate.places import Span
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.engine import Engine
from controller.model.controls import Controls
from controller.wire.rows import Located, rows_from_records
from streaming.schemas import SHARD_OUTPUT
from streaming.sink import DecisionSink
from tests.folders import journal_in
from tests.pure_controller import DETAIL, OPTIONS, POLICY


def active(interval: int) -> Controls:
    return Controls(mode="active")


def snapshots(records: Sequence[Located]) -> list[Snapshot]:
    """One of each interval in *records*, of a single shard."""
    rows = rows_from_records(records, DETAIL, files=False)
    return fold(ShardState(shard=0, shards=1), rows, OPTIONS)[1]


def batch(snapshots: Sequence[Snapshot], refused: Sequence[Span] = ()) -> Any:
    """What Spark hands to the sink: *snapshots*, and where *refused* records lie."""
    closed = [{"interval": each.interval, "snapshot": each.to_blob()} for each in snapshots]
    rows = [*closed, *(span._asdict() for span in refused)]
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(SHARD_OUTPUT))
    return Mock(**{"toArrow.return_value": table})


def sink(folder: Path, *, controls: Callable[[int], Controls] = active, **changed: Any) -> DecisionSink:
    """A sink that goes on where the journal in *folder* ends."""
    kept = journal_in(folder, cluster=POLICY.cluster)
    last = kept.open().last
    journal, now_ms = changed.pop("journal", kept), changed.pop("now_ms", lambda: 0)
    engine = Engine(
        policy=POLICY,
        memory=POLICY.initial_memory(1) if last is None else last.memory,
        journal=journal,
        leadership=changed.pop("leadership", Mock()),
        epoch=1,
        controls=controls,
        now_ms=now_ms,
    )
    parts: dict[str, Any] = {
        "verdicts": VerdictStore(folder / "verdicts"),
        "retention_ms": 30 * 86_400_000,
        "letters": Mock(),
    }
    return DecisionSink(engine, journal=journal, now_ms=now_ms, **{**parts, **changed})
