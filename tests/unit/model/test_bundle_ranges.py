import pytest

from controller.model.bundle_ranges import divided, equal_cuts, with_split
from controller.model.errors import TrimtabError


def test_equal_parts_are_rounded_down_and_the_last_takes_the_rest() -> None:
    assert equal_cuts(0, 10, 3) == (3, 6)
    assert equal_cuts(100, 110, 1) == ()


def test_cuts_in_any_order_make_boundaries() -> None:
    assert divided(0, 10, (7, 2)) == (0, 2, 7, 10)


@pytest.mark.parametrize(
    ("lower", "upper", "cuts", "why"),
    [
        (0, 10, (0,), "not inside of it"),
        (0, 10, (10,), "not inside of it"),
        (0, 10, (3, 3), "or twice"),
        (5, 6, (), "cannot be split further"),
    ],
)
def test_cuts_that_cannot_be_made_are_refused(lower: int, upper: int, cuts: tuple[int, ...], why: str) -> None:
    with pytest.raises(TrimtabError, match=why):
        divided(lower, upper, cuts)


def test_a_namespace_gets_the_parts_in_place_of_the_bundle() -> None:
    assert with_split((0, 10, 20), 0, 10, (4,)) == (0, 4, 10, 20)
    assert with_split((0, 10, 20), 10, 20, (12, 15)) == (0, 10, 12, 15, 20)


def test_a_bundle_that_the_namespace_does_not_have_changes_nothing() -> None:
    assert with_split((0, 10, 20), 0, 20, (4,)) is None
    assert with_split((0, 10, 20), 10, 15, (99,)) is None


def test_a_bundle_without_room_is_refused_whether_or_not_the_namespace_has_it() -> None:
    with pytest.raises(TrimtabError, match="cannot be split further"):
        with_split((0, 10, 20), 5, 6, ())
