"""How the journal holds what strategies remember: field by field, by the types of the memory's class.

What is read is not trusted: every value is checked against its type, and the class may refuse it in ``__post_init__``.
A name in the journal never chooses a class: a memory is read as that of the strategy which the settings name, or of
one of trimtab's own.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from controller.cycle.checked import first_memory
from controller.cycle.policy import Policy
from controller.cycle.typed import misfit, quoted
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.errors import StrategyError
from controller.model.memory import STRATEGY_ROLES, Memory
from controller.model.strategy_memory import StoredMemory, StrategyMemory
from controller.strategies.catalogue import MEMORIES

M = TypeVar("M", bound=StrategyMemory)

#: Numbers that JSON has no word for.
_NOT_FINITE: Final = frozenset({"nan", "inf", "-inf"})
_PLAIN: Final = (str, int, float, bool, NoneType)


class UnreadableMemoryError(ValueError):
    """What the journal holds is no memory of the class."""


def stored(memory: StrategyMemory) -> dict[str, Any]:
    """*memory* as JSON has it, with its kind."""
    if isinstance(memory, StoredMemory):
        return dict(memory.stored)
    values: dict[str, Any] = {"kind": memory.kind}
    for each in fields(memory):  # type: ignore[arg-type]
        default = each.default if each.default_factory is MISSING else each.default_factory()
        value = getattr(memory, each.name)
        if not (each.metadata.get("omit_default") and value == default):
            values[each.name] = value
    plain: dict[str, Any] = _plain(values)
    return plain


def _plain(value: Any) -> Any:
    """*value* as JSON has it, mappings by key; a number that JSON has no word for is text."""
    if isinstance(value, str | int | None):
        return value
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_memory(kind: type[M], stored: Mapping[str, Any]) -> M:
    """The memory of class *kind* that JSON, *stored*, holds; UnreadableMemoryError where it holds none."""
    values = {name: value for name, value in stored.items() if name != "kind"}
    memory: M = _made(kind, values, "memory")
    return memory


def read_stored(value: Any) -> StrategyMemory:
    """The memory that JSON, *value*, holds; one of a user's strategy as it is stored.

    UnreadableMemoryError where it holds none.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise UnreadableMemoryError("a strategy's memory is an object with a kind")
    kind = value["kind"]
    if kind in MEMORIES:
        return read_memory(MEMORIES[kind], value)
    if "." not in kind:
        raise UnreadableMemoryError(f"{kind!r:.100} is no kind of memory: allowed are {', '.join(sorted(MEMORIES))}")
    return StoredMemory(value)


def _made(kind: type[Any], values: Any, name: str) -> Any:
    if not isinstance(values, Mapping):
        raise UnreadableMemoryError(f"{name} is {quoted(values)}, and an object is expected")
    hints, known = get_type_hints(kind), [each.name for each in fields(kind)]
    strange = sorted(values.keys() - set(known))
    if strange:
        raise UnreadableMemoryError(f"{kind.__name__} has no field {strange[0]!r:.100}")
    arguments = {each: _value(values[each], hints[each], f"{name}.{each}") for each in known if each in values}
    for each, value in arguments.items():  # before the class looks at them
        if (flaw := misfit(value, hints[each], f"{name}.{each}")) is not None:
            raise UnreadableMemoryError(flaw)
    try:
        return kind(**arguments)
    except Exception as error:  # a user's class may raise anything
        raise UnreadableMemoryError(f"{kind.__name__} refuses it: {type(error).__name__}: {error!s:.300}") from error


def _value(value: Any, hint: Any, name: str) -> Any:
    """*value* of JSON as the type *hint* has it; what does not fit stays as it is, for ``misfit``."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float and isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    if origin in (Union, UnionType):
        return _first_that_fits(value, inner, name)
    if origin is tuple and isinstance(value, list):
        each = inner[:1] * len(value) if inner[1:] == (Ellipsis,) else inner
        if len(each) != len(value):
            raise UnreadableMemoryError(f"{name} has {len(value)} values, and {len(each)} are expected")
        return tuple(_value(one, of, name) for one, of in zip(value, each, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        if inner[1] in _PLAIN and inner[1] is not float:
            return value
        return {key: _value(one, inner[1], f"{name}[{key!r:.50}]") for key, one in value.items()}
    return _made(hint, value, name) if is_dataclass(hint) and isinstance(hint, type) else value


def _first_that_fits(value: Any, hints: tuple[Any, ...], name: str) -> Any:
    for hint in hints:
        try:
            parsed = _value(value, hint, name)
        except UnreadableMemoryError:
            continue
        if misfit(parsed, hint, name) is None:
            return parsed
    return value


def unstorable(kind: type[Any]) -> str | None:
    """Why the journal cannot hold a memory of class *kind*; None where it can."""
    if not issubclass(kind, StrategyMemory):
        return f"{kind.__name__} is no StrategyMemory: derive it from controller.strategies.api.StrategyMemory"
    return _unstorable(kind, kind.__name__, frozenset())


def _unstorable(hint: Any, name: str, around: frozenset[Any]) -> str | None:
    """*around*: the classes that this one is a field of, at any depth."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN or hint in around or origin is Literal:
        return None
    if origin in (Union, UnionType):
        inside = inner
    elif origin is tuple and inner:
        inside = inner[:1] if inner[1:] == (Ellipsis,) else inner
    elif isinstance(origin, type) and issubclass(origin, Mapping) and inner[:1] == (str,):
        inside = inner[1:]
    elif is_dataclass(hint) and isinstance(hint, type) and hint.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        hints = get_type_hints(hint)
        if not around and any(each.name == "kind" for each in fields(hint)):
            return f"{name}.kind is a field: it is the memory's name in the journal, kind: ClassVar[str]"
        flaws = (_unstorable(hints[each.name], f"{name}.{each.name}", around | {hint}) for each in fields(hint))
        return next((flaw for flaw in flaws if flaw is not None), None)
    else:
        return (
            f"{name} has the type {getattr(hint, '__name__', hint)}, which the journal cannot hold: allowed are str,"
            " int, float, bool, None, Literal, tuples, mappings by str, and frozen dataclasses of these"
        )
    return next((flaw for each in inside if (flaw := _unstorable(each, name, around)) is not None), None)


def _strategies(policy: Policy) -> dict[str, Any]:
    strategies = (policy.shedder, policy.placement, policy.split_policy, policy.membership)
    return dict(zip(STRATEGY_ROLES, strategies, strict=True))


def with_read_memories(memory: Memory, policy: Policy) -> Memory:
    """*memory*, in which the strategies of *policy* have their own memories in place of what the journal holds.

    What it holds of other strategies stays.  StrategyError where it holds no memory of the strategy's class.
    """
    memories = {}
    for role, strategy in _strategies(policy).items():
        unread = getattr(memory, role)
        if strategy is None or not isinstance(unread, StoredMemory):
            continue
        kind = type(first_memory(strategy))
        if unread.stored["kind"] == kind.kind:
            memories[role] = _read(strategy, kind, unread)
    return replace(memory, **memories) if memories else memory


def _read(strategy: Any, kind: type[M], unread: StoredMemory) -> M:
    try:
        return read_memory(kind, unread.stored)
    except UnreadableMemoryError as error:
        raise StrategyError(
            type(strategy).__name__,
            f"the journal holds a memory of kind {kind.kind} that it cannot read: {error}; use the release of the"
            f" strategy that wrote it, or give {kind.__name__} another `kind`: then its memory starts empty",
        ) from error


def of_strategies(memory: Memory, policy: Policy) -> tuple[Memory, list[Verdict]]:
    """*memory* with memories of the strategies of *policy*, and a verdict on each that starts empty.

    That is where the strategy was changed in the settings.
    """
    memory, new = with_read_memories(memory, policy), policy.initial_memory(memory.seed)
    begins, verdicts = {}, []
    for role, strategy in _strategies(policy).items():
        initial = getattr(new, role)
        if type(getattr(memory, role)) is not type(initial):
            begins[role] = initial
            by = role if strategy is None else type(strategy).__name__
            detail = f"{role}: strategy changed to {'none' if strategy is None else by}, its memory starts empty"
            verdicts.append(Verdict(subject=CLUSTER, reason=Reason.STARTED_ANEW, by=by, detail=detail))
    return replace(memory, **begins), verdicts
