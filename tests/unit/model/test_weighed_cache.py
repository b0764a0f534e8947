"""A cache that is bounded by what it holds."""

from controller.model.java_regex import expressions
from controller.model.weighed_cache import WeighedCache


class Made:
    """Makes a text of a number, and counts how often."""

    def __init__(self) -> None:
        self.of = list[int]()

    def __call__(self, number: int) -> str:
        self.of.append(number)
        return "x" * number

    def cache(self, most: int) -> WeighedCache[int, str]:
        return WeighedCache(self, weigh=lambda _, text: len(text), most=most)


def test_what_fits_is_made_once() -> None:
    made = Made()
    cache = made.cache(100)
    for _ in range(3):
        assert [cache(number) for number in (10, 20, 5)] == ["x" * 10, "x" * 20, "x" * 5]
    assert made.of == [10, 20, 5]


def test_what_was_not_used_lately_goes_and_what_was_stays() -> None:
    made = Made()
    cache = made.cache(100)
    for number in (10, 11, 12, 10, 13, 10, 14, 10, 15, 10, 16, 10, 17, 10):
        cache(number)
    assert made.of.count(10) == 1
    cache(11)
    assert made.of.count(11) == 2


def test_half_of_what_may_be_held_is_kept_before_the_other_half_goes() -> None:
    cache = Made().cache(100)
    for number in (20, 30, 40):
        cache(number)
    assert len(cache) == 3
    assert [cache(number) for number in (45,)] == ["x" * 45]
    assert len(cache) == 2


def test_no_more_is_held_than_is_allowed_and_what_is_too_large_alone_goes_with_the_next_ones() -> None:
    made = Made()
    cache = made.cache(100)
    held = list[int]()
    for number in range(1, 51):
        cache(number)
        held.append(len(cache))
    assert held[5] == 6, "of small ones more"
    assert held[-1] == 2
    assert cache(70) == "x" * 70
    cache(49)
    cache(50)
    assert len(cache) == 2


def test_lists_of_expressions_are_kept_by_their_length_and_not_by_their_number() -> None:
    long = ("(a|b)" + "x" * 900,) * 1_000
    for number in range(6):
        expressions((f"{number}", *long))
    assert len(expressions) == 2, "six would come to 200 MB, were they as different as they may be"
    one = expressions(("only", "these"))
    assert expressions(("only", "these")) is one
