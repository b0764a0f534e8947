"""Laws that hold for every way to assign topics to bundles; a new one is under them at once."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.names import FULL_UPPER
from controller.model.topic_name import partition_index
from controller.strategies.assignment.round_robin import RoundRobinTopicBundleAssigner
from controller.strategies.catalogue import ASSIGNMENTS

_inner = st.sets(st.integers(1, FULL_UPPER - 1), max_size=12)
_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def _ring(inner: set[int]) -> tuple[int, ...]:
    return (0, *sorted(inner), FULL_UPPER)


@st.composite
def topics_of_a_namespace(draw: st.DrawFn) -> list[str]:
    """Topics without partitions, and all partitions of others."""
    found = []
    for name in sorted(draw(st.sets(_names, max_size=6))):
        count = draw(st.integers(0, 20))
        full = f"persistent://acme/prod/{name}"
        found += [f"{full}-partition-{i}" for i in range(count)] or [full]
    return found


_boundaries = _inner.map(_ring)


@pytest.mark.parametrize("name", ASSIGNMENTS)
@given(topics=topics_of_a_namespace(), boundaries=_boundaries)
def test_every_topic_has_one_bundle_and_always_the_same(
    name: str, topics: list[str], boundaries: Sequence[int]
) -> None:
    rows = ASSIGNMENTS[name]().assign(topics, boundaries)
    assert rows.shape == (len(topics),)
    assert ((rows >= 0) & (rows < len(boundaries) - 1)).all()
    assert rows.tolist() == ASSIGNMENTS[name]().assign(topics, boundaries).tolist()
    one_by_one = [int(ASSIGNMENTS[name]().assign([topic], boundaries)[0]) for topic in topics]
    assert rows.tolist() == one_by_one


@pytest.mark.parametrize("name", ASSIGNMENTS)
@given(topics=topics_of_a_namespace(), before=_inner, cuts=_inner)
def test_after_a_split_topics_lie_where_they_would_have_and_who_moves_has_another_range(
    name: str, topics: list[str], before: set[int], cuts: set[int]
) -> None:
    old, new = _ring(before), _ring(before | cuts)
    assigner = ASSIGNMENTS[name]()
    held = assigner.assign(topics, old)
    rows, moved = assigner.on_bundle_split(topics, held, old, new)
    assert rows.tolist() == assigner.assign(topics, new).tolist()
    ranges = [(old[a : a + 2], new[b : b + 2]) for a, b in zip(held.tolist(), rows.tolist(), strict=True)]
    assert moved.tolist() == [row for row, (was, now) in enumerate(ranges) if was != now]


@given(boundaries=_boundaries, count=st.integers(1, 100), topic=_names)
def test_by_round_robin_no_bundle_has_two_partitions_more_than_another(
    boundaries: Sequence[int], count: int, topic: str
) -> None:
    partitions = [f"persistent://acme/prod/{topic}-partition-{i}" for i in range(count)]
    assert [partition_index(name) for name in partitions] == list(range(count))
    rows = RoundRobinTopicBundleAssigner().assign(partitions, boundaries)
    of_bundle = np.bincount(rows, minlength=len(boundaries) - 1)
    assert of_bundle.max() - of_bundle.min() <= 1
