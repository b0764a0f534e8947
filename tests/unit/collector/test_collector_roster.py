"""What lies in the log decides which sweep counts."""

import pickle
from collections.abc import Collection
from typing import Any

import pytest

from controller.collector.roster import Arrivals
from controller.wire.chunks import Arrived
from controller.wire.metrics import TickRecord
from controller.wire.sweep import ResourceUsage, SweepHeader

T, PERIOD = 1_795_233_660_000, 60_000
A, B = "a:8080", "b:8080"
NOTHING = ResourceUsage(usage=0.0, limit=0.0)


def chunk(broker: str = A, interval: int = T, sweep_id: str = "1", i: int = 0, n: int = 1, **other: Any) -> SweepHeader:
    counts = ("last_update", "num_topics", "num_bundles", "num_producers", "num_consumers")
    rates = ("msg_rate_in", "msg_rate_out", "msg_throughput_in", "msg_throughput_out")
    numbers: dict[str, Any] = {**dict.fromkeys(counts, 0), **dict.fromkeys(rates, 0.0)}
    usage = dict.fromkeys(("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out"), NOTHING)
    names = {"cluster": "lab", "broker": broker, "interval": interval, "sweep_id": sweep_id, "chunk": i, "chunks": n}
    return SweepHeader(**{**numbers, **usage, **names, **other})


def tick(interval: int, cluster: str = "lab") -> TickRecord:
    return TickRecord.model_validate(
        {"cluster": cluster, "interval": interval, "partitions": {"metrics": 1, "results": 1}}
    )


def arrivals() -> Arrivals:
    return Arrivals("lab", PERIOD)


def take(
    into: Arrivals,
    *heads: SweepHeader | TickRecord,
    active: Collection[str] = (A, B),
    append_ms: int | None = None,
    with_ticks: bool = True,
) -> None:
    into.ingest([Arrived(head, append_ms) for head in heads], active, with_ticks=with_ticks)


def test_a_sweep_counts_once_all_its_chunks_came_in_whatever_order_and_however_often() -> None:
    found = arrivals()
    take(found, chunk(i=2, n=3), chunk(i=0, n=3), chunk(i=0, n=3))
    assert found.missing(T, [A]) == (A,)
    take(found, chunk(i=1, n=3))
    assert found.missing(T, [A]) == ()
    assert found.roster(T, [A]) == {A: "1"}


def test_a_sweep_that_is_complete_leaves_what_came_of_others() -> None:
    found = arrivals()
    take(found, chunk(A, i=0, n=2), chunk(B), chunk(A, i=1, n=2))
    assert found.missing(T, [A, B]) == ()


def test_of_two_sweeps_of_a_broker_the_one_that_was_complete_first_counts() -> None:
    found = arrivals()
    take(found, chunk(sweep_id="slow", i=0, n=2), chunk(sweep_id="quick"), chunk(sweep_id="slow", i=1, n=2))
    assert found.roster(T, [A]) == {A: "quick"}


def test_the_roster_lists_active_brokers_alone_whoever_was_swept() -> None:
    found = arrivals()
    take(found, chunk(B), chunk("made-up:8080"), chunk(A, i=0, n=2))
    assert found.roster(T, [A, B]) == {A: None, B: "1"}
    take(found, chunk("gone:8080"), active=["gone:8080"])
    assert found.roster(T, [A, B]) == {A: None, B: "1"}


def test_what_comes_after_a_tick_for_its_interval_or_an_earlier_one_is_late() -> None:
    found = arrivals()
    take(found, tick(T), chunk(), chunk(interval=T - PERIOD), chunk(B, interval=T + PERIOD))
    assert found.ticked == T
    assert found.complete(T) == {}
    assert found.complete(T - PERIOD) == {}
    assert found.complete(T + PERIOD) == {B: "1"}


def test_an_older_tick_changes_nothing() -> None:
    found = arrivals()
    take(found, tick(T), tick(T - PERIOD))
    assert found.ticked == T


def test_records_of_another_cluster_are_ignored() -> None:
    found = arrivals()
    take(found, chunk(cluster="other"), tick(T, cluster="other"))
    assert (found.ticked, found.complete(T), found.passed_over) == (0, {}, {})


@pytest.mark.parametrize(
    ("after_ms", "counts"),
    [(-10_001, False), (-10_000, True), (0, True), (PERIOD, True), (PERIOD + 1, False), (-(10**15), False)],
)
def test_a_sweep_counts_when_it_was_appended_near_its_interval(after_ms: int, counts: bool) -> None:
    found = arrivals()
    take(found, chunk(), append_ms=T + after_ms)
    assert found.complete(T) == ({A: "1"} if counts else {})


def test_a_tick_from_the_future_ends_nothing_and_one_that_the_leader_did_not_write_neither() -> None:
    found = arrivals()
    take(found, tick(2**62 // PERIOD * PERIOD), tick(T + PERIOD), append_ms=T)
    take(found, tick(T), append_ms=T + 1, with_ticks=False)
    assert found.ticked == 0
    take(found, tick(T), append_ms=T + 1)
    assert found.ticked == T


def test_what_is_kept_has_a_bound_whatever_is_written_to_the_topic() -> None:
    found = arrivals()
    for i in range(3_000):
        take(found, chunk(f"made-up-{i}:8080"), append_ms=T)
        take(found, chunk(interval=T + i * PERIOD), append_ms=T)
        take(found, chunk(B, sweep_id=f"{i}", i=0, n=2), append_ms=T)
        take(found, chunk(B, sweep_id="endless", i=i, n=2**40), append_ms=T)
    take(found, chunk(B, sweep_id="x" * 1_024), append_ms=T)
    assert len(pickle.dumps(found)) < 2_000
    assert sum(found.passed_over.values()) >= 8_000
    take(found, chunk(B, sweep_id="good", i=0, n=2), chunk(B, sweep_id="good", i=1, n=2), append_ms=T)
    assert found.complete(T)[B] == "good"


def test_intervals_that_were_never_ticked_are_forgotten() -> None:
    found = arrivals()
    take(found, chunk(), chunk(interval=T + PERIOD), chunk(B, i=0, n=2))
    found.forget(T)
    take(found, chunk(B, i=1, n=2))
    assert (found.complete(T), found.ticked) == ({}, 0)
    assert found.complete(T + PERIOD) == {A: "1"}


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"i": 999, "n": 1_000}, False),
        ({"i": 999, "n": 1_001}, True),
        ({"sweep_id": "x" * 1_000}, False),
        ({"sweep_id": "x" * 1_001}, True),
        ({"interval": T + 1}, True),
    ],
)
def test_a_chunk_that_no_collector_writes_is_passed_over(changes: dict[str, Any], refused: bool) -> None:
    found = arrivals()
    take(found, chunk(**changes))
    assert found.passed_over == (
        {"without a valid interval, in too many chunks, or with too long an id": 1} if refused else {}
    )


def test_what_is_passed_over_is_counted_by_its_reason_and_one_broker_is_named() -> None:
    found = arrivals()
    take(found, chunk("x:1"), chunk("y:1"), append_ms=T)
    take(found, chunk(), append_ms=T + PERIOD + 1)
    assert found.passed_over == {
        "of brokers that are not active": 2,
        "appended too long before or after their interval": 1,
    }
    assert found.example == A


def test_eight_sweeps_of_a_broker_may_be_incomplete_and_a_ninth_replaces_the_oldest() -> None:
    for number, first_is_kept in ((8, True), (9, False)):
        found = arrivals()
        take(found, *(chunk(sweep_id=str(i), i=0, n=2) for i in range(number)), chunk(B, i=0, n=2))
        take(found, chunk(sweep_id="0", i=1, n=2))
        assert found.complete(T) == ({A: "0"} if first_is_kept else {})
        take(found, chunk(sweep_id="2", i=1, n=2))
        assert found.complete(T) == {A: "0" if first_is_kept else "2"}


@pytest.mark.parametrize(("period", "skew"), [(PERIOD, 10_000), (20_000, 10_000), (19_998, 9_999), (5_000, 2_500)])
def test_clocks_may_differ_by_10_seconds_or_half_a_period(period: int, skew: int) -> None:
    interval = T // period * period
    for ahead, ends in ((skew, True), (skew + 1, False)):
        found = Arrivals("lab", period)
        take(found, tick(interval), append_ms=interval - ahead)
        assert found.ticked == (interval if ends else 0)
        found = Arrivals("lab", period)
        take(found, chunk(interval=interval), append_ms=interval - ahead)
        assert found.complete(interval) == ({A: "1"} if ends else {})
