"""The owners of bundles in a replay: as recorded, except for bundles that its decisions moved or cut.

    recorded change                      the bundle in the replay
    its broker left                      goes where it went, while all bundles are where they were recorded; else it is
                                         looked up: what was the emptiest broker in the recording need not be so now
    by a command that the replay issued  goes where it went
    by another command                   stays
    by somebody else                     goes where it went; where no journal was recorded, nobody knows, and it stays

A bundle that the replay has elsewhere takes no part in recorded changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.model.names import BundleName, namespace_of, parse_bundle
from controller.offline.counterfactual.partition import Cuts, children
from controller.offline.counterfactual.recorded import RecordedCommands


class PlaceChange(NamedTuple):
    """A bundle that came to another broker."""

    bundle: str
    source: str
    destination: str


@dataclass(slots=True)
class PlaceChanges:
    """What became of recorded changes in one interval of a replay."""

    #: Followed, from brokers that are still there; also of the parts of bundles that were split.
    moves: list[PlaceChange] = field(default_factory=list)
    #: Bundles whose recorded split was followed.
    splits: list[str] = field(default_factory=list)
    #: Bundles that stay whole although the recording split them.
    whole: list[str] = field(default_factory=list)


class Places:
    """See the module docstring."""

    def __init__(self, commands: RecordedCommands, *, follows_all: bool = False) -> None:
        """*follows_all*: everything happens as recorded."""
        self._commands, self._follows_all = commands, follows_all
        #: Ids of recorded commands that the replay issued, too.
        self.followed: set[str] = set()
        #: Bundle -> the broker that has it in the replay, where that is not the recorded one.
        self.elsewhere: dict[str, str] = {}
        #: The recorded cuts, and those of the replay in namespaces where they differ.
        self.recorded_cuts = Cuts()
        self.cuts = Cuts()
        #: Bundle -> the last broker that listed it in the recording.
        self._recorded: dict[str, str] = {}
        self._before: Snapshot | None = None
        #: Whether any bundle was elsewhere before the recorded changes of this interval.
        self._differs = False
        #: Bundles that take no part in this interval's recorded changes: elsewhere before, or moved by a decision.
        self._apart: set[str] = set()

    def advance(self, snapshot: Snapshot) -> PlaceChanges:
        """Take the recorded changes up to *snapshot*, the next one."""
        changed, fresh = self._differences(snapshot)
        roster, changes = set(snapshot.roster), PlaceChanges()
        self._apart |= self.elsewhere.keys()
        self._take_cuts(fresh, snapshot.interval, changes)
        self._forget_what_agrees()
        self._differs = bool(self.elsewhere)
        for change in changed:
            if self._follows(change, snapshot.interval, roster) and change.source in roster:
                changes.moves.append(change)
        self._before = snapshot
        self._apart = set()
        return changes

    def _forget_what_agrees(self) -> None:
        """Forget cuts and places that the recording has now, too."""
        for name in [each for each in self.cuts.of if self.cuts.of[each] == self.recorded_cuts.of.get(each)]:
            del self.cuts.of[name]
        for bundle, broker in list(self.elsewhere.items()):
            if self.exists(bundle):
                self._put(bundle, broker)
            else:
                del self.elsewhere[bundle]

    def owner(self, bundle: str) -> str:
        """The broker that has *bundle*; "" where there is no such bundle."""
        if not self.exists(bundle):
            return ""
        return self.elsewhere.get(bundle) or self._recorded.get(bundle, "")

    def exists(self, bundle: str) -> bool:
        """Whether *bundle* is one in the replay."""
        cuts = self.cuts if namespace_of(bundle) in self.cuts.of else self.recorded_cuts
        return cuts.has(parse_bundle(bundle))

    def put(self, bundle: str, broker: str) -> None:
        """Give *bundle* to *broker*; before ``advance``, by a decision of the replay."""
        self._apart.add(bundle)
        self._put(bundle, broker)

    def _put(self, bundle: str, broker: str) -> None:
        recorded = namespace_of(bundle) not in self.cuts.of or self.recorded_cuts.has(parse_bundle(bundle))
        if recorded and self._recorded.get(bundle) == broker:
            self.elsewhere.pop(bundle, None)
        else:
            self.elsewhere[bundle] = broker

    def split(self, bundle: str, cuts: Iterable[int]) -> list[str]:
        """Cut *bundle* at *cuts*, on the broker that has it; returns its parts."""
        parent, owner = parse_bundle(bundle), self.owner(bundle)
        parts = children(parent, cuts)
        self._differ(parent.namespace)
        self.cuts.add(parent.namespace, cuts)
        self.elsewhere.pop(bundle, None)
        for part in parts:
            self._put(part, owner)
        return parts

    # ---- recorded changes ----

    def _differences(self, snapshot: Snapshot) -> tuple[list[PlaceChange], list[str]]:
        """The listed bundles that another broker has than before, and those that were not listed before."""
        before, rows = self._before, list(range(len(snapshot.names)))
        if before is not None and before.roster == snapshot.roster and before.names == snapshot.names:
            rows = np.flatnonzero(before.owner != snapshot.owner).tolist()
        owners = snapshot.owner.tolist()
        changed, fresh = [], []
        for row in rows:
            bundle, now = snapshot.names[row], snapshot.roster[owners[row]]
            was = self._recorded.get(bundle)
            if was is None:
                fresh.append(bundle)
            elif was != now:
                changed.append(PlaceChange(bundle, was, now))
            self._recorded[bundle] = now
        return changed, fresh

    def _follows(self, change: PlaceChange, interval: int, roster: set[str]) -> bool:
        """Whether the bundle of *change* moves in the replay as well; it is put where it is."""
        bundle, was, _ = change
        if self._follows_all:
            return True
        if not self.exists(bundle) or bundle in self._apart:
            return False
        if self._is_taken("unload", bundle, was, interval) if was in roster else not self._differs:
            return True
        self.elsewhere[bundle] = was
        return False

    def _is_taken(self, action: str, bundle: str, source: str, interval: int) -> bool:
        """Whether what the recording did to *bundle* happens in the replay, too."""
        command = self._commands.behind(action, bundle, source, interval)
        return self._commands.known if command is None else command.id in self.followed

    def _take_cuts(self, fresh: Sequence[str], interval: int, changes: PlaceChanges) -> None:
        """Take the cuts of the *fresh* bundles: those inside of a bundle that was there are its split."""
        new: dict[str, set[int]] = {}
        parents: dict[BundleName, set[int]] = {}
        for name in fresh:
            namespace, *ends = parse_bundle(name)
            for cut in ends:
                parent = self.recorded_cuts.around(namespace, cut)
                if parent is not None and str(parent) in self._recorded:
                    parents.setdefault(parent, set()).add(cut)
                else:
                    new.setdefault(namespace, set()).add(cut)
                    if namespace in self.cuts.of and self.cuts.around(namespace, cut) is None:
                        self.cuts.add(namespace, (cut,))
        for parent, cuts in parents.items():
            self._take_split(parent, cuts, interval, changes)
            new.setdefault(parent.namespace, set()).update(cuts)
        for namespace, cuts in new.items():
            self.recorded_cuts.add(namespace, cuts)

    def _take_split(self, parent: BundleName, cuts: set[int], interval: int, changes: PlaceChanges) -> None:
        name = str(parent)
        if not self.exists(name):
            return
        if not self._follows_all and not self._is_taken("split", name, self._recorded[name], interval):
            self._differ(parent.namespace)
            self.elsewhere.setdefault(name, self._recorded[name])
            changes.whole.append(name)
            return
        changes.splits.append(name)
        parts, was = children(parent, cuts), self._recorded[name]
        remaining = [part for part in parts if name not in self.elsewhere and self._recorded.get(part, was) != was]
        changes.moves += [PlaceChange(part, was, self._recorded[part]) for part in remaining]
        if parent.namespace in self.cuts.of:
            self.cuts.add(parent.namespace, cuts)
        broker = self.elsewhere.pop(name, None)
        if broker is not None:
            self.elsewhere.update(dict.fromkeys(parts, broker))

    def _differ(self, namespace: str) -> None:
        """From now on the replay has cuts of its own in *namespace*."""
        if namespace not in self.cuts.of:
            self.cuts.of[namespace] = list(self.recorded_cuts.of.get(namespace, []))
