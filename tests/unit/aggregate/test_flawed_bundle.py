"""One flawed bundle makes its record a dead letter, and its broker has no data for the interval."""

from typing import Any

import pytest

from controller.aggregate.shard.fold import DetailLimits
from controller.model.errors import WireError
from controller.wire.metrics import decode_metric
from tests.folds import view_of
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, as_bytes, broker_sweep, bundle_stats, load_report, tick

BROKER = "broker-1:8080"
IMPOSSIBLE = "tenant/ns/0x80000000_0x00000000"
NO_DETAIL = DetailLimits(topics=1e9, sessions=1e9, msg_rate=1e18, throughput=1e18)


def with_totals(**changed: Any) -> dict[str, Any]:
    return bundle_stats(LEFT, totals={**bundle_stats()["totals"], **changed})


FLAWED = {
    "an impossible name": (bundle_stats(IMPOSSIBLE), "impossible_bundle: bundleStats.1.bundle: "),
    "no name": ({**bundle_stats(), "bundle": None}, "bad_value: bundleStats.1.bundle: "),
    "an array too short": (bundle_stats(LEFT, msgRateIn=[1.0]), "bad_value: bundleStats.1: msgRateIn has 1 values"),
    "an array of null": (bundle_stats(LEFT, consumerCount=None), "bad_value: bundleStats.1.consumerCount: "),
    "a topic's rate negative": (bundle_stats(LEFT, msgRateIn=[1.0, -1.0]), "bad_value: bundleStats.1.msgRateIn.1: "),
    "a topic's rate null": (bundle_stats(LEFT, msgRateIn=[1.0, None]), "bad_value: bundleStats.1.msgRateIn.1: "),
    "a total negative": (with_totals(msgRateIn=-1.0), "bad_value: bundleStats.1.totals.msgRateIn: "),
    "a total infinite": (with_totals(msgRateOut=float("inf")), "bad_value: bundleStats.1.totals.msgRateOut: "),
    "a total of null": (with_totals(topics=None), "bad_value: bundleStats.1.totals.topics: "),
    "no totals": (bundle_stats(LEFT, totals=None), "bad_value: bundleStats.1.totals: "),
    "nothing": (None, "bad_value: bundleStats.1: "),
}


def refusal(record: Any) -> str:
    with pytest.raises(WireError) as caught:
        decode_metric(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD)
    return str(caught.value)


@pytest.mark.parametrize("what", FLAWED)
def test_a_sweep_with_a_flawed_bundle_is_refused_whole(what: str) -> None:
    flawed, told = FLAWED[what]
    assert refusal(broker_sweep(bundleStats=[bundle_stats(RIGHT), flawed])).startswith(told)


def test_a_load_report_with_a_flawed_bundle_is_refused_whole() -> None:
    report = load_report()
    good = next(iter(report["lastStats"].values()))
    assert "lastStats" in refusal({**report, "lastStats": {RIGHT: good, LEFT: {**good, "msgRateIn": -1.0}}})
    assert refusal({**report, "lastStats": {RIGHT: good, IMPOSSIBLE: good}}).startswith("impossible_bundle: ")


def is_good(record: dict[str, Any]) -> bool:
    try:
        return decode_metric(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD) is not None
    except WireError:
        return False


@pytest.mark.parametrize(("second", "bundles", "missing"), [(LEFT, (LEFT, RIGHT), ()), (IMPOSSIBLE, (), (BROKER,))])
def test_a_broker_with_a_refused_chunk_has_no_data(
    second: str, bundles: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    chunks = [
        broker_sweep(bundleStats=[bundle_stats(name)], chunk=i, chunks=2) for i, name in enumerate((RIGHT, second))
    ]
    view = view_of([*filter(is_good, chunks), tick(partitions={"metrics": 1, "results": 0})])
    assert (view.bundles.names, view.missing) == (bundles, missing)
