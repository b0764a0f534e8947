"""Forged times and versions in records do not win.  Each record is appended at T; only the fold runs."""

from typing import Any

import pytest

from controller.aggregate.columns.rows import METRICS
from controller.aggregate.shard.fold import ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.model.errors import WireError
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_records
from tests.folds import NO_DETAIL, OPTIONS, A, B, rates, sweep, ticked
from tests.records import (
    CLUSTER,
    LEFT,
    PERIOD,
    T,
    as_bytes,
    broker_load,
    broker_state,
    load_report,
    namespace_state,
    tick,
    topic_stats,
)

_YEAR_3000 = 32_503_680_000_000


def closed(*records: dict[str, Any]) -> tuple[Snapshot, list[str]]:
    """The snapshot of the one interval that *records* close, and the reasons of refused records."""
    located, refused = [], list[str]()
    for offset, record in enumerate(records):
        try:
            decoded = decode_metric(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T)
        except WireError as error:
            refused.append(error.reason)
        else:
            located.append(Located(source=METRICS, partition=0, offset=offset, record=decoded))
    _, (snapshot,) = fold(ShardState(shard=0, shards=1), rows_from_records(located, NO_DETAIL), OPTIONS)
    return snapshot, refused


@pytest.mark.parametrize("ahead", [PERIOD + 1, _YEAR_3000, 2**62])
def test_a_sweep_dated_in_the_future_does_not_take_a_bundle_from_its_owner(ahead: int) -> None:
    forged = sweep(B, 0, LEFT, rate=99.0, lastUpdate=T + ahead)
    honest = sweep(A, 0, LEFT, lastUpdate=T - 500)
    for order in ([forged, honest], [honest, forged]):
        snapshot, refused = closed(*order, ticked(0, A, B))
        assert rates(snapshot) == {LEFT: (A, 10.0)}
        assert refused == []


def test_a_broker_whose_clock_is_fast_keeps_its_data() -> None:
    snapshot, _ = closed(sweep(A, 0, LEFT, lastUpdate=T + 10 * PERIOD), ticked(0, A))
    assert rates(snapshot) == {LEFT: (A, 10.0)}
    assert [row.broker for row in snapshot.brokers] == [A]


def test_clock_differences_below_a_period_are_accepted() -> None:
    late = sweep(B, 0, LEFT, rate=20.0, lastUpdate=T + PERIOD)
    snapshot, _ = closed(late, sweep(A, 0, LEFT, lastUpdate=T + PERIOD - 1), ticked(0, A, B))
    assert rates(snapshot) == {LEFT: (B, 20.0)}


def test_a_report_dated_in_the_future_does_not_take_a_bundle_from_its_owner() -> None:
    totals = next(iter(load_report()["lastStats"].values()))
    said = [
        broker_load(broker=broker, report=load_report(lastUpdate=update, lastStats={LEFT: totals}))
        for broker, update in ((A, T - 500), (B, _YEAR_3000))
    ]
    roster = [{"broker": A}, {"broker": B}]
    snapshot, _ = closed(*said, tick(T, partitions={"metrics": 1, "results": 0}, roster=roster))
    assert [snapshot.roster[row] for row in snapshot.owner.tolist()] == [A]


@pytest.mark.parametrize("version", [T + PERIOD + 1, _YEAR_3000, 2**63 - 1, -1, -(2**62)])
def test_a_future_or_negative_version_is_refused_and_a_later_valid_one_counts(version: int) -> None:
    whole, halves = ["0x00000000", "0xffffffff"], ["0x00000000", "0x80000000", "0xffffffff"]
    snapshot, refused = closed(
        namespace_state(version=T - PERIOD, boundaries=whole),
        namespace_state(version=version, boundaries=whole),
        broker_state(version=version, failureDomain="forged"),
        namespace_state(version=T, boundaries=halves),
        broker_state(version=T, failureDomain="rack-1"),
        ticked(0, A),
    )
    assert len(refused) == 2
    assert [len(state.boundaries) for state in snapshot.namespaces] == [3]
    assert [state.failure_domain for state in snapshot.broker_states] == ["rack-1"]


def test_a_line_break_in_a_name_does_not_empty_the_view() -> None:
    forged = [
        sweep("broker\nx:8080", 0, LEFT),
        sweep(B, 0, LEFT, sweepId="s\ns"),
        topic_stats(broker="b\u2028r:8080"),
    ]
    snapshot, refused = closed(sweep(A, 0, LEFT), *forged, ticked(0, A, B))
    assert refused == ["bad_value"] * 3
    assert rates(snapshot) == {LEFT: (A, 10.0)}


def test_a_tick_with_too_many_partitions_is_refused() -> None:
    forged = tick(T, partitions={"metrics": 2**62, "results": 0}, roster=[])
    snapshot, refused = closed(sweep(A, 0, LEFT), forged, ticked(0, A))
    assert refused == ["bad_value"]
    assert rates(snapshot) == {LEFT: (A, 10.0)}
