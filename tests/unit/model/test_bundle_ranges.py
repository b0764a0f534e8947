import pytest

from controller.model.bundle_ranges import divided, equal_cuts, with_split
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


def test_a_split_replaces_the_bundle_by_its_parts() -> None:
    assert with_split((0, 10, 20), 0, 10, (4,)) == (0, 4, 10, 20)
    assert with_split((0, 10, 20), 10, 20, (12, 15)) == (0, 10, 12, 15, 20)


def test_an_unknown_bundle_is_not_split() -> None:
    assert with_split((0, 10, 20), 0, 20, (4,)) is None
    assert with_split((0, 10, 20), 10, 15, (99,)) is None


def test_a_bundle_too_small_to_split_is_refused_even_if_unknown() -> None:
    with pytest.raises(TrimtabError, match="cannot be split further"):
        with_split((0, 10, 20), 5, 6, ())
