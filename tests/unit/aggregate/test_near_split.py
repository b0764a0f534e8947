"""Topics one by one are given to the driver in bounded numbers, and every bundle gets its turn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.shard.closing import topics_for_splits
from controller.aggregate.waiting.settling import Loads
from controller.model.load import TopicDetail
from tests.records import PERIOD, T

NEAR_FROM = 2


def loads_of(sizes: list[int]) -> Loads:
    """A bundle of each size, whose topics are numbered through."""
    count, total = len(sizes), sum(sizes)
    zeros = np.zeros(count, np.int64)
    return Loads(
        bundle=np.arange(count), owner=zeros, load=np.zeros((count, 4)), kinds=np.ones(count, np.uint8),
        topics=np.array(sizes, np.int64), producers=zeros, consumers=zeros,
        detail=TopicDetail.of(np.array(sizes, np.int64), np.arange(total), np.arange(4.0 * total).reshape(-1, 4)),
    )  # fmt: skip


def detail(sizes: list[int], most: int | None, interval: int = T) -> dict[str, np.ndarray]:
    return topics_for_splits(loads_of(sizes), np.array(sizes, np.int64) >= NEAR_FROM, most, interval)


@pytest.mark.parametrize("most", [None, 10, 9])
def test_where_all_fit_every_bundle_near_a_split_has_its_topics(most: int | None) -> None:
    found = detail([4, 1, 5], most)
    assert found["detail_size"].tolist() == [4, 0, 5]
    assert found["detail_position"].tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert found["detail_load"].tolist() == np.arange(40.0).reshape(-1, 4)[[0, 1, 2, 3, 5, 6, 7, 8, 9]].tolist()


def test_where_more_are_near_each_comes_whole_or_not_at_all() -> None:
    sizes = [4, 3, 5, 2]
    for number in range(20):
        found = detail(sizes, 8, T + number * PERIOD)
        kept = found["detail_size"].tolist()
        assert 0 < sum(kept) <= 8
        assert all(given in (0, size) for given, size in zip(kept, sizes, strict=True))
        starts = np.cumsum([0, *sizes])
        expected = [topic for row, size in enumerate(kept) for topic in range(starts[row], starts[row] + size)]
        assert found["detail_position"].tolist() == expected


def test_as_many_come_as_there_may_be() -> None:
    assert {int(detail([2] * 5, 4, T + number * PERIOD)["detail_size"].sum()) for number in range(10)} == {4}


def test_each_bundle_has_its_turn_also_where_some_are_never_split() -> None:
    turns = np.zeros(50)
    for number in range(400):
        turns += detail([10] * 50, 100, T + number * PERIOD)["detail_size"] > 0
    assert turns.min() > 0.3 * turns.mean()


def test_a_bundle_of_more_topics_than_all_may_have_comes_alone() -> None:
    found = {tuple(detail([30, 20], 10, T + number * PERIOD)["detail_size"].tolist()) for number in range(30)}
    assert found == {(30, 0), (0, 20)}


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(1, 30), st.integers(-(2**62), 2**62))
def test_the_same_interval_gives_the_same_topics_and_never_too_many(sizes: list[int], most: int, interval: int) -> None:
    found = detail(sizes, most, interval)
    assert found["detail_size"].tolist() == detail(sizes, most, interval)["detail_size"].tolist()
    near = [size for size in sizes if size >= NEAR_FROM]
    assert found["detail_size"].sum() <= max(most, max(near, default=0))
    assert bool(found["detail_size"].sum()) == bool(near)


def test_segments_with_load_come_from_every_bundle_behind_the_topics_near_a_split() -> None:
    """Two bundles near a split, and two with a segment, one of which has no load: it was sealed."""
    loads = loads_of([2, 1, 3, 1])
    detail = loads.detail
    segment = np.array([0, 0, 7, 0, 0, 0, 8])
    load = np.where(np.arange(7)[:, None] == 6, 0.0, 1.0) * np.ones((7, 4))
    loads = replace(loads, detail=TopicDetail.of(detail.sizes, detail.position, load, segment))
    near = np.array([True, False, True, False])
    assert topics_for_splits(loads, near, None, T)["detail_size"].tolist() == [2, 1, 3, 0]
    assert topics_for_splits(loads, near, None, T)["detail_segment"].tolist() == [0, 0, 7, 0, 0, 0]
    assert topics_for_splits(loads, near, 6, T)["detail_size"].tolist() == [2, 1, 3, 0]
    assert topics_for_splits(loads, near, 5, T)["detail_size"].tolist() == [2, 0, 3, 0]
