"""States of namespaces, or of brokers: kept as text between batches, and parsed only when they are read.

There can be 10,000 of them and they seldom change, but every batch reads and writes the shard's state.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np

from controller.aggregate.kept.state_text import NO_STATES, StateTexts, states_from_text
from controller.model.load import Ints
from controller.model.records import BrokerState, Fact, NamespaceState

S = TypeVar("S", NamespaceState, BrokerState)

#: Maximum number of characters of all states; the last written are kept.  100,000 namespaces have about 17 MB.
LARGEST: Final = 64 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class States(Collection[S], Generic[S]):
    """One state for each name, sorted by name."""

    text: str = NO_STATES
    #: (n,) number of closed intervals when each was last written; empty in a snapshot.
    written: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    #: How many did not fit when these were put together.
    dropped: int = 0

    @classmethod
    def of(cls, states: Iterable[S], closes: int = 0) -> Self:
        """*states*, one for each name, written when *closes* intervals were closed."""
        return cls()._of({_name_of(state): (state, closes) for state in states})

    def __len__(self) -> int:
        return 0 if self.text == NO_STATES else len(self._parsed())

    def __iter__(self) -> Iterator[S]:
        return iter(self._parsed())

    def __contains__(self, state: object) -> bool:
        return state in self._parsed()

    def with_later(self, states: Iterable[S], closes: int) -> Self:
        """A copy with *states* added, in this order; one with a lower version than the present one is ignored."""
        held = {_name_of(state): (state, at) for state, at in zip(self, self.written.tolist(), strict=True)}
        for state in states:
            name = _name_of(state)
            if name not in held or state.version >= held[name][0].version:
                held[name] = state, closes
        return self._of(held)

    def since(self, closes: int) -> Self:
        """A copy without those last written when fewer than *closes* intervals were closed."""
        if not (self.written < closes).any():
            return self
        kept = zip(self, self.written.tolist(), strict=True)
        return self._of({_name_of(state): (state, at) for state, at in kept if at >= closes})

    def for_snapshot(self) -> Self:
        """A copy without ``written``, as snapshots have it."""
        return type(self)(text=self.text)

    def _parsed(self) -> tuple[S, ...]:
        found: Any = _facts(self.text)
        return found  # type: ignore[no-any-return]

    def _of(self, held: dict[str, tuple[S, int]]) -> Self:
        texts = StateTexts(LARGEST)
        for name in sorted(held, key=lambda name: (-held[name][1], name)):
            texts.add(name, held[name][0])
        written = np.array([held[name][1] for name in texts.names], np.int64)
        return type(self)(text=texts.joined(), written=written, dropped=len(held) - len(written))


def _name_of(state: NamespaceState | BrokerState) -> str:
    return state.namespace if isinstance(state, NamespaceState) else state.broker


# The text is the same in nearly every interval.
@lru_cache(maxsize=4)
def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(states_from_text(text))
