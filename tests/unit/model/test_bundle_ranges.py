import pytest

from controller.model.bundle_ranges import divided, equal_cuts
from controller.model.errors import TrimtabError


def test_equal_parts_are_rounded_down_and_the_last_part_gets_the_remainder() -> None:
    assert equal_cuts(0, 10, 3) == (3, 6)
    assert equal_cuts(100, 110, 1) == ()


def test_cuts_in_any_order_give_sorted_boundaries() -> None:
    assert divided(0, 10, (7, 2)) == (0, 2, 7, 10)


@pytest.mark.parametrize(
    ("lower", "upper", "cuts", "why"),
    [
        (0, 10, (0,), "must lie inside the range"),
        (0, 10, (10,), "must lie inside the range"),
        (0, 10, (3, 3), "only once"),
        (5, 6, (), "cannot be split further"),
    ],
)
def test_impossible_cuts_are_refused(lower: int, upper: int, cuts: tuple[int, ...], why: str) -> None:
    with pytest.raises(TrimtabError, match=why):
        divided(lower, upper, cuts)
