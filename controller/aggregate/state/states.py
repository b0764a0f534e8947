"""States of namespaces, or of brokers: kept as text between batches, and parsed only when they are read.

There can be 10,000 of them and they seldom change, but every batch reads and writes the shard's state.

Each list of an isolation policy stands once in the text.  Each namespace's state has the policies that name it, and
many have the same ones.  Two policies with 500 brokers each that name 10,000 namespaces come to 230 MB if each state
has them, and to 3 MB here.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np

from controller.aggregate.state.facts import fact_from_json, fact_to_text
from controller.model.load import Ints
from controller.model.records import BrokerState, Fact, NamespaceState

S = TypeVar("S", NamespaceState, BrokerState)

#: Maximum number of characters of all states; the last written are kept.  100,000 namespaces have about 17 MB.
LARGEST: Final = 64 << 20
#: The text of no states.
NO_STATES: Final = "[]"
#: Compact, and not escaped, as states are.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class StateTexts:
    """The texts of states that fit into a number of characters: none after the first one that does not."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        #: Characters of all states, also of those that do not fit.
        self.size = 0
        self._texts = dict[str, str]()
        #: Text of a value in a policy -> its number; and how many of them belong to states that fit.
        self._numbers = dict[str, int]()
        self._used = 0
        #: Id of a value -> its number, and the value itself: while it lives no other one has its id.
        self._known = dict[int, tuple[int, Any]]()

    def add(self, name: str, state: NamespaceState | BrokerState) -> None:
        """Add *state*, of *name*, if it fits."""
        if isinstance(state, NamespaceState) and state.isolation_policies:
            numbered = tuple({key: self._number(each) for key, each in p.items()} for p in state.isolation_policies)
            state = replace(state, isolation_policies=numbered)
        text = fact_to_text(state)
        self.size += len(text) + 1
        if self.size <= self._max_chars:
            self._texts[name], self._used = text, len(self._numbers)

    @property
    def names(self) -> list[str]:
        """The names of the states that fit, sorted."""
        return sorted(self._texts)

    def joined(self) -> str:
        """The states that fit, in order of their names, for ``states_from_text``."""
        states = f"[{','.join(self._texts[name] for name in self.names)}]"
        if not self._used:
            return states
        return f'{{"values":[{",".join(list(self._numbers)[: self._used])}],"states":{states}}}'

    def _number(self, value: Any) -> int:
        if id(value) not in self._known:
            text = _ENCODER.encode(value)
            if text not in self._numbers:
                self._numbers[text] = len(self._numbers)
                self.size += len(text) + 1
            self._known[id(value)] = self._numbers[text], value
        return self._known[id(value)][0]


def states_from_text(text: str) -> list[Fact]:
    """The states in a text of :class:`StateTexts`.  Policies that are the same are the same object."""
    stored = json.loads(text)
    if isinstance(stored, list):
        return [fact_from_json(item) for item in stored]
    values, policies = stored["values"], dict[tuple[tuple[str, int], ...], dict[str, Any]]()

    def policy(numbered: dict[str, int]) -> dict[str, Any]:
        key = tuple(numbered.items())
        if key not in policies:
            policies[key] = {name: values[number] for name, number in key}
        return policies[key]

    for item in stored["states"]:
        item["isolation_policies"] = [policy(each) for each in item["isolation_policies"]]
    return [fact_from_json(item) for item in stored["states"]]


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
        by_name = {_name_of(state): (state, at) for state, at in zip(self, self.written.tolist(), strict=True)}
        for state in states:
            name = _name_of(state)
            if name not in by_name or state.version >= by_name[name][0].version:
                by_name[name] = state, closes
        return self._of(by_name)

    def since(self, closes: int) -> Self:
        """A copy without those last written when fewer than *closes* intervals were closed."""
        if not (self.written < closes).any():
            return self
        stored = zip(self, self.written.tolist(), strict=True)
        return self._of({_name_of(state): (state, at) for state, at in stored if at >= closes})

    def for_snapshot(self) -> Self:
        """A copy without ``written``, as snapshots have it."""
        return type(self)(text=self.text)

    def _parsed(self) -> tuple[S, ...]:
        values: Any = _facts(self.text)
        return values  # type: ignore[no-any-return]

    def _of(self, states: dict[str, tuple[S, int]]) -> Self:
        texts = StateTexts(LARGEST)
        for name in sorted(states, key=lambda name: (-states[name][1], name)):
            texts.add(name, states[name][0])
        written = np.array([states[name][1] for name in texts.names], np.int64)
        return type(self)(text=texts.joined(), written=written, dropped=len(states) - len(written))


def _name_of(state: NamespaceState | BrokerState) -> str:
    return state.namespace if isinstance(state, NamespaceState) else state.broker


# The text is the same in nearly every interval.
@lru_cache(maxsize=4)
def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(states_from_text(text))
