import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.load import RATE_IN, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from controller.strategies.common.top_bundles import TopBundles, rank, top
from tests.cluster import Bundle, broker, bundle, view


def load(*, into: float = 0.0, out: float = 0.0, rate: float = 0.0) -> Floats:
    row = np.zeros((1, 4))
    row[0, [THROUGHPUT_IN, THROUGHPUT_OUT, RATE_IN]] = into, out, rate
    return row


def ranks(*rows: Floats, connections: tuple[int, ...] | None = None) -> list[int]:
    places: list[int] = rank(np.vstack(rows), np.array(connections or (0,) * len(rows), np.int64)).tolist()
    return places


def reported(limits: TopBundles, **bundles: float) -> list[str]:
    table = view(broker("b", **bundles)).bundles
    return [table.names[row] for row in limits.of(table, np.flatnonzero(limits.reportable(table))).tolist()]


def test_bundles_without_traffic_and_pulsars_own_are_not_reported() -> None:
    own = ("pulsar/system", "pulsar/b:8080", "pulsar/c/b:8080", "sla-monitor/c/b:8080")
    bundles = {f"{namespace}/0x00000000_0xffffffff": 100 for namespace in own}
    assert reported(TopBundles(), idle=0, busy=1, **bundles) == ["busy"]


def test_bundles_with_policies_are_reported_only_if_they_may_be_shed() -> None:
    table = view(broker("b", free=1, bound=2)).bundles
    bound = np.array([name == "bound" for name in table.names])
    assert TopBundles().reportable(table, bound).tolist() == [False, True]
    assert TopBundles(with_policies=True).reportable(table, bound).tolist() == [True, True]


def test_of_equal_bundles_those_are_taken_that_pulsars_partition_leaves_first() -> None:
    # The last one is the pivot; all others equal it, so they keep their places and the first ones are taken.
    assert top(np.zeros(4, np.int64), 2).tolist() == [0, 1]
    # The last one, 2, swaps places with the first 1, which then lies behind the second 1.
    assert top(np.array([1, 1, 2]), 2).tolist() == [2, 1]
    # The 0 swaps places with the last 1, which then lies before the other 1.
    assert top(np.array([0, 1, 1]), 1).tolist() == [2]


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


def test_after_64_rounds_all_that_is_left_is_sorted() -> None:
    # Each round takes the smallest one off the end; then the largest one is the last that is left.
    assert top(np.array([70, 70, 100, *range(63, -1, -1)]), 2).tolist() == [2, 0]


def test_current_traffic_counts_not_averages() -> None:
    table = view(broker("b", a=bundle(5), b=bundle(1))).bundles
    assert table.load[TopBundles(max_bundles=1).of(table, np.arange(2)), THROUGHPUT_IN].tolist() == [5 * 1024 * 1024]


def test_topics_producers_and_consumers_count_together_by_500() -> None:
    def order(a: Bundle, b: Bundle) -> list[str]:
        table = view(broker("b", a=a, b=b)).bundles
        return [table.names[row] for row in TopBundles().of(table, np.arange(len(table))).tolist()]

    light = bundle(1, topics=499)
    for heavy in (
        bundle(1, topics=500),
        bundle(1, topics=498, producers=1, consumers=1),
        bundle(1, topics=0, producers=500),
        bundle(1, topics=0, consumers=500),
    ):
        assert order(a=light, b=heavy) == ["a", "b"]
        assert order(a=heavy, b=light) == ["b", "a"]
    # Of equals the first one is reported before the others, so it comes last.
    assert order(a=light, b=bundle(1, topics=0, producers=200, consumers=299)) == ["b", "a"]
