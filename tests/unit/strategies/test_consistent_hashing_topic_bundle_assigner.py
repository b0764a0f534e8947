import numpy as np

from controller.model.names import FULL_UPPER, default_boundaries, find_bundle, topic_hash
from controller.strategies.assignment.consistent_hashing import ConsistentHashingTopicBundleAssigner
from controller.strategies.common.ring import bundles_at

ASSIGNER = ConsistentHashingTopicBundleAssigner()
TOPICS = [f"persistent://acme/prod/t-{i}" for i in range(200)]
FOUR, EIGHT = default_boundaries(4), default_boundaries(8)


def test_a_topic_lies_in_the_bundle_that_holds_its_hash() -> None:
    rows = ASSIGNER.assign(TOPICS, FOUR).tolist()
    assert [(FOUR[row], FOUR[row + 1]) for row in rows] == [find_bundle(FOUR, topic_hash(topic)) for topic in TOPICS]


def test_the_last_place_of_the_ring_has_no_bundle_and_a_boundary_begins_one() -> None:
    places = np.array([0, FOUR[1] - 1, FOUR[1], FULL_UPPER - 1, FULL_UPPER])
    assert bundles_at(places, FOUR).tolist() == [0, 0, 1, 3, -1]


def test_without_topics_there_is_nothing_to_assign() -> None:
    assert ASSIGNER.assign([], FOUR).tolist() == []


def test_a_split_moves_the_topics_of_the_bundle_that_was_divided_and_no_other() -> None:
    divided = (0, 1 << 29, *FOUR[1:])
    held = ASSIGNER.assign(TOPICS, FOUR)
    rows, moved = ASSIGNER.on_bundle_split(TOPICS, held, FOUR, divided)
    assert rows.tolist() == ASSIGNER.assign(TOPICS, divided).tolist()
    assert moved.tolist() == np.flatnonzero(held == 0).tolist()
    assert len(moved)


def test_the_same_boundaries_change_nothing() -> None:
    held = ASSIGNER.assign(TOPICS, EIGHT)
    rows, moved = ASSIGNER.on_bundle_split(TOPICS, held, EIGHT, [*EIGHT])
    assert rows is held
    assert len(moved) == 0
