"""What is told of a value that is not of the type that a dataclass says, at both sides of every limit."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from controller.cycle.typed import misfit, misfit_of_all, quoted

MOST: Final = 2**63 - 1


@dataclass
class Pair:
    one: int
    other: tuple[str, float] | None = None


#: A class that is called as a built-in one, and cannot do what that can.
UNSPEAKABLE: Final = type("dict", (), {})()


FITS: Final[list[tuple[Any, Any]]] = [
    *((number, int) for number in (0, MOST, -MOST - 1)),
    *((number, float) for number in (1.5, 1, MOST, float("nan"), np.float64(2.5))),
    (None, str | None),
    ("a", str | None),
    (UNSPEAKABLE, Any),
    ("b", Literal["a", "b"]),
    ((1, "a"), tuple[int, str]),
    ((1, 2, 3), tuple[int, ...]),
    ({"a": 1}, Mapping[str, int]),
    ({"a": 1}, dict[str, int]),
    ({}, MutableMapping[str, int]),
    (Pair(1, ("a", 2.0)), Pair),
    (Pair(1), Pair),
]


FAULTY: Final[list[tuple[Any, Any, str]]] = [
    (True, int, "it is True (bool), and int is expected"),
    (MOST + 1, int, f"it is {MOST + 1} (int), and a number of 64 bits is expected"),
    (-MOST - 2, int, f"it is {-MOST - 2} (int), and a number of 64 bits is expected"),
    (1, str | None, "it is 1 (int), and str or NoneType is expected"),
    ("c", Literal["a", "b"], "it is 'c' (str), and 'a' is expected"),
    ([1, "a"], tuple[int, str], "it is [1, 'a'] (list), and a tuple is expected"),
    ((1,), tuple[int, str], "it is (1,) (tuple), and a tuple of 2 is expected"),
    ((1, 2), tuple[int, str], "it is 2 (int), and str is expected"),
    ((1, "a"), tuple[int, ...], "it is 'a' (str), and int is expected"),
    ({1: 1}, Mapping[str, int], "a key of it is 1 (int), and str is expected"),
    ({"a": "b"}, Mapping[str, int], "it is 'b' (str), and int is expected"),
    ({"a": "b"}, dict[str, int], "it is 'b' (str), and int is expected"),
    ([], dict[str, int], "it is [] (list), and a dict is expected"),
    ("some \ud800 text", str, r"it is '\ud800' (str), and text that UTF-8 can hold is expected"),
    (Pair("a"), Pair, "it.one is 'a' (str), and int is expected"),  # type: ignore[arg-type]
    (UNSPEAKABLE, int, "it is a dict, and int is expected"),
]


def test_a_value_of_the_type_fits_and_of_any_other_it_is_told_what_is_wrong() -> None:
    assert [(value, hint) for value, hint in FITS if misfit(value, hint, "it") is not None] == []
    told = [(misfit(value, hint, "it"), said) for value, hint, said in FAULTY]
    assert [pair for pair in told if pair[0] != pair[1]] == []


def test_of_several_values_the_first_faulty_one_is_told() -> None:
    assert misfit_of_all([1, 2, MOST + 1, -MOST - 2], int, "it") == misfit(MOST + 1, int, "it")
    assert misfit_of_all([1, -MOST - 2, 5], int, "it") == misfit(-MOST - 2, int, "it")
    assert misfit_of_all([-MOST - 1, MOST], int, "it") is None
    assert misfit_of_all([-MOST - 1, MOST + 1], int, "it") == misfit(MOST + 1, int, "it")
    assert misfit_of_all([MOST, -MOST - 2], int, "it") == misfit(-MOST - 2, int, "it")
    assert misfit_of_all(["a", "b\udc00", "c\udc01"], str, "it") == misfit("\udc00", str, "it")
    assert misfit_of_all([], int, "it") is None


def test_what_cannot_tell_of_itself_is_told_by_its_type() -> None:
    assert quoted(UNSPEAKABLE) == "a dict"
    assert quoted("x") == "'x' (str)"
