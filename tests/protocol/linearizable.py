"""Whether calls of several clients, which overlap, could have taken effect one after the other.

The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with Lowe's memory of what was
tried ("Testing for Linearizability", 2017): a call may come next if none of the others had returned before it began.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias


class _Unknown:
    """The result of a call that was never answered: it takes effect once, at any later time, or never."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()
#: What the object that is called holds.
Held: TypeAlias = Any


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

    def first(self) -> Held:
        """What it holds at first."""
        ...

    def after(self, held: Held, call: Call) -> Iterable[Held]:
        """What it may hold after *call*, if that can have its result here; nothing if it cannot."""
        ...


class Register:
    """A value that is read, written, or replaced where it is what the client thinks.

    ``read`` -> value; ``write`` (value); ``cas`` (old, new) -> whether it was replaced.
    """

    def __init__(self, value: object = None) -> None:
        self._value = value

    def first(self) -> Held:
        """See Sequential."""
        return self._value

    def after(self, held: Held, call: Call) -> Iterable[Held]:
        """See Sequential."""
        if call.name == "read":
            return [held] if call.result in (UNKNOWN, held) else []
        if call.name == "write":
            return [call.argument]
        old, new = call.argument
        return [new if held == old else held] if call.result in (UNKNOWN, held == old) else []


class Highest:
    """A number that only grows: ``read`` -> number; ``raise`` (number)."""

    def first(self) -> Held:
        """See Sequential."""
        return 0

    def after(self, held: Held, call: Call) -> Iterable[Held]:
        """See Sequential."""
        if call.name == "raise":
            return [max(held, call.argument)]
        return [held] if call.result in (UNKNOWN, held) else []


class Fencing:
    """An election: who claims gets a number above all others, and from then on the check of the one before fails.

    ``claim`` -> number; ``check`` -> whether it leads; ``release``; ``raise`` (number) and ``read`` -> number, as of
    ``Highest``.  Somebody may lose the lead at any time, so a check or a claim that fails (False) says nothing.
    """

    def first(self) -> Held:
        """See Sequential."""
        return 0, ""

    def after(self, held: Held, call: Call) -> Iterable[Held]:
        """See Sequential."""
        number, leader = held
        if call.name == "claim":
            claimed = number + 1 if call.result is UNKNOWN else call.result
            return [held] if claimed is False else [(claimed, call.client)] if claimed > number else []
        if call.name == "check":
            return [held] if call.result is not True or leader == call.client else []
        if call.name == "release":
            return [(number, "" if leader == call.client else leader)]
        if call.name == "raise":
            return [(call.argument, "") if call.argument > number else held]
        return [held] if call.result in (UNKNOWN, number) else []


class Mutex:
    """A lock without numbers: ``acquire`` -> whether it was free; ``release``."""

    def first(self) -> Held:
        """See Sequential."""
        return ""

    def after(self, held: Held, call: Call) -> Iterable[Held]:
        """See Sequential."""
        if call.name == "release":
            return [""] if held == call.client else []
        return [held or call.client] if call.result in (UNKNOWN, not held) else []


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
    tried, longest = set[tuple[int, Held]](), list[Call]()
    todo: list[tuple[int, Held, tuple[Any, ...]]] = [(0, spec.first(), ())]
    while todo:
        done, held, order = todo.pop()
        if done & wanted == wanted:
            return True, _listed(order)
        if len(found := _listed(order)) > len(longest):
            longest = found
        for at in _next(calls, done):
            for after in spec.after(held, calls[at]):
                key = done | 1 << at, after
                if key not in tried:
                    tried.add(key)
                    todo.append((*key, (calls[at], order)))
    return False, longest


def _next(calls: Sequence[Call], done: int) -> Iterable[int]:
    """The calls that may come next: none of those that are left had returned before they began."""
    left = [at for at in range(len(calls)) if not done >> at & 1]
    first_return = min((end for at in left if (end := calls[at].returned) is not None), default=None)
    return [at for at in left if first_return is None or calls[at].invoked <= first_return]


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
