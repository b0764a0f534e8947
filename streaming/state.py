"""The stateful operator: reads a shard's blob, calls the pure fold, writes the blob.  Nothing else."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from controller.aggregate import state_blob
from controller.aggregate.shard import FoldOptions, ShardState, check_shards, fold
from controller.wire.rows import rows_from_columns

ShardUpdate = Callable[[tuple[int], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def shard_update(*, cluster: str, period_ms: int, shards: int, files: bool, options: FoldOptions) -> ShardUpdate:
    """The function that Spark calls for each shard with rows in a batch."""

    def update(key: tuple[int], parts: Iterable[pd.DataFrame], group: GroupState) -> Iterator[pd.DataFrame]:
        frames = list(parts)
        columns = {
            str(name): np.concatenate([frame[name].to_numpy() for frame in frames]) for name in frames[0].columns
        }
        state = state_blob.load(bytes(group.get[0])) if group.exists else ShardState(shard=int(key[0]), shards=shards)
        check_shards(state, shards)
        batch = rows_from_columns(columns, cluster=cluster, period_ms=period_ms, files=files)
        state, snapshots = fold(state, batch, options)
        group.update((state_blob.dump(state),))
        for snapshot in snapshots:
            row = (snapshot.interval, snapshot.shard, snapshot.shards, snapshot.to_blob())
            yield pd.DataFrame([row], columns=["interval", "shard", "shards", "snapshot"])

    return update
