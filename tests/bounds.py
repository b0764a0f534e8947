"""Every rule of a record's model, tried out: values below, at and above each bound, of other types, and none at all.

The rules are read from the model's own JSON schema, the one that docs/schemas has, so a new field or bound is tried
without a word here.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

#: Values of every type of JSON; those of them that a field does not take are refused.
_OF_EVERY_TYPE: Final[dict[str, Any]] = {
    "null": None, "true": True, "a text": "x", "a number as text": "1", "0": 0, "1": 1, "1.0": 1.0, "1.5": 1.5,
    "-0.0": -0.0, "a list": [], "a list of a number": [1], "a list of a text": ["x"], "an object": {},
}  # fmt: skip
#: A path into a record: keys and numbers.
Path = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Spoilt:
    """A record in which one field was changed."""

    what: str
    record: dict[str, Any]


def spoilt(model: type[BaseModel], good: dict[str, Any]) -> Iterator[Spoilt]:
    """*good*, a record of *model*, changed in one field and one way each: in each field that it has."""
    schema = model.model_json_schema(by_alias=True)
    for path, rule in _fields(schema, schema, good, ()):
        where = ".".join(map(str, path))
        yield Spoilt(what=f"{where} missing", record=_changed(good, path, missing=True))
        for name, value in (_OF_EVERY_TYPE | _at_bounds(rule)).items():
            yield Spoilt(what=f"{where}: {name}", record=_changed(good, path, value))


def _fields(rule: Any, schema: Any, value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The path and the rule of every field in *value*, which follows *rule*; of a list, those of the first item."""
    rule = _resolved(rule, schema, value)
    if path:
        yield path, rule
    if isinstance(value, dict):
        for name, inner in value.items():
            known = rule.get("properties", {}).get(name) or rule.get("additionalProperties")
            if isinstance(known, dict):
                yield from _fields(known, schema, inner, (*path, name))
    elif isinstance(value, list) and value and "items" in rule:
        yield from _fields(rule["items"], schema, value[0], (*path, 0))


def _resolved(rule: dict[str, Any], schema: dict[str, Any], value: Any) -> dict[str, Any]:
    """*rule* without references; of several alternatives the one for what *value* is."""
    if "$ref" in rule:
        rule = schema["$defs"][rule["$ref"].rpartition("/")[2]]
    for one in rule.get("anyOf", ()):
        if (one.get("type") == "null") == (value is None):
            return _resolved(one, schema, value)
    return rule


def _at_bounds(rule: dict[str, Any]) -> dict[str, Any]:
    """Values around each bound of *rule*, by what they are."""
    found: dict[str, Any] = {}
    for name in ("minimum", "maximum", "exclusiveMaximum"):
        if name in rule:
            bound = rule[name]
            for shift in (-1, 0, 1):
                found[f"{name} {shift:+d}"] = _stepped(bound, shift, whole=rule["type"] == "integer")
    for name in ("minLength", "maxLength"):
        if name in rule:
            for shift in (-1, 0, 1):
                found[f"{name} {shift:+d}"] = "é" * max(rule[name] + shift, 0)
    if rule.get("type") == "string":
        # Around each of the ranges that no name has.
        ends = (0, 10, 31, 32, 126, 127, 159, 160, 0x2027, 0x2028, 0x2029, 0x202A, 0xE000, 0x1F600)
        found |= {f"a text with U+{code:04X}": f"a{chr(code)}b" for code in ends}
    return found


def _stepped(bound: float, shift: int, *, whole: bool) -> float:
    """The number before or behind *bound*; of whole numbers, or of all that a float can be."""
    if whole:
        return int(bound) + shift
    return math.nextafter(bound, math.inf * shift) if shift else float(bound)


def _changed(record: dict[str, Any], path: Path, value: Any = None, *, missing: bool = False) -> dict[str, Any]:
    found = copy.deepcopy(record)
    inner: Any = found
    for key in path[:-1]:
        inner = inner[key]
    if missing:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found
