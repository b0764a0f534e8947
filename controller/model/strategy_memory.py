"""The memory of a strategy between intervals: a frozen dataclass that the strategy defines.

The journal keeps it field by field, and the cycle never looks inside.  It tells the memory what became of the
strategy's choices, by the methods of ``StrategyMemory``; each has a default, so a memory overrides what concerns it.
"""

# ruff: noqa: ARG002  the defaults of methods look at nothing

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, Self, get_origin, get_type_hints

from controller.model.decision import Unload
from controller.model.errors import TrimtabError

#: Metadata of fields that the journal leaves out while they have their default.
OMIT_DEFAULT: Final[Mapping[str, Any]] = {"omit_default": True}


class Renaming(Protocol):
    """Gives other names for names, the same one for a name every time; "" stays."""

    def broker(self, name: str) -> str:
        """Another name for a broker, ``host:port``."""
        ...

    def namespace(self, name: str) -> str:
        """Another name for a namespace."""
        ...

    def bundle(self, name: str) -> str:
        """Another name for a bundle.  TrimtabError where *name* is none."""
        ...


class DryRunMoves(NamedTuple):
    """Moves that a dry run issued, and that nobody made."""

    #: Their bundles.
    bundles: Set[str]
    #: Source and destination of each.
    ends: Set[tuple[str, str]]
    #: Sources from which no real command moved anything either.
    idle_sources: Set[str]


class StrategyMemory:
    """Base of the memories of strategies.

    A memory is a frozen dataclass, and ``Memory()`` is a valid one.  Its fields hold text, numbers, switches, tuples,
    mappings by text, and frozen dataclasses of these: the journal stores them, and checks them by their types when it
    is read.  What types do not say is checked in ``__post_init__``, which raises ValueError.
    """

    __slots__ = ()

    #: The memory's name in the journal: the full name of the class, unless the class says otherwise.  A memory that was
    #: stored under another name starts empty, so give a new one to a class that cannot go on from what it stored.
    kind: ClassVar[str] = ""
    #: Metrics of its own that are declared beforehand: name -> meaning.  For strategies of trimtab.
    metric_meanings: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = f"{cls.__module__}.{cls.__qualname__}"

    # ---- what others do ----

    def keep_brokers(self, brokers: Sequence[str]) -> Self:
        """The memory without brokers that are not among *brokers*, the active ones."""
        return self

    def revert_unissued(self, before: Self, withheld: Collection[Unload], issued: Collection[Unload]) -> Self:
        """The memory after a decision of which *withheld* were held back and *issued* were issued; *before*: before it.

        So a strategy that counts rounds before it acts, or waits after it acted, chooses the same again.
        """
        return self

    def revert_unissued_splits(self, before: Self, bundles: Collection[str]) -> Self:
        """The same for a split policy: the splits of *bundles* were held back."""
        return self

    def invalidate_predictions(self, bundles: Set[str], brokers: Set[str]) -> Self:
        """The memory without what it expects of *bundles*, which others move, and of *brokers*, which they touch.

        Others are an operator's plan and the membership rebalancer.
        """
        return self

    def forget_dry_run(self, moves: DryRunMoves) -> Self:
        """The memory without what it expects of *moves*."""
        return self

    def shift_usage(self, shares: Mapping[str, float]) -> Self:
        """The memory whose averages of brokers' usage are off by *shares* (fractions): for ``trimtab what-if``."""
        return self

    # ---- what others ask ----

    def predicted_usage(self, bundle: str, source: str, destination: str) -> float | None:
        """The usage (fraction) that the last decision expects of *destination* after this move; None: not known."""
        return None

    def failed_predictions(self, interval: int) -> Collection[str]:
        """The bundles whose move was found in *interval* (T, epoch ms) not to have done what was expected."""
        return ()

    def metrics(self) -> Mapping[str, float]:
        """Numbers to show: name -> value.  At most 20; names have letters, digits and underscores."""
        return {}

    def with_names(self, names: Renaming) -> Self:
        """The memory with other *names*, for a recording without true ones.

        By default every text gets another name: that of a bundle, a namespace or a broker, whichever it can be.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        hints = get_type_hints(type(self))
        return replace(  # type: ignore[type-var]
            self,
            **{name: renamed(value, names) for name, value in values.items() if get_origin(hints[name]) != Literal},
        )


def renamed(value: Any, names: Renaming) -> Any:
    """*value* of a memory with other *names* in place of every text."""
    if isinstance(value, str):
        return _renamed_text(value, names)
    if isinstance(value, Mapping):
        return {_renamed_text(key, names): renamed(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(renamed(each, names) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: renamed(getattr(value, each.name), names) for each in fields(value)})
    return value


def _renamed_text(text: str, names: Renaming) -> str:
    try:
        return names.bundle(text)
    except TrimtabError:
        return names.namespace(text) if "/" in text else names.broker(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMemory(StrategyMemory):
    """The memory of a strategy that needs none."""

    kind: ClassVar[str] = "none"


@dataclass(frozen=True, slots=True)
class StoredMemory(StrategyMemory):
    """A memory as the journal holds it; its strategy makes its own of it when it is asked.

    So whoever reads the journal needs no strategy, and nothing in the journal chooses a class.
    """

    kind: ClassVar[str] = ""
    #: JSON, ``kind`` among it.
    stored: Mapping[str, Any] = field(default_factory=dict)

    def with_names(self, names: Renaming) -> Self:
        """Other names for all texts but the kind; nobody knows here which of them are names."""
        values = {field: value if field == "kind" else renamed(value, names) for field, value in self.stored.items()}
        return type(self)(values)
