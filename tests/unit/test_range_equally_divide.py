import numpy as np

from controller.model.names import FULL_UPPER
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide

ALGORITHM = RangeEquallyDivide()


def cut(lower: int, upper: int) -> tuple[int, ...] | None:
    return ALGORITHM.boundaries(lower, upper, np.zeros(0, np.int64), np.zeros((0, 4)))


def test_a_range_is_cut_in_the_middle_rounded_down() -> None:
    assert cut(0, FULL_UPPER) == (0, 0x7FFFFFFF, FULL_UPPER)
    assert cut(0x40000000, 0x80000000) == (0x40000000, 0x60000000, 0x80000000)


def test_the_smallest_range_that_has_a_middle_is_cut() -> None:
    assert cut(1000, 1002) == (1000, 1001, 1002)
    assert cut(1000, 1001) is None


def test_topics_are_not_needed() -> None:
    assert not ALGORITHM.needs_topic_detail
    assert ALGORITHM.name == "range_equally_divide"
