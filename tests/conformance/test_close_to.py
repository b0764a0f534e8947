"""What the vectors' numbers are compared by refuses what ``pytest.approx`` refuses."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.conformance.vectors import close_to

_NUMBERS = [0.0, -0.0, 1.0, 1.0 + 5e-10, 1.0 + 2e-9, -1.0, 5e-324, 1e300, math.inf, -math.inf, math.nan]


def _approx(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=0.0, nan_ok=True)


def test_numbers_are_close_where_pytest_says_so_alone_in_lists_and_in_mappings() -> None:
    answers = set()
    for found, expected in product(_NUMBERS, _NUMBERS):
        answer = found == _approx(expected)
        answers.add(answer)
        for kind in (float, np.float64):
            assert (kind(found) == close_to(expected)) is answer, (found, expected)
            assert ([1.0, kind(found)] == close_to([1.0, expected])) is answer, (found, expected)
            assert ({"a": 1.0, "b": kind(found)} == close_to({"a": 1.0, "b": expected})) is answer, (found, expected)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("found", "expected"),
    [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [1.0]), ({"a": 1.0}, {"b": 1.0}), ({}, {"a": 1.0})],
)
def test_what_has_more_or_fewer_numbers_or_other_keys_is_not_close(found: object, expected: object) -> None:
    assert found != close_to(expected)
    assert found != _approx(expected)


def test_what_was_expected_is_told() -> None:
    assert repr(close_to([1.0, math.nan])) == "close to [1.0, nan]"
