import time

import numpy as np
import pytest

from controller.model.names import default_boundaries
from controller.strategies.assignment.consistent_hashing import ConsistentHashingTopicBundleAssigner
from controller.strategies.assignment.round_robin import RoundRobinTopicBundleAssigner
from tests.topics import at

ASSIGNER, HASHING = RoundRobinTopicBundleAssigner(), ConsistentHashingTopicBundleAssigner()
FOUR = default_boundaries(4)


def partitions(count: int, topic: str = "persistent://acme/prod/t") -> list[str]:
    return [f"{topic}-partition-{i}" for i in range(count)]


def test_partition_0_lies_where_its_hash_says_and_the_others_follow_round_the_ring() -> None:
    rows = ASSIGNER.assign(partitions(6), FOUR).tolist()
    [first] = HASHING.assign(partitions(1), FOUR).tolist()
    assert rows == [(first + i) % 4 for i in range(6)]


def test_partitions_are_placed_alike_in_any_order_and_without_the_first_one() -> None:
    topics = partitions(6)
    rows = dict(zip(topics, ASSIGNER.assign(topics, FOUR).tolist(), strict=True))
    some = [topics[5], topics[2]]
    assert ASSIGNER.assign(some, FOUR).tolist() == [rows[topic] for topic in some]


def test_topics_begin_at_different_bundles() -> None:
    firsts = [partitions(1, f"persistent://acme/prod/t{i}")[0] for i in range(50)]
    assert set(ASSIGNER.assign(firsts, FOUR).tolist()) == {0, 1, 2, 3}


def test_a_topic_without_partitions_lies_where_its_hash_says() -> None:
    plain = ["persistent://acme/prod/t", "persistent://acme/prod/t-partition-03", "persistent://acme/prod/t-partition-"]
    plain += [
        "topic://acme/prod/t",
        "segment://acme/prod/t/0000-3fff-1",
        "segment://acme/prod/t-partition-3/0000-3fff-1",
    ]
    assert ASSIGNER.assign(plain, FOUR).tolist() == HASHING.assign(plain, FOUR).tolist()


def test_partitions_that_are_added_move_none() -> None:
    few, many = ASSIGNER.assign(partitions(6), FOUR), ASSIGNER.assign(partitions(60), FOUR)
    assert many[:6].tolist() == few.tolist()


def test_a_split_assigns_all_partitions_of_the_namespace_anew() -> None:
    topics, divided = partitions(100), (0, 1 << 29, *FOUR[1:])
    held = ASSIGNER.assign(topics, FOUR)
    rows, moved = ASSIGNER.on_bundle_split(topics, held, FOUR, divided)
    assert rows.tolist() == ASSIGNER.assign(topics, divided).tolist()
    assert np.bincount(rows, minlength=5).tolist() == [20] * 5
    assert 50 < len(moved) <= 100


def test_the_same_boundaries_change_nothing_even_where_the_topics_lie_otherwise() -> None:
    held = at(*[3] * 6)
    rows, moved = ASSIGNER.on_bundle_split(partitions(6), held, FOUR, FOUR)
    assert (rows is held, len(moved)) == (True, 0)


def test_50_000_partitions_are_assigned_in_one_pass() -> None:
    topics = [name for i in range(500) for name in partitions(100, f"persistent://acme/prod/topic-{i}")]
    before = time.process_time()
    ASSIGNER.assign(topics, default_boundaries(128))
    # It takes below half a second; comparing topics with each other would take hours.
    assert time.process_time() - before < 10


def test_no_bundle_holds_the_last_position_of_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.strategies.assignment.round_robin.crc32", lambda _: 0xFFFFFFFF)
    assert ASSIGNER.assign(partitions(2), FOUR).tolist() == [-1, -1]
