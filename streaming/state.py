"""The stateful operator: reads a shard's blob, calls the pure fold, writes the blob.  Nothing else."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import FoldOptions, ShardState, check_shards, fold
from controller.model.errors import StateError
from controller.wire.packed_rows import rows_from_columns
from controller.wire.refused import refused_spans
from streaming.compressed import compressed, decompressed
from streaming.schemas import SHARD_OUTPUT

ShardUpdate = Callable[[tuple[int], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]

_NO_SNAPSHOT = (None, None, None, None)
_NO_SPAN = (None, None, None, None, None)


def shard_update(*, cluster: str, period_ms: int, shards: int, files: bool, options: FoldOptions) -> ShardUpdate:
    """The function that Spark calls for each shard with rows in a batch."""

    def update(key: tuple[int], parts: Iterable[pd.DataFrame], group: GroupState) -> Iterator[pd.DataFrame]:
        frames, shard = list(parts), int(key[0])
        columns = {
            str(name): np.concatenate([frame[name].to_numpy() for frame in frames]) for name in frames[0].columns
        }
        batch = rows_from_columns(columns, cluster=cluster, period_ms=period_ms, files=files)
        if len(batch):
            state = _loaded(group) if group.exists else ShardState(shard=shard, shards=shards)
            check_shards(state, shards)
            state, snapshots = fold(state, batch, options)
            group.update((compressed(state_blob.dump(state)),))
            for snapshot in snapshots:
                yield _output((snapshot.interval, snapshot.shard, snapshot.shards, snapshot.to_blob()), _NO_SPAN)
        for span in refused_spans(columns, batch, shard=shard):
            yield _output(_NO_SNAPSHOT, span)

    return update


def _loaded(group: GroupState) -> ShardState:
    try:
        return state_blob.load(decompressed(bytes(group.get[0])))
    except StateError as error:
        raise StateError(
            f"{error}: restore the checkpoint, or set another checkpoint.path; intervals that were decided stay decided"
        ) from error


def _output(snapshot: tuple[object, ...], span: tuple[object, ...]) -> pd.DataFrame:
    # As objects: whole numbers beside nulls stay whole numbers.
    return pd.DataFrame([(*snapshot, *span)], columns=SHARD_OUTPUT.names, dtype=object)
