"""The fold on small logs: which sweeps and claims count, and when a bundle is forgotten."""

from dataclasses import replace

import pytest

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.model.load import RATE_IN
from controller.wire.rows import rows_from_records
from tests.folds import NO_DETAIL, OPTIONS, A, B, closings, place, rates, snapshots, sweep, ticked
from tests.records import LEFT, PERIOD, RIGHT, T, bundle_data, tick, topic_stats, without


def test_a_broker_has_data_when_all_chunks_of_its_sweep_came() -> None:
    first, second = (sweep(A, 0, name, chunk=i, chunks=2) for i, name in enumerate((LEFT, RIGHT)))
    (whole,) = snapshots([first, second, ticked(0, A)])
    assert [row.broker for row in whole.brokers] == [A]
    assert rates(whole) == {LEFT: (A, 10.0), RIGHT: (A, 10.0)}
    (cut_off,) = snapshots([first, ticked(0, A), second])
    assert (cut_off.brokers, cut_off.late) == ((), 2)


def test_a_sweep_that_is_not_on_the_roster_does_not_count() -> None:
    (snapshot,) = snapshots([sweep(A, 0, LEFT), sweep(A, 0, RIGHT, sweepId="other"), ticked(0, A, missing=B)])
    assert rates(snapshot) == {LEFT: (A, 10.0)}
    assert [row.broker for row in snapshot.brokers] == [A]


def test_a_sweep_of_an_interval_without_a_tick_does_not_count_in_the_next_one_by_its_name() -> None:
    (snapshot,) = snapshots([sweep(A, 0, LEFT, rate=20.0), sweep(A, 1, LEFT), ticked(1, A)])
    assert rates(snapshot) == {LEFT: (A, 10.0)}


def test_the_load_of_a_bundle_in_several_chunks_is_their_sum() -> None:
    chunks = [sweep(A, 0, LEFT, rate=0.1 * (i + 1), chunk=i, chunks=3) for i in range(3)]
    for order in (chunks, chunks[::-1], [chunks[1], *chunks]):
        (snapshot,) = snapshots([*order, ticked(0, A)])
        assert rates(snapshot)[LEFT] == (A, 0.6)


def gone_and_back(*, batches: int) -> Snapshot:
    """A bundle is seen at 0, in no sweep of 1 and 2 (over its time to live), and again at 3."""
    log = [
        sweep(A, 0, LEFT, rate=1000.0), ticked(0, A),
        sweep(A, 1), ticked(1, A),
        sweep(A, 2), ticked(2, A),
        sweep(A, 3, LEFT, rate=10.0), ticked(3, A),
    ]  # fmt: skip
    size = len(log) // batches
    return snapshots(*(log[i : i + size] for i in range(0, len(log), size)))[-1]


def test_a_bundle_that_returns_after_its_time_to_live_is_new_however_batches_are_cut() -> None:
    for batches in (1, 2, 4):
        assert gone_and_back(batches=batches).short_term[0, RATE_IN] == 10.0


def test_a_new_bundle_starts_from_the_last_stored_averages_however_batches_are_cut() -> None:
    quota = {**dict.fromkeys(("msgRateOut", "bandwidthIn", "bandwidthOut", "memory"), 0.0), "dynamic": True}
    first, second = (
        {**bundle_data(), "bundleData": None, "resourceQuota": {**quota, "msgRateIn": rate}} for rate in (100.0, 200.0)
    )
    log = [first, ticked(0, missing=A), second, sweep(A, 1, LEFT, rate=0.0), ticked(1, A)]
    for batches in ([log], [log[:2], log[2:]], [[record] for record in log]):
        snapshot = snapshots(*batches)[-1]
        assert snapshot.short_term[0, RATE_IN] == 200.0 * 9 / 10


def test_a_batch_closes_at_most_close_at_most_intervals_and_later_batches_with_a_tick_the_rest() -> None:
    backlog = [record for n in range(5) for record in (sweep(A, n, LEFT, rate=10.0 * n), ticked(n, A))]
    later = [[sweep(A, 5, LEFT)], [ticked(5, A)], [ticked(6, A)]]
    capped = closings(backlog, *later, options=replace(OPTIONS, close_at_most=2))
    assert [[s.interval for s in batch] for batch in capped] == [
        [T, T + PERIOD],
        [],  # without a tick not every shard has rows, and they close together
        [T + 2 * PERIOD, T + 3 * PERIOD],
        [T + 4 * PERIOD, T + 5 * PERIOD],
    ]
    whole = snapshots(backlog, *later)
    assert [s.to_blob() for batch in capped for s in batch] == [s.to_blob() for s in whole[:6]]


@pytest.mark.parametrize("elsewhere", [(METRICS, 1), (RESULTS, 0)])
def test_a_roster_outside_partition_0_of_the_metrics_topic_is_ignored(elsewhere: tuple[int, int]) -> None:
    counts = {"metrics": 2, "results": 1}
    true = tick(T, partitions=counts, roster=[{"broker": A, "sweepId": "s"}])
    forged = tick(T, partitions={"metrics": 1, "results": 0}, roster=[{"broker": B, "sweepId": "s"}])
    others = {(METRICS, 1), (RESULTS, 0)} - {elsewhere}
    for order in ("forged first", "forged last"):
        ticks = [place((METRICS, 0), 9, true), place(elsewhere, 9, forged)]
        if order == "forged first":
            ticks.reverse()
        log = [place((METRICS, 0), 0, sweep(A, 0, LEFT)), place((METRICS, 0), 1, sweep(B, 0, RIGHT)), *ticks]
        log += [place(partition, 9, without(true, "roster")) for partition in others]
        state, found = ShardState(shard=0, shards=1), []
        for record in log:
            state, closed = fold(state, rows_from_records([record], NO_DETAIL), OPTIONS)
            found += closed
        (snapshot,) = found
        assert snapshot.roster == (A,)
        assert rates(snapshot) == {LEFT: (A, 10.0)}


def test_a_log_that_starts_within_a_sweep_leaves_its_broker_without_data_for_one_interval() -> None:
    rest = sweep(A, 0, RIGHT, chunk=1, chunks=2)
    first, second = snapshots([rest, ticked(0, A), sweep(A, 1, LEFT, RIGHT), ticked(1, A)])
    assert (first.brokers, first.roster) == ((), (A,))
    assert [row.broker for row in second.brokers] == [A]


def test_a_log_that_starts_between_ticks_closes_the_interval_without_the_brokers_cut_off() -> None:
    """Partition 1 starts after its tick of the first interval; its tick of the second interval closes the first."""
    two = {"metrics": 2, "results": 0}
    roster: list[dict[str, str | None]] = [{"broker": name, "sweepId": "s"} for name in (A, B)]
    log = [
        place((METRICS, 0), 0, sweep(A, 0, LEFT)),
        place((METRICS, 0), 1, tick(T, partitions=two, roster=roster)),
        place((METRICS, 0), 2, sweep(A, 1, LEFT)),
        place((METRICS, 0), 3, tick(T + PERIOD, partitions=two, roster=roster)),
        place((METRICS, 1), 7, sweep(B, 1, RIGHT)),
        place((METRICS, 1), 8, without(tick(T + PERIOD, partitions=two), "roster")),
    ]
    _, (first, second) = fold(ShardState(shard=0, shards=1), rows_from_records(log, NO_DETAIL), OPTIONS)
    assert [row.broker for row in first.brokers] == [A]
    assert [row.broker for row in second.brokers] == [A, B]


def test_bundles_of_an_interval_that_has_no_tick_count_as_not_on_a_roster() -> None:
    log = [sweep(A, 0, LEFT, RIGHT), sweep(B, 1, LEFT), sweep(A, 1, LEFT, RIGHT), ticked(1, A, B)]
    (snapshot,) = snapshots(log)
    assert (snapshot.unrostered, snapshot.late, snapshot.dropped) == (2, 0, 0)
    (without_any,) = snapshots([sweep(A, 1, LEFT), ticked(1, A)])
    assert without_any.unrostered == 0


def test_topics_that_somebody_writes_of_belong_to_no_roster() -> None:
    """Partition 0, which has the rosters, starts after its tick of the first interval."""
    two = {"metrics": 2, "results": 0}
    log = [
        place((METRICS, 1), 0, topic_stats()),
        place((METRICS, 1), 1, sweep(A, 0, LEFT)),
        place((METRICS, 1), 2, without(tick(T, partitions=two), "roster")),
        place((METRICS, 1), 3, without(tick(T + PERIOD, partitions=two), "roster")),
        place((METRICS, 0), 7, sweep(A, 1, LEFT)),
        place((METRICS, 0), 8, tick(T + PERIOD, partitions=two, roster=[{"broker": A, "sweepId": "s"}])),
    ]
    _, (snapshot,) = fold(ShardState(shard=0, shards=1), rows_from_records(log, NO_DETAIL), OPTIONS)
    assert snapshot.interval == T + PERIOD
    assert snapshot.unrostered == 1, "the bundle of the sweep"


def test_a_bundle_claimed_twice_goes_to_the_later_claim_then_to_the_later_name() -> None:
    for update, owner in ((T - 1, A), (T, B), (T + 1, B)):
        claim = sweep(B, 0, LEFT, rate=20.0, lastUpdate=update)
        (snapshot,) = snapshots([claim, sweep(A, 0, LEFT), ticked(0, A, B)])
        assert rates(snapshot)[LEFT][0] == owner
