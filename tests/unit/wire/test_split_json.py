"""JSON split into its text and its numbers comes back as it was, and its numbers are those that a parser reads."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire.split_json import SplitJson, floats, joined, split

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**25), 10**25) | st.floats(0, 1e6)
JSON: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | st.text() | st.none() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(JSON, st.booleans())
def test_json_comes_back_as_it_was(thing: Any, spaces: bool) -> None:
    value = json.dumps(thing, separators=None if spaces else (",", ":")).encode()
    parts = split(value)
    assert parts is None or joined(parts) == value


@given(st.binary() | st.text(alphabet='0123456789.,:[]{}"-e\x00 ').map(str.encode))
def test_anything_comes_back_as_it_was(value: bytes) -> None:
    parts = split(value)
    assert parts is None or joined(parts) == value


@given(st.lists(st.floats(0, 1e15).filter(lambda number: "e" not in repr(number)) | st.integers(0, 10**18 - 1)))
def test_numbers_are_those_that_a_parser_reads(numbers: list[float]) -> None:
    parts = split(json.dumps(numbers, separators=(",", ":")).encode())
    assert parts is not None
    assert floats(parts.digits, parts.decimals).tolist() == [float(each) for each in numbers]


def test_a_number_beyond_the_largest_int64_keeps_a_text_whole_and_one_up_to_it_does_not() -> None:
    parts = split(b"[92233720368547758.07,7]")
    assert parts is not None
    assert (parts.digits.tolist(), parts.decimals.tolist()) == ([(1 << 63) - 1, 7], [2, 0])
    assert split(b"[92233720368547758.08,7]") is None


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 numbers for 1 places"):
        joined(SplitJson(b"[\x00]", np.array([1, 2]), np.array([0, 0], np.uint8)))


@pytest.mark.parametrize(
    "value", [b"", b"7", b"[-1,+2,01,1e5,.5,5.,1_0]", b'{"a":" ,5,"}', b"\x00", b"[1,\x00]", b"[9223372036854775808]"]
)
def test_odd_texts(value: bytes) -> None:
    parts = split(value)
    assert parts is None or joined(parts) == value
