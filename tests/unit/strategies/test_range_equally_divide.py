import numpy as np

from controller.model.decision import Reason
from controller.model.names import FULL_UPPER
from controller.strategies.common.cutting import cut
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import Broker, bundle, view

ALGORITHM = RangeEquallyDivide()


def cuts(lower: int, upper: int) -> tuple[int, ...] | Reason:
    return ALGORITHM.cuts(lower, upper, np.zeros(0, np.int64), np.zeros((0, 4)))


def test_a_range_is_cut_in_the_middle_rounded_down() -> None:
    assert cuts(0, FULL_UPPER) == (0x7FFFFFFF,)
    assert cuts(0x40000000, 0x80000000) == (0x60000000,)


def test_the_smallest_range_that_has_a_middle_is_cut() -> None:
    assert cuts(1000, 1002) == (1001,)


def test_a_range_without_a_middle_is_not_cut() -> None:
    tiny = "acme/test/0x000003e8_0x000003e9"
    found = cut(view(Broker("b", cpu=0.5, bundles={tiny: bundle(topics=5000)})), 0, ALGORITHM)
    assert str(found) == f"{tiny}: RangeTooSmall"


def test_topics_are_not_needed() -> None:
    assert not ALGORITHM.needs_topic_detail
    assert ALGORITHM.name == "range_equally_divide"
