"""What a journal entry says of a memory that changed, word by word."""

from typing import Any

import pytest

from controller.model.errors import WireError
from controller.wire.changes import apply, change

NINE = {f"b{i}": i for i in range(9)}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (NINE, NINE, {}),
        (NINE, {**NINE, "b0": 7}, {"set": {"b0": 7}}),
        # A third of the values and no more are said with their keys.
        (NINE, {**NINE, "b0": 7, "b1": 7, "b2": 7}, {"set": {"b0": 7, "b1": 7, "b2": 7}}),
        (NINE, {**NINE, "b0": 9, "b1": 9, "b2": 9, "b3": 9}, {"values": [9, 9, 9, 9, 4, 5, 6, 7, 8]}),
        ({"b": 1, "a": 2}, {"b": 3, "a": 4}, {"values": [4, 3]}),
        ({"a": 1, "b": [1]}, {"a": 2, "b": [2]}, {"set": {"a": 2, "b": [2]}}),
        ({"a": 1, "b": 1}, {"a": 2, "c": 2}, {"set": {"a": 2, "c": 2}, "removed": ["b"]}),
        ({"a": {"x": 1, "y": 1, "z": 1}}, {"a": {"x": 2, "y": 1, "z": 1}}, {"changed": {"a": {"set": {"x": 2}}}}),
        ({"a": {"x": 1}}, {"a": 1}, {"values": [1]}),
        ({"kind": "one", "a": 1}, {"kind": "two"}, {"to": {"kind": "two"}}),
        ({"a": 1, "b": 0, "c": 0, "d": 0}, {"a": 1.0, "b": 0, "c": 0, "d": 0}, {"set": {"a": 1.0}}),
        ({"a": [0.0], "b": 0, "c": 0}, {"a": [-0.0], "b": 0, "c": 0}, {"set": {"a": [-0.0]}}),
        ({"a": True, "b": 0, "c": 0}, {"a": 1, "b": 0, "c": 0}, {"set": {"a": 1}}),
    ],
)
def test_a_change_says_what_is_new_in_the_shortest_form(old: Any, new: Any, said: Any) -> None:
    assert repr(change(old, new)) == repr(said)
    assert repr(apply(old, said)) == repr(new)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "expected an object, found list"),
        ({"removed": "a"}, "removed is not a list"),
        ({"removed": ["gone"]}, "removes 'gone', which does not exist"),
        ({"removed": [1]}, "removes 1, which does not exist"),
        ({"values": [1]}, "expected a list of 2 values"),
        ({"values": {"a": 1}}, "expected a list of 2 values"),
        ({"changed": {"a": {}}}, "expected an object, found int"),
    ],
)
def test_what_is_no_change_of_it_is_refused(given: Any, told: str) -> None:
    with pytest.raises(WireError, match=told):
        apply({"a": 1, "b": 2}, given)


def test_new_keys_come_in_order_where_the_old_ones_lie_so() -> None:
    assert list(apply({"a": 1, "c": 1}, {"set": {"b": 1}})) == ["a", "b", "c"]
    assert list(apply({"c": 1, "a": 1}, {"set": {"b": 1}})) == ["c", "a", "b"]
    assert list(apply({"a": 1, "c": 1}, {"set": {"b": 1}, "removed": ["a"]})) == ["b", "c"]
