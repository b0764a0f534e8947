"""Names in a sentence."""

import pytest

from controller.model.some_of import some_of


@pytest.mark.parametrize(
    ("names", "sentence"),
    [((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c"), "a, b and 1 more"), ("a" * 9, "a, a and 7 more")],
)
def test_a_few_names_are_given_and_the_others_counted(names: tuple[str, ...], sentence: str) -> None:
    assert some_of(names, 2) == sentence


def test_what_is_not_given_is_not_made_either() -> None:
    made: list[int] = []

    def shown(number: int) -> str:
        made.append(number)
        return f"#{number}"

    assert some_of(range(10**6), 2, between="; ", format_item=shown) == "#0; #1 and 999998 more"
    assert made == [0, 1]
