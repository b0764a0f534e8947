"""Searches all states of the model, the nearest first: no step breaks a rule, and each state leads to a quiet end."""

import gc
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from tests.protocol.model import Bound, Effects, State, canonical, first_state, is_quiet, steps
from tests.protocol.rules import KINDS, Event, RuleError, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The shortest way to a broken rule."""

    why: str
    #: What happens, step by step.
    trace: Sequence[str]
    #: What the log and the brokers show of it.
    events: Sequence[Event]

    def __str__(self) -> str:
        return "\n".join([*(f"{number:3} {what}" for number, what in enumerate(self.trace, 1)), f"    {self.why}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What was searched."""

    states: int
    steps: int
    #: Steps from the first state to the farthest one.
    depth: int
    broken: Broken | None = None


def search(bound: Bound, most_states: int = 10_000_000) -> Searched:
    """Every state within *bound*.  Ends at the first broken rule: no shorter way leads to one."""
    gc.disable()  # nothing here is garbage, and all of it would be looked at again and again
    try:
        return _search(bound, most_states)
    finally:
        gc.enable()


def _search(bound: Bound, most_states: int) -> Searched:
    first = canonical(first_state(bound))
    found, numbers = [first], {first: 0}
    sources, targets, quiet = array("l"), array("l"), list[int]()
    parents, depth = array("l", [-1]), array("l", [0])
    for number, state in enumerate(found):  # grows meanwhile
        if is_quiet(state, bound):
            quiet.append(number)
        for what, after, effects in steps(state, bound):
            try:
                target = canonical(_with_effects(after, effects))
            except RuleError as error:
                broken = _broken(bound, found, parents, number, str(error), what)
                return Searched(states=len(found), steps=len(sources), depth=depth[number] + 1, broken=broken)
            known = numbers.setdefault(target, len(found))
            if known == len(found):
                found.append(target)
                parents.append(number)
                depth.append(depth[number] + 1)
                if known > most_states:
                    raise MemoryError(f"more than {most_states} states")
            sources.append(number)
            targets.append(known)
    stuck = _stuck(len(found), sources, targets, quiet)
    never = None if stuck is None else _broken(bound, found, parents, stuck, "nothing leads to a quiet end", "")
    return Searched(states=len(found), steps=len(sources), depth=max(depth), broken=never)


def _with_effects(after: State, effects: Effects) -> State:
    ledger = after.ledger
    for command, event in effects:
        ledger = step(ledger, event, command, KINDS)
    return after._replace(ledger=ledger) if effects else after


def _stuck(states: int, sources: Sequence[int], targets: Sequence[int], quiet: Sequence[int]) -> int | None:
    """The nearest state from which no quiet one can be reached."""
    before: list[list[int]] = [[] for _ in range(states)]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    reaches, todo = bytearray(states), list(quiet)
    for each in todo:
        reaches[each] = 1
    while todo:
        for source in before[todo.pop()]:
            if not reaches[source]:
                reaches[source] = 1
                todo.append(source)
    return None if all(reaches) else reaches.index(0)


def _broken(bound: Bound, found: Sequence[State], parents: Sequence[int], last: int, why: str, what: str) -> Broken:
    way = [last]
    while parents[way[-1]] >= 0:
        way.append(parents[way[-1]])
    trace, events = list[str](), list[Event]()
    for one, other in zip(way[:0:-1], way[-2::-1], strict=True):
        for label, after, effects in steps(found[one], bound):
            if canonical(_with_effects(after, effects)) == found[other]:
                trace.append(label)
                events += [event for _, event in effects]
                break
    return Broken(why=why, trace=[*trace, *filter(None, [what])], events=events)
