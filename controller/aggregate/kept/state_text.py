"""States of namespaces and brokers as one text, in which each list of an isolation policy stands once.

Each namespace's state has the policies that name it, and many have the same ones.  Two policies with 500 brokers each
that name 10,000 namespaces come to 230 MB if each state has them, and to 3 MB here.
"""

import json
from dataclasses import replace
from typing import Any, Final

from controller.aggregate.kept.fact_text import fact_from_json, fact_to_text
from controller.model.records import BrokerState, Fact, NamespaceState

#: The text of no states.
NO_STATES: Final = "[]"
#: Compact, and not escaped, as states are.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class StateTexts:
    """The texts of states that fit into a number of characters: none after the first one that does not."""

    def __init__(self, most: int) -> None:
        self._most = most
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
        if self.size <= self._most:
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
    """The states in a text of :class:`StateTexts`, or in one of an older version, a list of texts of facts.

    Policies that are the same are the same object.
    """
    found = json.loads(text)
    if isinstance(found, list):
        return [fact_from_json(item) for item in found]
    values, policies = found["values"], dict[tuple[tuple[str, int], ...], dict[str, Any]]()

    def policy(numbered: dict[str, int]) -> dict[str, Any]:
        key = tuple(numbered.items())
        if key not in policies:
            policies[key] = {name: values[number] for name, number in key}
        return policies[key]

    for item in found["states"]:
        item["isolation_policies"] = [policy(each) for each in item["isolation_policies"]]
    return [fact_from_json(item) for item in found["states"]]
