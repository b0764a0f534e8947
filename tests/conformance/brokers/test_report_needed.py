from typing import Any

import numpy as np
import pytest

from tests.conformance.brokers.report_needed import ReportedLoad, ReportUpdate

UPDATE = ReportUpdate(threshold_percent=10, max_interval_minutes=15)
MINUTE = 60_000


def load(*, rate: float = 100, throughput: float = 100, bundles: int = 100, cpu: float = 50) -> ReportedLoad:
    usage = np.zeros((1, 5))
    usage[0, 0] = cpu
    return ReportedLoad(
        load=np.array([[rate / 2, rate / 2, throughput / 2, throughput / 2]], np.float64),
        bundles=np.array([bundles]),
        usage=usage,
        limit=np.full((1, 5), 100.0),
    )


def needed(now: ReportedLoad, *, last: ReportedLoad | None = None, age_ms: int = 0) -> bool:
    return bool(UPDATE.needed(last or load(), now, np.array([age_ms]))[0])


@pytest.mark.parametrize("what", ["rate", "throughput", "bundles"])
def test_a_change_by_more_than_the_threshold_is_reported_up_or_down(what: str) -> None:
    changes: list[dict[str, Any]] = [{what: 110}, {what: 90}, {what: 111}, {what: 89}]
    assert [needed(load(**change)) for change in changes] == [False, False, True, True]


def test_usage_counts_by_percentage_points() -> None:
    assert [needed(load(cpu=cpu)) for cpu in (41, 59, 61, 39)] == [False, False, True, True]
    assert not needed(load(cpu=10), last=load(cpu=1))


def test_a_change_from_zero_is_always_reported() -> None:
    assert needed(load(rate=0.001), last=load(rate=0))
    assert not needed(load(rate=0), last=load(rate=0))


def test_a_report_older_than_the_maximum_is_due() -> None:
    assert not needed(load(), age_ms=15 * MINUTE)
    assert needed(load(), age_ms=15 * MINUTE + 1)


def test_each_broker_is_judged_alone() -> None:
    two = [load(rate=100), load(rate=200)]
    now = ReportedLoad(
        load=np.concatenate([one.load for one in two]),
        bundles=np.array([100, 100]),
        usage=np.concatenate([one.usage for one in two]),
        limit=np.full((2, 5), 100.0),
    )
    last = ReportedLoad(load=now.load[[0, 0]], bundles=now.bundles, usage=now.usage, limit=now.limit)
    assert UPDATE.needed(last, now, np.array([0, 0])).tolist() == [False, True]


def test_nan_load_does_not_make_a_report_due() -> None:
    assert not needed(load(rate=np.nan))
