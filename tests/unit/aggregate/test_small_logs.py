"""What a log leads to, however records in it are late, repeated, cut off or too many, stays what it is.

A new release that reads the log of a cluster again sees the same load in every interval.  The numbers are checksums of
all snapshots and views of a log, and of the states behind them.
"""

from random import Random
from typing import Any, Final

from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.aggregate.waiting.limits import WaitLimits
from controller.wire.rows import rows_from_records
from tests.logs import BROKERS, BUNDLES, PERIOD, START, Shape, located, log
from tests.pure_controller import checksum, cut, interleaved
from tests.sharding import rows_of_shards


def options_of(chance: Random) -> FoldOptions:
    return FoldOptions(
        bundle_ttl_ms=chance.choice((0, 1, 3)) * PERIOD,
        detail=DetailLimits(
            topics=chance.choice((2, 1e9)), sessions=1e9, msg_rate=chance.choice((1e4, 30.0)), throughput=1e18
        ),
        most_topics=chance.choice((None, None, 2, 5)),
        close_at_most=chance.choice((None, None, 1)),
        waiting=WaitLimits(intervals=chance.choice((1, 2, 10)), size=chance.choice((1 << 62, 1 << 62, 8_000, 2_000))),
        state_ttl=chance.choice((None, 1, 2)),
    )


def folded(seed: int, start: int = START) -> int:
    chance = Random(seed)
    silent = frozenset(chance.choice(((), (), (2,), (1, 2))))
    shape = Shape(
        seed=seed,
        intervals=6,
        metrics_partitions=chance.choice((1, 2, 3)),
        results_partitions=chance.choice((0, 1, 2)),
        silent=silent,
        start=start,
    )
    records, options = interleaved([*located(log(shape))], chance), options_of(chance)
    shards = chance.choice((1, 1, 2))
    states = [ShardState(shard=i, shards=shards) for i in range(shards)]
    told = list[Any]()
    for batch in cut(records, [chance.choice((1, 5, 20, 40)) for _ in range(8)]):
        rows = rows_from_records(batch, options.detail)
        closed = dict[int, list[Snapshot]]()
        for i, own in enumerate(rows_of_shards(rows, cluster="demo", shards=shards)):
            if len(own):
                states[i], snapshots = fold(states[i], own, options)
                for each in snapshots:
                    closed.setdefault(each.interval, []).append(Snapshot.from_blob(each.to_blob()))
                states[i] = state_blob.load(state_blob.dump(states[i]))
        for interval, snapshots in sorted(closed.items()):
            recently = dict.fromkeys(BUNDLES[:3], interval)
            told += [checksum(each) for each in snapshots]
            told.append(checksum(assemble(snapshots, recently, {BUNDLES[4]: BROKERS[0]})))
        told += [(each.late, each.unrostered, each.dropped, each.closes, each.pool) for each in states]
    return checksum(told)


FOLDED: Final = [
    1_327_226_481, 3_952_105_063, 2_364_232_524, 4_282_197_637, 1_673_598_648, 1_489_823_480, 1_096_984_043,
]  # fmt: skip


def test_a_log_leads_to_the_same_snapshots_views_and_states() -> None:
    assert [folded(seed) for seed in range(7)] == FOLDED


#: Logs whose first interval is 0, the earliest that a record may have.
EARLIEST: Final = [2_615_304_661, 1_886_495_218, 1_836_991_365]


def test_a_log_from_the_beginning_of_time_leads_to_the_same_snapshots_views_and_states() -> None:
    assert [folded(seed, -PERIOD) for seed in range(7, 10)] == EARLIEST
