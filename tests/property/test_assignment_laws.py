"""What the round robin keeps beyond the laws of every way to assign topics (controller/laws/assignment.py)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.laws.assignment import TOPIC_NAMES, Splitting, splittings
from controller.model.topic_name import partition_index
from controller.strategies.assignment.round_robin import RoundRobinTopicBundleAssigner


@given(given_split=splittings(), count=st.integers(1, 100), topic=TOPIC_NAMES)
def test_by_round_robin_no_bundle_has_two_partitions_more_than_another(
    given_split: Splitting, count: int, topic: str
) -> None:
    boundaries = given_split.new
    partitions = [f"persistent://acme/prod/{topic}-partition-{i}" for i in range(count)]
    assert [partition_index(name) for name in partitions] == list(range(count))
    rows = RoundRobinTopicBundleAssigner().assign(partitions, boundaries)
    of_bundle = np.bincount(rows, minlength=len(boundaries) - 1)
    assert of_bundle.max() - of_bundle.min() <= 1
