"""Whether a value is what the types of a dataclass say, and can be written into the journal.

Mappings and tuples of plain values are looked at as a whole: a memory can have 100,000 names.  NaN and the infinities
are numbers: the journal has words for them.
"""

import reprlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from controller.model.history_column import HistoryColumn

#: Whole numbers of the journal have 64 bits.
_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1
#: The types that a value of a plain type may have; True is no number.
_PLAIN: Final[Mapping[Any, frozenset[type]]] = {
    str: frozenset({str}),
    bool: frozenset({bool}),
    int: frozenset({int}),
    float: frozenset({float, int, np.float64}),
    NoneType: frozenset({NoneType}),
}


def quoted(value: object) -> str:
    """*value* in a few words, whatever its repr does."""
    try:
        return f"{reprlib.repr(value)} ({type(value).__name__})"
    except Exception:  # a user's class may raise anything
        return f"a {type(value).__name__}"


def misfit(value: object, hint: Any, name: str) -> str | None:
    """Why *value*, which is called *name*, is not of the type *hint*; None where it is."""
    if hint is Any:
        return None
    if hint in _PLAIN:
        return misfit_of_all([value], hint, name)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return (
            None
            if any(type(value) is type(one) and value == one for one in inner)
            else _not(name, value, f"{inner[0]!r}")
        )
    if origin in (Union, UnionType):
        flaws = [misfit(value, one, name) for one in inner]
        return None if None in flaws else _not(name, value, " or ".join(map(_called, inner)))
    if origin is tuple:
        return _tuple_misfit(value, inner, name)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_misfit(value, inner, name)
    if not is_dataclass(hint):
        return None if isinstance(value, hint) else _not(name, value, _called(hint))
    if type(value) is not hint:
        return _not(name, value, _called(hint))
    return _first(misfit(getattr(value, field), of, f"{name}.{field}") for field, of in _fields_of(hint))


def misfit_of_all(values: Collection[object], hint: Any, name: str) -> str | None:
    """Why one of *values*, which are called *name*, is not of the type *hint*; None where all are."""
    allowed = _PLAIN.get(hint)
    if allowed is None:
        return _first(misfit(value, hint, name) for value in values)
    if not set(map(type, values)) <= allowed:
        return _not(name, next(value for value in values if type(value) not in allowed), _called(hint))
    if hint is str:
        return _text_misfit(values, name)
    if hint in (int, float):
        whole: list[Any] = [value for value in values if type(value) is int]
        if whole and not (min(whole) >= _MIN and max(whole) <= _MAX):
            return _not(name, next(value for value in whole if not _MIN <= value <= _MAX), "a number of 64 bits")
    return None


@lru_cache(maxsize=64)
def _fields_of(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((each.name, hints[each.name]) for each in fields(kind))


def _tuple_misfit(value: object, inner: tuple[Any, ...], name: str) -> str | None:
    if type(value) is not tuple:
        return _not(name, value, "a tuple")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return misfit_of_all(value, inner[0], name)
    if len(value) != len(inner):
        return _not(name, value, f"a tuple of {len(inner)}")
    return _first(misfit(one, of, name) for one, of in zip(value, inner, strict=True))


def _mapping_misfit(value: object, inner: tuple[Any, ...], name: str) -> str | None:
    if isinstance(value, HistoryColumn):
        return None  # the model's own column of floats: to look at it would build a dict of it
    if type(value) is not dict:  # the journal can hold no other mapping
        return _not(name, value, "a dict")
    keys, of = inner
    return misfit_of_all(value.keys(), keys, f"a key of {name}") or misfit_of_all(value.values(), of, name)


def _text_misfit(values: Iterable[Any], name: str) -> str | None:
    """Halves of surrogate pairs are no text: nothing can be written with them."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError as error:
        return _not(name, error.object[error.start : error.end], "text that UTF-8 can hold")
    return None


def _first(flaws: Iterable[str | None]) -> str | None:
    return next((flaw for flaw in flaws if flaw is not None), None)


def _not(name: str, value: object, expected: str) -> str:
    return f"{name} is {quoted(value)}, and {expected} is expected"


def _called(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
