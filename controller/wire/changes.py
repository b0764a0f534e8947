"""The difference between two JSON objects, so that the journal does not repeat what has not changed.

A change is one of:

    {"to": value}                                           the new value, whole
    {"set": {...}, "removed": [...], "changed": {...}}      of an object: keys that are new or have another value, keys
                                                            that are gone, and changes of the objects in it; parts that
                                                            are empty are left out
    {"values": [...]}                                       of an object whose keys stayed and most of whose values are
                                                            new: all values, in the order of their keys
    {}                                                      nothing
"""

from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeAlias

from controller.model.errors import WireError

Json: TypeAlias = dict[str, Any]

#: With more than this share of the values new, all values without their keys are shorter than some with theirs.
_LARGEST_SHARE: Final = 1 / 3


def change(old: Json, new: Json) -> Json:
    """The change from *old* to *new*. The order of keys in *old* does not matter."""
    if old.get("kind") != new.get("kind"):
        return {"to": new}  # another strategy's memory
    put: Json = {}
    changed: Json = {}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = change(before, value)
            if inner:
                changed[key] = inner
        elif key not in old or not _same(before, value):
            put[key] = value
    if len(put) > _LARGEST_SHARE * len(new) and old.keys() == new.keys() and not any(map(_is_nested, new.values())):
        return {"values": [new[key] for key in sorted(new)]}
    removed = sorted(old.keys() - new.keys())
    return {name: part for name, part in (("set", put), ("removed", removed), ("changed", changed)) if part}


def apply(old: Json, values: object) -> Json:
    """*old* with the change *values*; WireError where that is no change of *old*."""
    parts = _object(values)
    if "to" in parts:
        return _object(parts["to"])
    if "values" in parts:
        return _with_values(old, parts["values"])
    new = dict(old)
    removed = parts.get("removed", [])
    if not isinstance(removed, list):
        _refuse("removed is not a list")
    for key in removed:
        if not isinstance(key, str) or new.pop(key, _NOTHING) is _NOTHING:
            _refuse(f"removes {key!r}, which does not exist")
    for key, inner in _object(parts.get("changed", {})).items():
        new[key] = apply(_object(new.get(key)), inner)
    new.update(_object(parts.get("set", {})))
    # Mappings lie in the order of their keys, records in the order of their fields, which never change.
    return dict(sorted(new.items())) if len(new) > len(old) - len(removed) and _is_sorted(old) else new


_NOTHING: Final = object()


def _with_values(old: Json, values: object) -> Json:
    if not isinstance(values, list) or len(values) != len(old):
        _refuse(f"expected a list of {len(old)} values")
    by_key = dict(zip(sorted(old), values, strict=True))
    return {key: by_key[key] for key in old}


def _same(one: Any, other: Any) -> bool:
    """Whether both are the same as JSON text: to Python 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, list):
        return all(map(_same, one, other))
    return not isinstance(one, float) or one != 0 or str(one) == str(other)


def _is_nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _is_sorted(value: Mapping[str, Any]) -> bool:
    return list(value) == sorted(value)


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        _refuse(f"expected an object, found {type(value).__name__}")
    return value


def _refuse(why: str) -> NoReturn:
    raise WireError("bad_value", f"changes: {why}")
