import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.load import RATE_OUT, THROUGHPUT_OUT
from controller.strategies.splitting.hot_topic_isolation import HotTopic, HotTopicIsolation, isolating
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import MB
from tests.topics import NO_LOAD, NO_POSITIONS, at, loads

HALVES = RangeEquallyDivide()
ISOLATION = HotTopicIsolation(hot=HotTopic(percent=60), otherwise=HALVES)
MIDDLE = (500,)


def cuts(topics: dict[int, float], algorithm: HotTopicIsolation = ISOLATION) -> tuple[int, ...] | Reason:
    """Given position and MB/s of each topic."""
    return algorithm.cuts(0, 1000, at(*topics), loads(topics.values()))


def test_a_hot_topic_gets_a_bundle_of_its_own() -> None:
    assert cuts({100: 1, 700: 9, 900: 1}) == (700, 701)


def test_a_topic_is_hot_from_its_share_on() -> None:
    assert cuts({100: 40, 700: 60}) == (700, 701)
    assert cuts({100: 41, 700: 59}) == MIDDLE


def test_a_share_of_the_messages_makes_hot_as_well() -> None:
    assert ISOLATION.cuts(0, 1000, at(100, 700), loads([5, 5], msg_rates=[900, 100])) == (100, 101)


def test_what_comes_in_and_what_goes_out_count_together() -> None:
    for out in (THROUGHPUT_OUT, RATE_OUT):
        load = loads([5, 5])
        load[:, out] = np.array([9, 1]) * (MB if out == THROUGHPUT_OUT else 1)
        assert ISOLATION.cuts(0, 1000, at(100, 700), load) == (100, 101)


def test_of_two_topics_as_hot_the_lower_one_is_isolated() -> None:
    half = HotTopicIsolation(hot=HotTopic(percent=50), otherwise=HALVES)
    assert cuts({700: 5, 100: 5}, half) == (100, 101)


def test_at_the_end_of_a_bundle_one_cut_is_enough() -> None:
    assert cuts({0: 9, 500: 1}) == (1,)
    assert cuts({999: 9, 500: 1}) == (999,)


def test_topics_at_one_place_count_together_and_alone_they_cannot_be_isolated() -> None:
    assert ISOLATION.cuts(0, 1000, at(700, 700, 100), loads([3, 3, 4])) == (700, 701)
    assert ISOLATION.cuts(0, 1000, at(700, 700), loads([3, 3])) is Reason.TOO_FEW_TOPICS


def test_without_load_or_detail_no_topic_is_hot() -> None:
    assert cuts({100: 0, 700: 0}) == MIDDLE
    assert ISOLATION.cuts(0, 1000, NO_POSITIONS, NO_LOAD) == MIDDLE


def test_detail_is_waited_for_as_a_cut_without_it_might_only_move_the_hot_topic() -> None:
    assert ISOLATION.needs_topic_detail
    assert ISOLATION.name == "range_equally_divide"
    for percent, waits in ((0, False), (1, True)):
        assert HotTopicIsolation(hot=HotTopic(percent=percent), otherwise=HALVES).needs_topic_detail is waits


def test_a_topic_can_be_hot_with_less_than_a_message_or_a_byte_a_second() -> None:
    assert ISOLATION.cuts(0, 1000, at(100, 700), loads([0, 0], msg_rates=[0.09, 0.01])) == (100, 101)
    assert ISOLATION.cuts(0, 1000, at(100, 700), loads([9e-8, 1e-8], msg_rates=[0, 0])) == (100, 101)
    assert ISOLATION.cuts(0, 1000, at(100, 700), loads([0, 0], msg_rates=[0, 0])) == MIDDLE


@pytest.mark.parametrize("percent", [0, 60])
def test_it_is_not_there_unless_a_share_is_set(percent: int) -> None:
    assert (isolating(HotTopic(percent=percent), HALVES) is HALVES) is (percent == 0)


def test_without_load_no_topic_is_hot_however_small_the_share_is() -> None:
    anything = HotTopicIsolation(hot=HotTopic(percent=-1), otherwise=HALVES)
    assert anything.cuts(0, 1000, at(100, 700), loads([0, 0])) == MIDDLE
