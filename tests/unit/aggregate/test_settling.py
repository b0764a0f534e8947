"""Which claims count: the order of their places in the log, and numbers larger than any cluster has."""

from dataclasses import fields
from typing import Any

import numpy as np

from controller.aggregate.columns.rows import BUNDLE
from controller.aggregate.waiting.settling import edge_of, mixed, settle
from controller.aggregate.waiting.waiting_rows import WaitingClaims
from controller.model.load import Ints


def whole(*numbers: int) -> Ints:
    return np.array(numbers, np.int64)


def test_of_records_at_the_same_offset_the_one_of_the_lower_source_is_first() -> None:
    places = np.array([[1, 0, 5], [0, 0, 5], [0, 1, 5]], np.int64)
    every, one = np.ones(3, np.bool_), (whole(7, 7, 7),)
    assert edge_of(every, one, places, first=True).tolist() == [False, True, False]
    assert edge_of(every, one, places, first=False).tolist() == [True, False, False]


def swept(bundles: Ints) -> WaitingClaims:
    """One broker's sweep of *bundles*, each with its number as its rate."""
    n = len(bundles)
    columns = {each.name: np.zeros(n, np.int64) for each in fields(WaitingClaims)}
    columns |= {"kind": np.full(n, BUNDLE), "bundle": bundles, "offset": np.arange(n)}
    stats = np.zeros((n, WaitingClaims.WIDE["stats"]))
    stats[:, 0] = bundles
    wide: dict[str, Any] = {"stats": stats, "kinds": np.ones(n, np.uint8), "topic": np.zeros((n, 3), np.int64)}
    detail = {"detail_position": whole(), "detail_load": np.empty((0, 4)), "detail_segment": whole()}
    return WaitingClaims(**columns | wide | detail)


def test_rows_with_other_keys_are_groups_of_their_own_also_where_their_mix_is_the_same() -> None:
    alone = mixed([np.array([1])]).view(np.uint64)
    keys = (np.array([0, 1]), np.append(0, (alone ^ (alone >> np.uint64(32))).view(np.int64)))
    assert len(set(mixed(keys).tolist())) == 1
    every, places = np.ones(2, np.bool_), np.zeros((2, 3), np.int64)
    assert edge_of(every, keys, places, first=True).tolist() == [True, True]
    assert edge_of(every, keys, places, first=False).tolist() == [True, True]


def test_bundles_ascend_however_large_their_numbers_are() -> None:
    for largest in (7, 1 << 30, 1 << 31, 1 << 40):
        # One row more than the roster, so the bundle's number is doubled where it is made one with its owner's.
        rank, sweeps, reports = whole(0, -1), whole(0, -1), np.full((2, 3), -1)
        found = settle(swept(whole(largest, 3, 5)), 0, rank, sweeps, reports)
        assert found.bundle.tolist() == [3, 5, largest]
        assert found.owner.tolist() == [0, 0, 0]


def test_a_sweep_of_a_broker_that_is_not_listed_counts_for_no_other_broker() -> None:
    # The last broker of the roster has the same sweep.
    rank, sweeps, reports = whole(-1, 0), whole(0), np.full((1, 3), -1)
    assert len(settle(swept(whole(3, 5)), 0, rank, sweeps, reports).bundle) == 0
