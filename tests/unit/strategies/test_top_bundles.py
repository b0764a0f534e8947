import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.load import RATE_IN, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from controller.strategies.common.top_bundles import TopBundles, rank, top
from tests.cluster import broker, view


def load(*, into: float = 0.0, out: float = 0.0, rate: float = 0.0) -> Floats:
    row = np.zeros((1, 4))
    row[0, [THROUGHPUT_IN, THROUGHPUT_OUT, RATE_IN]] = into, out, rate
    return row


def ranks(*rows: Floats, connections: tuple[int, ...] | None = None) -> list[int]:
    places: list[int] = rank(np.vstack(rows), np.array(connections or (0,) * len(rows), np.int64)).tolist()
    return places


def test_bundles_with_policies_are_reported_only_if_they_may_be_shed() -> None:
    table = view(broker("b", free=1, bound=2)).bundles
    bound = np.array([name == "bound" for name in table.names])
    assert TopBundles().reportable(table, bound).tolist() == [False, True]
    assert TopBundles(with_policies=True).reportable(table, bound).tolist() == [True, True]


@given(
    ranks=st.lists(st.integers(0, 8), max_size=40).map(lambda found: np.array(found, np.int64)), k=st.integers(0, 45)
)
def test_the_largest_ranks_are_taken_in_order_and_once(ranks: Ints, k: int) -> None:
    found = top(ranks, k)
    assert ranks[found].tolist() == sorted(ranks.tolist(), reverse=True)[:k]
    assert len(set(found.tolist())) == len(found)


@pytest.mark.parametrize("order", ["up", "down"])
def test_a_bad_order_does_not_make_the_partition_quadratic(order: str) -> None:
    ranks = np.arange(20_000) // 2
    ranks = ranks if order == "up" else ranks[::-1].copy()
    before = time.process_time()
    found = top(ranks, 10)
    assert time.process_time() - before < 5
    assert ranks[found].tolist() == [9_999 - i // 2 for i in range(10)]
