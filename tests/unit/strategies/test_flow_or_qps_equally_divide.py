import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT
from controller.strategies.splitting.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from tests.cluster import MB
from tests.topics import at, loads

BY_BYTES = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=10, max_msg_rate=1_000_000, difference_percent=10)


def cuts(
    topics: dict[int, float] | list[tuple[int, float]], algorithm: FlowOrQpsEquallyDivide = BY_BYTES
) -> tuple[int, ...] | Reason:
    """Given position and MB/s of each topic."""
    pairs = list(topics.items()) if isinstance(topics, dict) else topics
    return algorithm.cuts(0, 1000, at(*(place for place, _ in pairs)), loads(mbytes for _, mbytes in pairs))


def test_a_cut_is_made_before_the_topic_that_would_pass_the_limit() -> None:
    assert cuts({100: 4, 200: 4, 300: 4}) == (251,)
    assert cuts({300: 4, 100: 4, 200: 4}) == (251,)


def test_a_bundle_is_cut_into_as_many_as_it_takes() -> None:
    assert cuts({100: 9, 200: 9, 300: 9, 400: 1}) == (151, 251)


def test_topics_that_come_to_just_the_limit_are_not_parted() -> None:
    assert cuts({100: 6, 200: 4, 300: 2}) == (251,)
    by_messages = FlowOrQpsEquallyDivide(max_msg_rate=10, max_bandwidth_mbytes=1000)
    assert cuts({100: 6, 200: 4, 300: 2}, by_messages) == (251,)


def test_a_topic_beyond_the_limit_stands_alone() -> None:
    assert cuts({100: 1, 200: 50, 300: 1}) == (151, 251)


def test_messages_are_limited_like_bytes() -> None:
    by_messages = FlowOrQpsEquallyDivide(max_msg_rate=10, max_bandwidth_mbytes=1000)
    assert cuts({100: 9, 200: 9}, by_messages) == (151,)


def test_a_bundle_must_be_above_a_limit_by_the_difference() -> None:
    assert cuts({100: 5.4, 200: 5.5}) is Reason.BELOW_MINIMUM
    assert cuts({100: 5.5, 200: 5.6}) == (151,)
    assert cuts({100: 5.5, 200: 5.495}) is Reason.BELOW_MINIMUM


@pytest.mark.parametrize(("column", "unit"), [(RATE_IN, 1.0), (THROUGHPUT_IN, float(MB))])
def test_a_bundle_that_is_just_as_far_above_a_limit_as_it_must_be_is_cut(column: int, unit: float) -> None:
    algorithm = FlowOrQpsEquallyDivide(max_msg_rate=10, max_bandwidth_mbytes=10, difference_percent=50)
    load = np.zeros((2, 4))
    load[:, column] = 7.5 * unit, 7.25 * unit
    assert algorithm.cuts(0, 1000, at(100, 200), load) is Reason.BELOW_MINIMUM
    load[:, column] = 7.5 * unit, 7.5 * unit
    assert algorithm.cuts(0, 1000, at(100, 200), load) == (151,)


@pytest.mark.parametrize("column", [RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT])
def test_what_goes_out_counts_like_what_comes_in(column: int) -> None:
    algorithm = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=10, max_msg_rate=10 * MB, difference_percent=10)
    load = np.full((2, 4), 2.0 * MB)
    load[:, column] = [4.0 * MB, 4.0 * MB]
    assert algorithm.cuts(0, 1000, at(100, 200), load) == (151,)
    load[:, column] = [3.0 * MB, 3.0 * MB]
    assert algorithm.cuts(0, 1000, at(100, 200), load) is Reason.BELOW_MINIMUM


def test_topics_without_load_do_not_count() -> None:
    assert cuts({100: 50, 200: 0}) is Reason.TOO_FEW_TOPICS
    assert cuts({100: 6, 150: 0, 200: 6}) == (151,)


def test_of_topics_at_one_place_pulsar_counts_the_last_for_each_and_the_fixed_form_each_once() -> None:
    fixed = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=10, max_msg_rate=1_000_000, fixed=True)
    collision = [(100, 1.0), (100, 9.0), (200, 3.0)]
    assert cuts(collision) == (101, 151)  # 9 + 9, and 9 + 3
    assert cuts(collision, fixed) == (151,)  # 10 + 3
    assert cuts([(100, 20.0), (100, 1.0), (200, 2.0)]) is Reason.BELOW_MINIMUM  # 1 + 1 + 2
    assert cuts([(100, 20.0), (100, 1.0), (200, 2.0)], fixed) == (151,)
