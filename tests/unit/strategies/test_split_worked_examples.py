"""The worked example of StreamNative's article on Pulsar's load balancing: two algorithms on one bundle."""

from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.topic_count_equally_divide import TopicCountEquallyDivide
from tests.conformance.brokers.split_bundles import with_split
from tests.topics import NO_LOAD, NO_POSITIONS, at

BUNDLES = (0x0000, 0x8000, 0xFFFF)
TOPICS = at(0x0000, 0x0005, 0x0010, 0x0015, 0x0020, 0x0025)


def test_the_middle_of_0x0000_to_0x8000_is_0x4000() -> None:
    assert RangeEquallyDivide().cuts(0x0000, 0x8000, NO_POSITIONS, NO_LOAD) == (0x4000,)


def test_three_of_six_topics_lie_on_either_side_of_0x0012() -> None:
    assert TopicCountEquallyDivide().cuts(0x0000, 0x8000, TOPICS, NO_LOAD) == (0x0012,)
    assert (TOPICS < 0x0012).sum() == 3


def test_after_the_split_at_0x4000_the_namespace_has_three_bundles() -> None:
    assert with_split(BUNDLES, 0x0000, 0x8000, (0x4000,)) == (0x0000, 0x4000, 0x8000, 0xFFFF)
