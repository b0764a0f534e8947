"""Bundles that came to another broker from one interval to the next, and whether a command may have led to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.audit.seen_load import SeenLoad
from controller.model.decision import Command
from controller.model.load import Ints
from controller.model.names import namespace_of, parse_bundle

#: A change this long after its command expired was not made by it, in intervals.
_LATEST: Final = 3
#: A bundle that no broker has listed for so long is forgotten.
_FORGOTTEN_MS: Final = 3_600_000


def may_lead_to(command: Command, source: str, interval: int, period_ms: int) -> bool:
    """Whether *command* may be why its bundle has left the broker *source* by *interval*, epoch ms."""
    last = command.expires_at_ms + _LATEST * period_ms
    return command.mode == "active" and command.source == source and command.interval < interval <= last


class OwnerChange(NamedTuple):
    """A bundle that came to another broker without a command."""

    #: In which it was seen there, epoch ms.
    interval: int
    bundle: str
    source: str
    destination: str
    #: "broker_left": its broker was no longer active; else "others": a person, a client's lookup, another balancer.
    why: str


class OwnerWatch:
    """See the module docstring.  It keeps the names and owners of one interval."""

    def __init__(self, period_ms: int) -> None:
        self._period_ms = period_ms
        #: Shard -> its roster, names and owners in the last interval.
        self._before: dict[int, _Owners] = {}
        #: Of bundles that no broker lists, those that are gone for longest first.
        self._gone: dict[str, _Gone] = {}
        #: Bundle -> its unloads that may still lead to something; namespace -> its splits.
        self._unloads: dict[str, list[Command]] = {}
        self._splits: dict[str, list[Command]] = {}

    def issued(self, command: Command) -> None:
        """*command* was decided."""
        if command.action == "unload":
            self._unloads.setdefault(command.bundle, []).append(command)
        elif command.unload_after_split:
            self._splits.setdefault(namespace_of(command.bundle), []).append(command)

    def take(self, seen: SeenLoad) -> list[OwnerChange]:
        """The changes up to *seen*, the next interval, that no command explains; by name."""
        self._forget(seen.interval)
        left, came, found = dict[str, str](), list[tuple[str, str]](), list[OwnerChange]()
        for snapshot in seen.snapshots:
            now = _Owners.of(snapshot)
            before = self._before.get(snapshot.shard)
            if before is None:
                came += [(name, now.roster[code]) for name, code in zip(now.names, now.owner.tolist(), strict=True)]
            else:
                found += [self._change(seen, *change) for change in _moved(before, now)]
                left |= dict(before.without(now))
                came += now.without(before)
            self._before[snapshot.shard] = now
        for bundle, owner in came:
            gone = self._gone.pop(bundle, None)
            was = left.pop(bundle, "" if gone is None else gone.owner)
            if was not in ("", owner) and not (gone is not None and gone.explained):
                found.append(self._change(seen, bundle, was, owner))
        for bundle, owner in left.items():
            self._gone[bundle] = _Gone(owner, seen.interval, self._explained(bundle, owner, seen.interval))
        return sorted(each for each in found if not self._explained(each.bundle, each.source, each.interval))

    def _change(self, seen: SeenLoad, bundle: str, was: str, now: str) -> OwnerChange:
        why = "others" if was in seen.roster else "broker_left"
        return OwnerChange(seen.interval, bundle, was, now, why)

    def _explained(self, bundle: str, source: str, interval: int) -> bool:
        """Whether *bundle* may have left *source* by *interval* on a command."""
        if any(may_lead_to(each, source, interval, self._period_ms) for each in self._unloads.get(bundle, ())):
            return True
        return any(
            may_lead_to(each, source, interval, self._period_ms) and _is_part(bundle, each.bundle)
            for each in self._splits.get(namespace_of(bundle), ())
        )

    def _forget(self, interval: int) -> None:
        for bundle, gone in list(self._gone.items()):
            if gone.since >= interval - _FORGOTTEN_MS:
                break  # the others are younger
            del self._gone[bundle]
        for commands in (self._unloads, self._splits):
            for key, held in list(commands.items()):
                held[:] = [each for each in held if interval <= each.expires_at_ms + _LATEST * self._period_ms]
                if not held:
                    del commands[key]


class _Gone(NamedTuple):
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

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Owners":
        return cls(snapshot.roster, snapshot.names, snapshot.owner)

    def without(self, other: "_Owners") -> list[tuple[str, str]]:
        """The bundles that *other* does not have, with their owners."""
        if self.names == other.names:
            return []
        have = set(other.names)
        return [(name, self.roster[int(self.owner[row])]) for row, name in enumerate(self.names) if name not in have]

    def shared(self, other: "_Owners") -> Ints:
        """Rows of the bundles that *other* has, too."""
        if self.names == other.names:
            return np.arange(len(self.names))
        have = set(other.names)
        return np.flatnonzero(np.fromiter((name in have for name in self.names), np.bool_, len(self.names)))


def _moved(before: _Owners, now: _Owners) -> Iterator[tuple[str, str, str]]:
    """Each bundle that both list, with its two owners, where they differ."""
    rows, rows_before = now.shared(before), before.shared(now)
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
