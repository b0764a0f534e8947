"""Whether calls of several clients, which overlap, could have taken effect one after the other.

The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with Lowe's memory of what was
tried ("Testing for Linearizability", 2017): a call may come next if none of the others had returned before it began.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, Protocol, TypeAlias


class _Unknown:
    """The result of a call that was never answered: it takes effect once, at any later time, or never."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()
#: Of the object that is called.
State: TypeAlias = Any


class Call(NamedTuple):
    """One call of one client."""

    client: str
    #: What is called: see the objects below.
    name: str
    argument: Any
    result: Any
    #: Any numbers that grow.  *returned* None: it never did.
    invoked: int
    returned: int | None


class Sequential(Protocol):
    """An object, as it behaves where calls do not overlap."""

    def first(self) -> State:
        """What it holds at first."""
        ...

    def after(self, state: State, call: Call) -> Iterable[State]:
        """What it may hold after *call*, if that can have its result here; nothing if it cannot."""
        ...


class Register:
    """A value that is read, written, or replaced where it is what the client thinks.

    ``read`` -> value; ``write`` (value); ``cas`` (old, new) -> whether it was replaced.
    """

    def __init__(self, value: object = None) -> None:
        self._value = value

    def first(self) -> State:
        """See Sequential."""
        return self._value

    def after(self, state: State, call: Call) -> Iterable[State]:
        """See Sequential."""
        if call.name == "read":
            return [state] if call.result in (UNKNOWN, state) else []
        if call.name == "write":
            return [call.argument]
        old, new = call.argument
        return [new if state == old else state] if call.result in (UNKNOWN, state == old) else []


class Highest:
    """A number that only grows: ``read`` -> number; ``raise`` (number)."""

    def first(self) -> State:
        """See Sequential."""
        return 0

    def after(self, state: State, call: Call) -> Iterable[State]:
        """See Sequential."""
        if call.name == "raise":
            return [max(state, call.argument)]
        return [state] if call.result in (UNKNOWN, state) else []


class Fencing:
    """An election: who claims gets a number above all others, and from then on the check of the one before fails.

    ``claim`` (a number that the client knows, or None) -> number; ``check`` -> whether it leads; ``release``; ``raise``
    (number) and ``read`` -> number, as of ``Highest``.  Somebody may lose the lead at any time, so a check or a claim
    that fails (False) says nothing.
    """

    def first(self) -> State:
        """See Sequential."""
        return 0, ""

    def after(self, state: State, call: Call) -> Iterable[State]:
        """See Sequential."""
        number, leader = state
        if call.name == "claim":
            claimed = max(number, call.argument or 0) + 1 if call.result is UNKNOWN else call.result
            return [state] if claimed is False else [(claimed, call.client)] if claimed > number else []
        if call.name == "check":
            return [state] if call.result is not True or leader == call.client else []
        if call.name == "release":
            return [(number, "" if leader == call.client else leader)]
        if call.name == "raise":
            return [(call.argument, "") if call.argument > number else state]
        return [state] if call.result in (UNKNOWN, number) else []


class Mutex:
    """A lock without numbers: ``acquire`` -> whether it was free; ``release``."""

    def first(self) -> State:
        """See Sequential."""
        return ""

    def after(self, state: State, call: Call) -> Iterable[State]:
        """See Sequential."""
        if call.name == "release":
            return [""] if state == call.client else []
        return [state or call.client] if call.result in (UNKNOWN, not state) else []


@dataclass(frozen=True, slots=True)
class NotLinearizable:
    """The calls up to the first one whose return leaves no order, and the longest order that was found before it."""

    calls: Sequence[Call]
    order: Sequence[Call]

    def __str__(self) -> str:
        return "\n".join(["no order of these calls is possible:", *(f"  {call}" for call in self.calls)])


def check(spec: Sequential, calls: Sequence[Call]) -> NotLinearizable | None:
    """None where *calls* can be put in an order; else the shortest beginning of them that cannot."""
    if _order(spec, calls)[0]:
        return None
    ends = sorted(call.returned for call in calls if call.returned is not None)
    low, high = 0, len(ends) - 1
    while low < high:  # more calls never make an order possible
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _order(spec, _until(calls, ends[middle]))[0] else (low, middle)
    shortest = _until(calls, ends[low])
    return NotLinearizable(shortest, _order(spec, shortest)[1])


def _until(calls: Sequence[Call], end: int) -> list[Call]:
    """What is known of *calls* at *end*."""
    return [
        call if call.returned is not None and call.returned <= end else call._replace(returned=None, result=UNKNOWN)
        for call in calls
        if call.invoked <= end
    ]


def _order(spec: Sequential, calls: Sequence[Call]) -> tuple[bool, list[Call]]:
    """Whether there is an order, and the longest that was found.  Calls without a return may be left out."""
    calls = sorted(calls, key=lambda call: call.invoked)
    wanted = sum(1 << at for at, call in enumerate(calls) if call.returned is not None)
    tried, longest = set[tuple[int, State]](), (0, ())
    todo: list[tuple[int, State, tuple[int, tuple[Any, ...]]]] = [(0, spec.first(), (0, ()))]
    while todo:
        done, state, order = todo.pop()
        longest = order if order[0] > longest[0] else longest
        if done & wanted == wanted:
            return True, _listed(order[1])
        for at in _next(calls, done):
            pending = calls[at].returned is None
            for after in spec.after(state, calls[at]):
                key = done | 1 << at, after
                if key not in tried and not (pending and after == state):
                    tried.add(key)
                    todo.append((*key, (order[0] + 1, (calls[at], order[1]))))
    return False, _listed(longest[1])


def _next(calls: Sequence[Call], done: int) -> Iterable[int]:
    """The calls that may come next: none of those that are left had returned before they began.

    The one that returned first is tried first, and so is the last here; those without a return are tried last.
    """
    remaining = [at for at in range(len(calls)) if not done >> at & 1]
    end = {at: returned if (returned := calls[at].returned) is not None else inf for at in remaining}
    first_return = min(end.values(), default=inf)
    return sorted((at for at in remaining if calls[at].invoked <= first_return), key=lambda at: -end[at])


def _listed(order: tuple[Any, ...]) -> list[Call]:
    found = list[Call]()
    while order:
        call, order = order
        found.append(call)
    return found[::-1]


def with_values(calls: Iterable[Call], absent: object) -> list[Call]:
    """Calls of a store with versions, as those of a ``Register``.

    ``read`` -> (value, version) becomes -> value; ``cas`` (version, new) gets the value that was read with the version.
    *absent*: the version of what nobody has written, whose value is None.
    """
    calls = list(calls)
    reads = [call.result for call in calls if call.name == "read" and call.result is not UNKNOWN]
    value_of = {absent: None, **{version: value for value, version in reads}}
    found = list[Call]()
    for call in calls:
        if call.name == "read":
            found.append(call if call.result is UNKNOWN else call._replace(result=call.result[0]))
        else:
            version, new = call.argument
            found.append(call._replace(argument=(value_of[version], new)))
    return found
