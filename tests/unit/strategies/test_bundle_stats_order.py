import numpy as np

from controller.model.load import Floats, Ints
from controller.strategies.common.bundle_stats_order import ascending, average_keys, stats_keys
from tests.bundle_order import compare

KB = 1000


def average(*, rate: float = 0, thr_in: float = 0, thr_out: float = 0) -> Ints:
    return average_keys(_load(rate, thr_in, thr_out))


def stats(*, rate: float = 0, thr_in: float = 0, thr_out: float = 0, connections: int = 0, cache: int = 0) -> Ints:
    return stats_keys(_load(rate, thr_in, thr_out), np.array([connections]), np.array([cache]))


def _load(rate: float, thr_in: float, thr_out: float) -> Floats:
    return np.array([[rate / 2, rate / 2, thr_in, thr_out]])


def order(a: Ints, b: Ints) -> int:
    assert compare(b, a).tolist() == (-compare(a, b)).tolist()
    return int(compare(a, b)[0])


def test_what_is_beyond_a_long_of_javas_is_its_largest_double_and_what_is_no_number_is_0() -> None:
    for huge in (2.0**63 * 1e6, 1e300, np.inf):
        [[thr_in, thr_out, rate]] = average(thr_in=huge, thr_out=-huge, rate=np.nan).tolist()
        assert (thr_in, thr_out, rate) == (2**63 - 1024, -(2**63) + 1024, 0)


def test_nan_counts_as_zero_and_too_large_values_as_the_largest_long() -> None:
    assert order(average(rate=np.nan), average()) == 0
    assert order(stats(rate=np.nan), stats()) == 0
    assert order(stats(rate=1e300), stats(rate=1e299)) == 0


def test_rows_are_sorted_ascending_and_equal_rows_keep_their_order() -> None:
    keys = np.concatenate(
        [stats(thr_in=300 * KB), stats(thr_in=100 * KB, rate=900), stats(thr_in=100 * KB, rate=930), stats()]
    )
    assert ascending(keys).tolist() == [3, 1, 2, 0]
