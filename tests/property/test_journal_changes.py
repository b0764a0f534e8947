"""The changes between two JSON objects, applied to the first, give the second one byte for byte."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from controller.model.errors import WireError
from controller.wire.changes import apply, change

_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e300]) | st.text()
_KEYS = st.sampled_from([*"abcdefgh", "kind"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner), max_leaves=9
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES)


def in_order(value: Any) -> Any:
    """*value* with all keys in order, as the journal's mappings are."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [*map(in_order, value)] if isinstance(value, list) else value


@given(_OBJECTS, _OBJECTS)
def test_a_change_put_back_gives_the_same_bytes(old: dict[str, Any], new: dict[str, Any]) -> None:
    old, new = in_order(old), in_order(new)
    found = from_json(to_json(change(old, new)))
    assert to_json(apply(from_json(to_json(old)), found)) == to_json(new)


@given(_OBJECTS)
def test_nothing_changed_is_nothing_to_say(old: dict[str, Any]) -> None:
    assert change(old, from_json(to_json(old))) == {}


@given(_OBJECTS, _VALUES)
def test_what_is_no_change_is_refused_and_nothing_else_is_raised(old: dict[str, Any], given: Any) -> None:
    with suppress(WireError):
        apply(old, given)


@given(_OBJECTS, st.dictionaries(st.sampled_from(["to", "set", "removed", "changed", "values"]), _VALUES))
def test_what_looks_like_a_change_is_applied_or_refused(old: dict[str, Any], given: dict[str, Any]) -> None:
    with suppress(WireError):
        assert isinstance(apply(old, given), dict)
