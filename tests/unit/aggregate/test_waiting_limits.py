"""Rows that wait for ticks are bounded: the oldest are dropped first, and incomplete sweeps do not count."""

from dataclasses import replace
from typing import Any

import pytest

from controller.aggregate.columns.rows import METRICS
from controller.aggregate.shard.fold import FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.aggregate.waiting.limits import WaitLimits
from controller.model.load import RATE_IN
from controller.wire.rows import rows_from_records
from tests.folds import NO_DETAIL, OPTIONS, A, B, Shard, place, rates, sweep, ticked
from tests.records import LEFT, PERIOD, RIGHT, T, broker_load, load_report, namespace_state, tick, topic_stats, without

TEN = replace(OPTIONS, waiting=WaitLimits(intervals=10))


def test_without_ticks_only_sweeps_of_the_newest_intervals_are_kept() -> None:
    shard = Shard(options=TEN)
    for n in range(40):
        shard.feed(sweep(A, n, LEFT))
    assert sorted(set(shard.state.claims.due.tolist())) == [T + n * PERIOD for n in range(30, 40)]
    assert len(shard.state.headers) == 10
    (snapshot,) = shard.feed(ticked(39, A))
    assert rates(snapshot) == {LEFT: (A, 10.0)}
    assert [row.broker for row in snapshot.brokers] == [A]
    assert snapshot.dropped == 2 * 30


def test_dropped_sweeps_do_not_count_when_their_tick_comes_later() -> None:
    shard = Shard(options=TEN)
    (snapshot,) = shard.feed(*(sweep(A, n, LEFT) for n in range(20)), ticked(5, A))
    assert snapshot.brokers == ()
    (snapshot,) = shard.feed(ticked(15, A))
    assert [row.broker for row in snapshot.brokers] == [A]


def test_sweeps_of_a_ticked_partition_are_kept_until_the_other_partitions_are_ticked() -> None:
    """How far the partitions are read differs from run to run, so it must not decide what is dropped."""
    two = {"metrics": 2, "results": 0}
    roster: list[dict[str, str | None]] = [{"broker": A, "sweepId": "s"}]
    first, second = [], []
    for n in range(30):
        end = tick(T + n * PERIOD, partitions=two, roster=roster)
        first += [sweep(A, n, LEFT), end]
        second.append(without(end, "roster"))
    log = [place((METRICS, 0), i, record) for i, record in enumerate(first)]
    log += [place((METRICS, 1), i, record) for i, record in enumerate(second)]
    state = ShardState(shard=0, shards=1)
    state, none = fold(state, rows_from_records(log[:60], NO_DETAIL), TEN)
    _, found = fold(state, rows_from_records(log[60:], NO_DETAIL), TEN)
    assert (len(none), len(found)) == (0, 30)
    assert all(rates(snapshot) == {LEFT: (A, 10.0)} for snapshot in found)


def bounded(size: int) -> FoldOptions:
    return replace(OPTIONS, waiting=WaitLimits(size=size))


@pytest.mark.slow
def test_a_flood_of_unknown_brokers_and_bundles_is_bounded_before_an_interval_closes() -> None:
    shard = Shard(options=bounded(5_000))
    for i in range(100):
        shard.feed(sweep(f"broker-{i}:8080", 0, f"a/b/0x{i:08x}_0x{i + 1:08x}"))
    state = shard.state
    assert len(state.claims) + len(state.headers) < 50
    assert max(len(state.bundles), len(state.pool)) < 50
    assert state.dropped > 150


def view_of(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    view = assemble([snapshot], {}, {})
    return list(view.brokers.names), list(view.missing)


def test_a_sweep_with_a_dropped_part_leaves_its_broker_without_data() -> None:
    """Otherwise its load would look smaller than it is."""
    shard = Shard(options=bounded(2_000))
    first, second = (sweep(A, 0, name, chunk=i, chunks=2) for i, name in enumerate((LEFT, RIGHT)))
    flood = [sweep("made-up:8080", 0, f"a/b/0x{i:08x}_0x{i + 1:08x}") for i in range(20)]
    (snapshot,) = shard.feed(first, *flood, second, ticked(0, A))
    assert snapshot.torn == ((METRICS, 0),)
    assert view_of(snapshot) == ([], [A])
    (snapshot,) = shard.feed(sweep(A, 1, LEFT), ticked(1, A))
    assert view_of(snapshot) == ([A], [])


def test_a_part_dropped_in_another_shard_leaves_the_broker_without_data() -> None:
    (snapshot,) = Shard().feed(sweep(A, 0, LEFT), ticked(0, A))
    whole = replace(snapshot, shards=2)
    torn = replace(whole, shard=1, brokers=(), torn=((METRICS, 0),))
    assert list(assemble([whole, torn], {}, {}).missing) == [A]
    elsewhere = replace(torn, torn=((METRICS, 1),))
    assert list(assemble([whole, elsewhere], {}, {}).missing) == []


def test_bundles_of_brokers_on_no_roster_are_forgotten_at_the_next_close() -> None:
    shard = Shard()
    shard.feed(sweep("made-up:8080", 0, *(f"a/b/0x{i:08x}_0x{i + 1:08x}" for i in range(50))), sweep(A, 0, LEFT))
    assert len(shard.state.bundles) == 51
    shard.feed(ticked(0, A))
    assert (shard.state.bundles.names, shard.state.pool, len(shard.state.claims)) == ([LEFT], [], 0)


def test_only_the_last_waiting_statistics_of_a_topic_are_kept() -> None:
    shard = Shard()
    for i in range(50):
        shard.feed(topic_stats(broker=B, bundle=LEFT, msgRateIn=float(i)))
    assert len(shard.state.claims) == 1
    shard.feed(sweep(A, 0, RIGHT), topic_stats(broker=B, bundle=LEFT, msgRateIn=49.0))
    assert len(shard.state.claims) == 2
    (snapshot,) = shard.feed(ticked(0, missing=B))
    assert snapshot.load[:, RATE_IN].tolist() == [49.0]
    assert snapshot.dropped == 0


def test_only_the_last_waiting_report_of_a_broker_is_kept() -> None:
    shard = Shard()
    for i in range(20):
        shard.feed(broker_load(broker=B, report=load_report(lastUpdate=T + i)))
    bundles = len(load_report()["lastStats"])
    assert (len(shard.state.headers), len(shard.state.claims)) == (1, bundles)
    (snapshot,) = shard.feed(ticked(0, missing=B))
    assert [row.last_update for row in snapshot.brokers] == [T + 19]
    assert len(snapshot.names) == bundles
    for i in range(2):
        shard.feed(broker_load(broker=B, report=load_report(lastUpdate=T + PERIOD + i, lastStats={})))
    assert (len(shard.state.headers), len(shard.state.claims)) == (1, 0)


def test_what_a_later_report_replaces_goes_from_its_own_partition_alone() -> None:
    def report(number: int, broker: str, **changed: Any) -> dict[str, Any]:
        return broker_load(broker=broker, report=load_report(number, **changed))

    log = [
        place((METRICS, 0), 0, report(1, A, lastUpdate=T)),
        place((METRICS, 0), 1, report(1, A, lastUpdate=T + 1)),
        place((METRICS, 1), 0, report(2, B, lastUpdate=T)),
        place((METRICS, 1), 1, report(1, "c:8080", lastUpdate=T, lastStats={})),
        place((METRICS, 1), 2, report(1, "c:8080", lastUpdate=T + 1, lastStats={})),
    ]
    state, _ = fold(ShardState(shard=0, shards=1), rows_from_records(log, NO_DETAIL), OPTIONS)
    assert len(state.headers) == 3
    assert len(state.claims) == len(load_report(1)["lastStats"]) + len(load_report(2)["lastStats"])


@pytest.mark.parametrize(("size", "torn"), [(400, ()), (399, ((0, 0),))])
def test_an_interval_may_have_as_many_bytes_as_the_limit(size: int, torn: tuple[tuple[int, int], ...]) -> None:
    (snapshot,) = Shard(options=bounded(size)).feed(sweep(A, 0, LEFT), ticked(0, A))
    assert snapshot.torn == torn


def test_facts_that_wait_for_a_tick_are_bounded() -> None:
    shard = Shard(options=bounded(5_000))
    for i in range(100):
        shard.feed(namespace_state(namespace=f"a/{i:05d}"))
    assert 0 < len(shard.state.facts) < 50
    (snapshot,) = shard.feed(ticked(0, A))
    assert max(state.namespace for state in snapshot.namespaces) == "a/00099"
    assert snapshot.dropped > 50


def test_a_flood_leaves_brokers_with_topic_stats_without_data() -> None:
    """It is not known which of their statistics were dropped."""
    shard = Shard(options=bounded(5_000))
    flood = [topic_stats(broker="made-up:8080", topic=f"persistent://a/b/{i}") for i in range(50)]
    (snapshot,) = shard.feed(topic_stats(broker=B, bundle=LEFT), *flood, ticked(0, missing=B))
    assert view_of(snapshot) == ([], [B])
    (snapshot,) = shard.feed(topic_stats(broker=B, bundle=LEFT), ticked(1, missing=B))
    assert view_of(snapshot) == ([B], [])


def test_only_the_interval_and_the_partition_of_what_was_dropped_are_torn() -> None:
    shard = Shard(options=TEN)
    shard.feed_places(
        *(place((METRICS, 0), n, sweep(A, n, LEFT)) for n in range(12)),
        *(place((METRICS, 1), n, sweep(B, n, RIGHT)) for n in range(10)),
    )
    assert shard.state.torn == {(T, METRICS, 0), (T + PERIOD, METRICS, 0)}
    assert (shard.state.dropped, len(shard.state.claims), len(shard.state.headers)) == (4, 20, 20)
    # The header of a sweep, and not its bundles alone.
    bare = Shard(options=TEN)
    bare.feed(*(sweep(A, n) for n in range(11)))
    assert bare.state.torn == {(T, METRICS, 0)}


def test_bytes_are_counted_over_batches_by_partition() -> None:
    """240 for a sweep's header, 160 for each of its bundles, 100 and its text for a fact; a tick has none."""
    sweeps = [sweep(A, n, LEFT, RIGHT) for n in range(3)]
    for batches in ([sweeps], [sweeps[:1], sweeps[1:]], [[one] for one in sweeps]):
        shard = Shard()
        for batch in batches:
            shard.feed(*batch)
        assert shard.state.arrivals.size == {(METRICS, 0): 3 * (240 + 2 * 160)}
        shard.feed(ticked(2, A))
        assert shard.state.arrivals.size == {(METRICS, 0): 1_680}
        assert shard.state.arrivals.ticked == {(METRICS, 0): 1_680}
        shard.feed(namespace_state())
        assert 1_680 + 100 < shard.state.arrivals.size[METRICS, 0] < 1_680 + 100 + 300
        assert shard.state.arrivals.ticked == {(METRICS, 0): 1_680}
