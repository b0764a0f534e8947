"""Bundles that came to another broker from one interval to the next, and whether a command may have led to it."""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from controller.audit.seen_load import SeenLoad
from controller.model.decision import Command
from controller.model.load import Ints
from controller.model.memory import InFlight
from controller.model.names import namespace_of, parse_bundle

#: A change this long after its command expired was not made by it, in intervals.
_LATEST: Final = 3
#: A bundle that no broker has listed for this long is forgotten.
_FORGOTTEN_MS: Final = 3_600_000


def may_lead_to(command: Command | InFlight, source: str, interval: int, period_ms: int) -> bool:
    """Whether *command*, no dry run, may be why its bundle has left the broker *source* by *interval*, epoch ms."""
    last = command.expires_at_ms + _LATEST * period_ms
    return command.source == source and command.interval < interval <= last


class OwnerChange(NamedTuple):
    """A bundle that came to another broker without a command."""

    #: In which it was seen there, epoch ms.
    interval: int
    bundle: str
    source: str
    destination: str
    #: "broker_left": its broker was no longer active; else "others": a person, a client's lookup, another balancer.
    why: Literal["others", "broker_left"]


class OwnerWatch:
    """See the module docstring.  It keeps the names and owners of one interval."""

    def __init__(self, period_ms: int) -> None:
        self._period_ms = period_ms
        #: Shard -> its roster, names and owners in the last interval.
        self._before: dict[int, _Owners] = {}
        #: Of bundles that no broker lists, those that are gone for longest first.
        self._departed: dict[str, _Departed] = {}
        #: Bundle -> its unloads that may still lead to something; namespace -> its splits.
        self._unloads: dict[str, list[InFlight]] = {}
        self._splits: dict[str, list[InFlight]] = {}

    def issued(self, command: InFlight, *, parts_leave: bool = True) -> None:
        """*command* was decided; *parts_leave*: of a split, whether the parts are unloaded then."""
        if command.dry_run:
            return
        if command.action == "unload":
            self._unloads.setdefault(command.bundle, []).append(command)
        elif parts_leave:
            self._splits.setdefault(namespace_of(command.bundle), []).append(command)

    def take(self, seen_load: SeenLoad) -> list[OwnerChange]:
        """The changes up to *seen_load*, the next interval, that no command explains; by name."""
        self._forget(seen_load.interval)
        owner_before, came, changes = dict[str, str](), list[tuple[str, str]](), list[OwnerChange]()
        for snapshot in seen_load.snapshots:
            # A copy: the column may be a view of the whole blob of its shard.
            now = _Owners(snapshot.roster, snapshot.names, snapshot.owner.copy())
            before = self._before.get(snapshot.shard)
            left_out, new = ([], now.names) if before is None else _differ(before.names, now.names)
            came += [(name, now.of(name)) for name in new]
            if before is not None:
                owner_before |= {name: before.of(name) for name in left_out}
                changes += [self._change(seen_load, *change) for change in _moved(before, now, left_out, new)]
            self._before[snapshot.shard] = now
        for bundle, owner in came:
            departed = self._departed.pop(bundle, None)
            was = owner_before.pop(bundle, "" if departed is None else departed.owner)
            if was not in ("", owner) and not (departed is not None and departed.explained):
                changes.append(self._change(seen_load, bundle, was, owner))
        for bundle, owner in owner_before.items():
            self._departed[bundle] = _Departed(
                owner, seen_load.interval, self._explained(bundle, owner, seen_load.interval)
            )
        return sorted(each for each in changes if not self._explained(each.bundle, each.source, each.interval))

    def _change(self, seen_load: SeenLoad, bundle: str, was: str, now: str) -> OwnerChange:
        return OwnerChange(seen_load.interval, bundle, was, now, "others" if was in seen_load.roster else "broker_left")

    def _explained(self, bundle: str, source: str, interval: int) -> bool:
        """Whether *bundle* may have left *source* by *interval* on a command."""
        if any(may_lead_to(each, source, interval, self._period_ms) for each in self._unloads.get(bundle, ())):
            return True
        return any(
            may_lead_to(each, source, interval, self._period_ms) and _is_part(bundle, each.bundle)
            for each in self._splits.get(namespace_of(bundle), ())
        )

    def _forget(self, interval: int) -> None:
        for bundle, departed in list(self._departed.items()):
            if departed.since >= interval - _FORGOTTEN_MS:
                break  # the others are younger
            del self._departed[bundle]
        for commands in (self._unloads, self._splits):
            for key, command in list(commands.items()):
                command[:] = [each for each in command if interval <= each.expires_at_ms + _LATEST * self._period_ms]
                if not command:
                    del commands[key]


class _Departed(NamedTuple):
    """A bundle that no broker lists: who listed it last, since when (epoch ms), and whether a command may be why."""

    owner: str
    since: int
    explained: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Owners:
    """Who has the bundles of one shard."""

    roster: tuple[str, ...]
    #: Sorted.
    names: list[str]
    #: Rows of the roster.
    owner: Ints

    def of(self, bundle: str) -> str:
        """The owner of *bundle*, which is there."""
        return self.roster[int(self.owner[bisect_left(self.names, bundle)])]

    def without(self, bundles: Collection[str]) -> Ints:
        """All rows but those of *bundles*, which are there."""
        rows = np.ones(len(self.names), np.bool_)
        rows[[bisect_left(self.names, bundle) for bundle in bundles]] = False
        return np.flatnonzero(rows)


def _differ(before: list[str], now: list[str]) -> tuple[Collection[str], Collection[str]]:
    """The names that are not there any more, and those that are new."""
    if before == now:
        return (), ()
    had, have = set(before), set(now)
    return sorted(had - have), sorted(have - had)


def _moved(
    before: _Owners, now: _Owners, departed: Collection[str], new: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Each bundle that both list, with its two owners, where they differ."""
    rows_before, rows = before.without(departed), now.without(new)
    code_of = {name: code for code, name in enumerate(now.roster)}
    # A broker that is not in the roster any more has a code of its own.
    same_code = np.array([code_of.get(name, -1 - code) for code, name in enumerate(before.roster)], np.int64)
    was, owner = before.owner[rows_before], now.owner[rows]
    changed = np.flatnonzero((same_code[was] if len(was) else was) != owner)
    for at in changed.tolist():
        yield now.names[int(rows[at])], before.roster[int(was[at])], now.roster[int(owner[at])]


def _is_part(bundle: str, of: str) -> bool:
    part, whole = parse_bundle(bundle), parse_bundle(of)
    return whole.lower <= part.lower and part.upper <= whole.upper
