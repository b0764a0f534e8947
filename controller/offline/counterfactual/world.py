"""The cluster of a replay: the recorded load, on the brokers that the replayed decisions put it on.

A command that the recording has too, in the same interval, has its recorded fate.  Any other one is carried out after
as many intervals as recorded commands took.  So a replay that decides as recorded sees exactly what was recorded.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.snapshot import Snapshot
from controller.model.bundle_ranges import equal_cuts
from controller.model.decision import Command
from controller.model.load import CPU, RATE_IN, RATE_OUT, Ints
from controller.model.names import namespace_of, parse_bundle
from controller.model.records import CommandResult
from controller.model.topic_kinds import BOTH, NON_PERSISTENT, PERSISTENT
from controller.offline.counterfactual.own_averages import OwnAverages
from controller.offline.counterfactual.partition import BundlePart, parts_of, rows_of
from controller.offline.counterfactual.places import Places
from controller.offline.counterfactual.recorded import RecordedCommands
from controller.offline.counterfactual.replayed_interval import (
    CounterfactualInterval,
    added_to_brokers,
    other_parts,
    with_bundles,
    with_cuts,
    with_near_detail,
    with_usage,
)
from controller.offline.counterfactual.usage_model import UsageModel, drivers_of
from controller.settings.scenario_parts import TurnNumber
from controller.simulator.carrying_out import SimulatedMove, UnderWay


class Lookups:
    """The brokers as of the last interval, and what was looked up since."""

    def __init__(self, last: Snapshot | None, *, evenly: bool) -> None:
        """*evenly*: loadBalancerDistributeBundlesEvenlyEnabled."""
        self._rates: dict[str, float] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        if last is not None:
            average = last.long_term[:, RATE_IN] + last.long_term[:, RATE_OUT]
            rate = np.bincount(last.owner, average, len(last.roster))
            self._rates = dict(zip(last.roster, rate.tolist(), strict=True))
            if evenly:
                owners = [last.roster[owner] for owner in last.owner.tolist()]
                self._counts.update(zip(map(namespace_of, last.names), owners, strict=True))

    def chosen(self, bundle: str, brokers: Sequence[str]) -> str:
        """The one of *brokers*, at least one, that *bundle* goes to."""
        namespace = namespace_of(bundle)
        return min(brokers, key=lambda name: (self._counts[namespace, name], self._rates.get(name, 0.0), name))

    def came(self, bundle: str, broker: str, rate: float) -> None:
        """Remember that *bundle* came to *broker* with *rate*, msg/s in and out."""
        self._rates[broker] = self._rates.get(broker, 0.0) + rate
        if self._counts:
            self._counts[namespace_of(bundle), broker] += 1


def serving(recorded: Snapshot, kinds: int, brokers: Sequence[str]) -> Sequence[str]:
    """Those of *brokers* that serve all *kinds* of topics; all of them where none does."""
    off = set[str]()
    for state in recorded.broker_states:
        served = PERSISTENT * state.persistent_topics | NON_PERSISTENT * state.non_persistent_topics
        if kinds & BOTH & ~served:
            off.add(state.broker)
    return [broker for broker in brokers if broker not in off] or brokers


#: Seconds for which the clients of a bundle wait while it moves: as the simulator's default.
_MOVE_SECONDS = 2.0
#: A bundle that no broker lists because it moves in the recording keeps its last load for this many intervals.
_REMEMBERED = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayedWorldOptions:
    """What all replays of a recording have in common."""

    #: All brokers of the recording, by row.
    brokers: tuple[str, ...]
    model: UsageModel
    period_ms: int
    #: From a command to the interval in which its result comes.
    takes_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    """The last load of a bundle, and in which interval that was."""

    interval: int
    part: BundlePart


class ReplayedWorld:
    """See the module docstring."""

    def __init__(
        self,
        options: ReplayedWorldOptions,
        commands: RecordedCommands,
        detail: DetailLimits,
        *,
        evenly: bool = True,
        follows_all: bool = False,
    ) -> None:
        """*evenly*: loadBalancerDistributeBundlesEvenlyEnabled.  *follows_all*: what was recorded happens."""
        #: As of the last interval: another version of Pulsar may have another default.
        self.evenly = evenly
        self._options, self._commands, self._detail = options, commands, detail
        self._follows_all = follows_all
        self._places = Places(commands, follows_all=follows_all)
        self._code_of = {name: code for code, name in enumerate(options.brokers)}
        self._under_way: list[UnderWay] = []
        #: Ids of commands whose fate is not the recorded one.
        self._mine: set[str] = set()
        self._own = OwnAverages()
        #: What bundles that are elsewhere carried when a broker last listed them.
        self._last: dict[str, _Carried] = {}
        self._unlisted: set[str] = set()
        self._last_replayed: Snapshot | None = None
        self._lookups: Lookups | None = None
        self._number = -1
        self.moves: list[SimulatedMove] = []
        self.splits: list[tuple[int, str]] = []
        self.failures: list[tuple[int, str]] = []

    def live(self, recorded: Snapshot, before: Snapshot | None) -> CounterfactualInterval:
        """Let the interval of *recorded* happen, the one after *before*: what the controller sees."""
        self._number += 1
        # Before lookups, as in the simulator: an unload is done between two sweeps.
        finished = self._finish(recorded)
        changes = self._places.advance(recorded)
        self._splits_happened(changes.splits)
        if before is not None:
            self._own.go_on(before, changes.whole)
        for change in changes.moves:
            self._moved(recorded, *change)
        self._look_up(recorded)
        results = [each for each in recorded.results if each.id not in self._mine]
        self._failed(results)
        results += finished
        replayed = self._replayed(recorded)
        snapshot = with_near_detail(replace(replayed.snapshot, results=tuple(results)), self._detail)
        self._remember(snapshot)
        return replace(replayed, snapshot=snapshot)

    def execute(self, commands: Sequence[Command]) -> None:
        """Begin *commands*, those of the interval that happened last."""
        for command in commands:
            if self._commands.same(command) is not None:
                self._places.followed.add(command.id)
                continue
            self._mine.add(command.id)
            self._under_way.append(UnderWay(due=command.interval + self._options.takes_ms, command=command))

    # ---- events ----

    def _finish(self, recorded: Snapshot) -> list[CommandResult]:
        due = [each.command for each in self._under_way if each.due <= recorded.interval]
        self._under_way = [each for each in self._under_way if each.due > recorded.interval]
        return [self._carried_out(command, recorded) for command in due]

    def _carried_out(self, command: Command, recorded: Snapshot) -> CommandResult:
        owner = self._places.owner(command.bundle)
        status, detail = "done", ""
        if not owner or owner != command.source or owner not in recorded.roster:
            status, detail = "obsolete", f"owned by {owner}" if owner else "no such bundle"
        elif command.mode == "dry_run":
            status = "dry_run"
        elif command.action == "split":
            status, detail = self._split(command, owner, recorded)
        else:
            to = command.destination
            if to not in recorded.roster:
                to = self._looked_up_broker(recorded, command.bundle, but=owner)
            self._moved(recorded, command.bundle, owner, to)
            self._places.put(command.bundle, to)
            if command.destination and to != command.destination:
                status, detail = "failed", f"it went to {to}"
                self.failures.append((self._number, command.bundle))
        after = self._places.owner(command.bundle)
        return CommandResult(id=command.id, status=status, detail=detail, owner_before=owner, owner_after=after)

    def _split(self, command: Command, owner: str, recorded: Snapshot) -> tuple[str, str]:
        _, lower, upper = parse_bundle(command.bundle)
        cuts = [cut for cut in command.boundaries if lower < cut < upper]
        if not cuts and not command.boundaries:
            cuts = list(equal_cuts(lower, upper, 2))
        if not cuts:
            return "failed", "no boundary inside the bundle"
        parts = self._places.split(command.bundle, cuts)
        self._splits_happened([command.bundle])
        self._own.begin(command.bundle, parts)
        for part in parts if command.unload_after_split else ():
            to = self._looked_up_broker(recorded, part)
            if to != owner:
                self._moved(recorded, part, owner, to)
                self._places.put(part, to)
        return "done", ""

    def _failed(self, results: Sequence[CommandResult]) -> None:
        """Count the recorded failures of commands that the replay issued, too."""
        known = self._places.followed
        self.failures += [
            (self._number, each.id)
            for each in results
            if each.status in ("failed", "unknown") and (self._follows_all or each.id in known)
        ]

    def _splits_happened(self, bundles: Sequence[str]) -> None:
        self.splits += [(self._number, bundle) for bundle in bundles]

    def _moved(self, recorded: Snapshot, bundle: str, source: str, to: str) -> None:
        """Count a move of *bundle*."""
        part, model = self._carries(recorded, bundle), self._options.model
        drivers = drivers_of(part.load[None, :], part.counts[1:2], part.counts[2:3])[0]
        self.moves.append(
            SimulatedMove(
                turn=TurnNumber(self._number),
                bundle=bundle,
                namespace=namespace_of(bundle),
                source=self._code_of[source],
                destination=self._code_of[to],
                connections=int(part.counts[1:].sum()),
                messages=float(part.load[RATE_IN]) * _MOVE_SECONDS,
                usage=100 * float(model.added(to, drivers)[CPU]),
            )
        )
        if self._lookups is not None:
            self._lookups.came(bundle, to, float(part.load[RATE_IN] + part.load[RATE_OUT]))

    def _carries(self, recorded: Snapshot, bundle: str) -> BundlePart:
        """What *bundle* carries now, or carried last; nothing of one that is not known."""
        row = bisect_left(recorded.names, bundle)
        if row < len(recorded.names) and recorded.names[row] == bundle:
            return _part_at(recorded, row)
        parts = parts_of(recorded, rows_of(recorded, namespace_of(bundle)), [parse_bundle(bundle)])
        if parts:
            return parts[0]
        last = self._last.get(bundle)
        return last.part if last is not None else _empty(bundle)

    def _look_up(self, recorded: Snapshot) -> None:
        """Give bundles that the replay has on a broker that left to another one, as clients look them up."""
        for bundle, broker in list(self._places.elsewhere.items()):
            if broker not in recorded.roster:
                self._places.put(bundle, self._chosen(recorded, bundle))

    def _looked_up_broker(self, recorded: Snapshot, bundle: str, but: str = "") -> str:
        """The broker that a lookup gives *bundle* to: the recorded one, if the recording has it, not on *but*."""
        row = bisect_left(recorded.names, bundle)
        if row < len(recorded.names) and recorded.names[row] == bundle:
            broker = recorded.roster[int(recorded.owner[row])]
            if broker != but:
                return broker
        return self._chosen(recorded, bundle)

    def _chosen(self, recorded: Snapshot, bundle: str) -> str:
        """The broker that the brokers' own load manager gives *bundle* to."""
        if self._lookups is None:
            self._lookups = Lookups(self._last_replayed, evenly=self.evenly)
        part = self._carries(recorded, bundle)
        brokers = [row.broker for row in recorded.brokers] or recorded.roster
        to = self._lookups.chosen(bundle, serving(recorded, part.kinds, brokers))
        self._lookups.came(bundle, to, float(part.load[RATE_IN] + part.load[RATE_OUT]))
        return to

    # ---- observations ----

    def _replayed(self, recorded: Snapshot) -> CounterfactualInterval:
        places = self._places
        if not places.elsewhere and not places.cuts.of:
            return with_usage(self._own.in_snapshot(recorded), {}, self._options.model)
        is_uncut, parts = other_parts(recorded, places.cuts)
        row_of = {name: row for row, name in enumerate(recorded.names)}
        roster = {name: row for row, name in enumerate(recorded.roster)}
        owner, listed = recorded.owner.copy(), set(recorded.names) | {part.bundle for part in parts}
        for bundle, broker in places.elsewhere.items():
            if bundle in row_of:
                owner[row_of[bundle]] = roster[broker]
            elif bundle not in listed:
                parts += self._still_there(bundle, recorded.interval)
        parts = [part for part in parts if places.owner(part.bundle) in roster]
        owners: Ints = np.array([roster[places.owner(part.bundle)] for part in parts], np.int64)
        replayed = with_cuts(with_bundles(recorded, is_uncut, owner, parts, owners), places.cuts)
        other = {part.bundle for part in parts} | places.elsewhere.keys()
        other |= {recorded.names[row] for row in np.flatnonzero(~is_uncut).tolist()}
        added = added_to_brokers(recorded, replayed, lambda name: name not in other)
        self._own.add([part.bundle for part in parts])
        return with_usage(self._own.in_snapshot(replayed), added, self._options.model)

    def _still_there(self, bundle: str, interval: int) -> list[BundlePart]:
        """*bundle*, which no broker lists now, with its last load, if that is not old."""
        last = self._last.get(bundle)
        if last is None or interval - last.interval > _REMEMBERED * self._options.period_ms:
            return []
        self._unlisted.add(bundle)
        return [last.part]

    def _remember(self, replayed: Snapshot) -> None:
        """Keep what is needed of the next interval."""
        self._last_replayed, self._lookups = replayed, None
        elsewhere, row_of = self._places.elsewhere, {}
        if elsewhere:
            row_of = {name: row for row, name in enumerate(replayed.names)}
        self._last = {
            bundle: _Carried(interval=replayed.interval, part=_part_at(replayed, row_of[bundle]))
            if bundle in row_of and bundle not in self._unlisted
            else self._last[bundle]
            for bundle in elsewhere
            if bundle in row_of or bundle in self._last
        }
        self._unlisted = set()


def _part_at(snapshot: Snapshot, row: int) -> BundlePart:
    counts = np.array([snapshot.topics[row], snapshot.producers[row], snapshot.consumers[row]], np.int64)
    return replace(_empty(snapshot.names[row]), load=snapshot.load[row], counts=counts, kinds=int(snapshot.kinds[row]))


def _empty(bundle: str) -> BundlePart:
    return BundlePart(
        bundle=bundle,
        load=np.zeros(4),
        counts=np.zeros(3, np.int64),
        kinds=0,
        position=np.zeros(0, np.int64),
        topic_load=np.zeros((0, 4)),
        segment=np.zeros(0, np.int64),
    )
