"""The kinds of strategies that broker.conf names, and how a name becomes a strategy with its options.

A name is that of a strategy of trimtab (controller/strategies/catalogue.py), short or as Pulsar's full class name; or
the full Python name of a class that a user wrote, ``my_package.my_module.MyShedder``.  Such a class is imported from
Python's path and checked at the start: it must be a frozen dataclass with the methods of its protocol, options of types
that broker.conf can hold, and a memory that the journal can hold.
"""

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Generic, TypeVar

from controller.cycle.stored_memory import unstorable
from controller.model.errors import SettingsError
from controller.settings.broker_conf import build
from controller.settings.pairs import ASSIGNMENT, PLACEMENT, SHEDDER, SPLIT_ALGORITHM
from controller.strategies.catalogue import (
    ASSIGNMENTS,
    MEMORIES,
    PLACEMENTS,
    SHEDDERS,
    SPLIT_ALGORITHMS,
    class_in_version,
    is_python_name,
    short_name,
)
from controller.strategies.protocols import Placement, Shedder, SplitAlgorithm, TopicBundleAssignment

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyKind(Generic[T]):
    """One kind of strategy: its key in broker.conf and the strategies of this kind."""

    #: The kind with its article, for messages.
    what: str
    #: The key in broker.conf.
    key: str
    #: The class in controller.strategies.protocols that says which methods it has, and the one that no other kind has.
    protocol: type[Any]
    method: str
    catalogue: Mapping[str, type[T]]

    def choose(self, name: str, conf: Mapping[str, str]) -> T:
        """The strategy that *conf* calls *name*, with its options.  Raises SettingsError naming key, name and flaw."""
        known = self.catalogue.get(short_name(name))
        if known is not None:
            return build(known, conf)
        try:
            return self._own(name, conf)
        except _UnusableError as error:
            raise SettingsError(f"{self.key}={name}: {error}") from error

    def _own(self, name: str, conf: Mapping[str, str]) -> T:
        """The strategy that a user wrote, by its full Python *name*."""
        allowed = f"allowed: {', '.join(sorted(self.catalogue))}"
        if not is_python_name(name):
            raise _UnusableError(f"{_no_class_of_pulsar(name)}; {allowed}" if "." in name else allowed)
        try:
            cls = imported(name)
        except _NotThereError as error:
            raise _UnusableError(
                f"{error}, and no strategy of trimtab has this name; a Java class cannot be used; {allowed}, or the"
                " full Python name of a class of your own, package.module.Class, that is installed beside trimtab or"
                " lies on PYTHONPATH"
            ) from error
        flaw = flaw_of(cls, self.protocol)
        if flaw is not None:
            raise _UnusableError(flaw)
        strategy: T = _built(cls, conf)
        return strategy


def _no_class_of_pulsar(name: str) -> str:
    class_name = class_in_version(name)
    if not class_name:
        return "a Java class that trimtab does not have"
    return f"Pulsar has no class of this name, and brokers use their default in its place; did you mean {class_name}?"


class _UnusableError(SettingsError):
    """An error about a strategy's name or class, without key and name."""


class _NotThereError(_UnusableError):
    """There is no module of that name."""


def imported(name: str) -> Any:
    """The object with the full Python *name*, ``package.module.Class``; SettingsError where there is none."""
    module, _, attribute = name.rpartition(".")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if _is_part_of(error.name, module):
            raise _NotThereError(f"there is no Python module {module} ({error})") from error
        raise _UnusableError(f"cannot import {module}: {error}") from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything when it is imported
        raise _UnusableError(f"cannot import {module}: {type(error).__name__}: {error}") from error
    if not hasattr(loaded, attribute):
        raise _UnusableError(f"the module {module} has no {attribute} ({loaded.__file__})")
    return getattr(loaded, attribute)


def kind_of(name: str) -> StrategyKind[Any]:
    """The kind of the strategy called *name*, one of trimtab's or one that a user wrote; else SettingsError."""
    for kind in STRATEGY_KINDS:
        if short_name(name) in kind.catalogue:
            return kind
    if is_python_name(name):
        try:
            cls = imported(name)
        except _UnusableError as error:
            raise SettingsError(f"{name}: {error}") from error
        for kind in STRATEGY_KINDS:
            if hasattr(cls, kind.method):
                return kind
        methods = ", ".join(f"{kind.method} ({kind.what})" for kind in STRATEGY_KINDS)
        raise SettingsError(f"{name}: is not a strategy: it has none of the methods {methods}")
    known = ", ".join(sorted({one for kind in STRATEGY_KINDS for one in kind.catalogue}))
    raise SettingsError(
        f"{name or repr(name)}: is not a strategy of trimtab ({known}), nor the full Python name of a class"
    )


def _built(cls: type[Any], conf: Mapping[str, str]) -> Any:
    """A user's *cls* with its options, and a memory that the journal can hold."""
    try:
        strategy = build(cls, conf)
        memory = strategy.initial_memory() if hasattr(strategy, "initial_memory") else None
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:  # a user's class may raise anything when it is built
        raise _UnusableError(f"cannot be built: {type(error).__name__}: {error}") from error
    flaw = None if memory is None else _memory_flaw(type(memory))
    if flaw is not None:
        raise _UnusableError(f"initial_memory() returns {type(memory).__name__}, which the journal cannot hold: {flaw}")
    return strategy


def _memory_flaw(kind: type[Any]) -> str | None:
    """Why the journal cannot hold the memory of a user's strategy; None where it can."""
    flaw = unstorable(kind)
    if flaw is not None or MEMORIES.get(kind.kind) is kind:
        return flaw
    return None if "." in kind.kind else f"{kind.__name__}.kind is {kind.kind!r}: a name with a dot is expected"


def flaw_of(cls: Any, protocol: type[Any]) -> str | None:
    """Why *cls* is not a strategy of *protocol*; None where its signature shows no error."""
    if not isinstance(cls, type):
        return f"is a {type(cls).__name__}, not a class"
    if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return "is not a frozen dataclass: write @dataclass(frozen=True, kw_only=True) above the class"
    for member, declared in vars(protocol).items():
        if member.startswith("_"):
            continue
        own = inspect.getattr_static(cls, member, None)
        if own is None:
            return f"has no {member}, which {protocol.__module__}.{protocol.__name__} asks for"
        if inspect.isfunction(declared) and not _takes_as_many(own, declared):
            arguments = ", ".join(inspect.signature(declared).parameters)
            return f"{member} takes other arguments than {protocol.__name__} requires: {member}({arguments})"
    return None


def _takes_as_many(own: Any, declared: Any) -> bool:
    """Whether *own* can be called with as many positional arguments as *declared*."""
    if not callable(own):
        return False
    try:
        inspect.signature(own).bind(*inspect.signature(declared).parameters)
    except (TypeError, ValueError):
        return False
    return True


def _is_part_of(missing: str | None, module: str) -> bool:
    """Whether the *missing* module is *module* or one of its parent packages."""
    return missing is not None and (module == missing or module.startswith(f"{missing}."))


SHEDDER_KIND: Final = StrategyKind(what="a shedder", key=SHEDDER, protocol=Shedder, method="decide", catalogue=SHEDDERS)
PLACEMENT_KIND: Final = StrategyKind(
    what="a placement", key=PLACEMENT, protocol=Placement, method="acceptable", catalogue=PLACEMENTS
)
SPLIT_ALGORITHM_KIND: Final = StrategyKind(
    what="a split algorithm", key=SPLIT_ALGORITHM, protocol=SplitAlgorithm, method="cuts", catalogue=SPLIT_ALGORITHMS
)
ASSIGNMENT_KIND: Final = StrategyKind(
    what="an assignment of topics to bundles",
    key=ASSIGNMENT,
    protocol=TopicBundleAssignment,
    method="assign",
    catalogue=ASSIGNMENTS,
)
#: All of them.
STRATEGY_KINDS: Final[tuple[StrategyKind[Any], ...]] = (
    SHEDDER_KIND,
    PLACEMENT_KIND,
    SPLIT_ALGORITHM_KIND,
    ASSIGNMENT_KIND,
)
