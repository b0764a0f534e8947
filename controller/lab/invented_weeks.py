"""Invented weeks: summaries, decisions, results and controls of a cluster that never was, written by the real writers.

For tests, demos and measurements of the page.  The same arguments always give the same log.  Load follows the hours of
the day, one broker after the other becomes too full and gives bundles away, some commands fail, bundles are split, and
on the third day a broker is gone for half an hour.

    week = InventedWeek(brokers=3, bundles=60, days=7)
    week.write(log)                     # any Log of controller.log.port; memory: MemoryServer(now_ms=week.now_ms)
    controls = week.controls()          # what people did meanwhile
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.log.journal import LogJournal
from controller.log.port import Log, Out
from controller.log.summaries import SummaryLog
from controller.model.controls import ControlChange, Controls, OperatorControls
from controller.model.decision import CLUSTER, Action, Command, Decision, Reason, UsageOutlook, Verdict
from controller.model.journal import JournalEntry
from controller.model.load import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    TopicDetail,
)
from controller.model.memory import InFlight, Issued, Memory, Roster
from controller.model.names import default_boundaries, namespace_of, parse_bundle, topic_hash
from controller.model.summary import MOST_BUNDLES, MoveSide, OutcomeOfMove
from controller.model.topic_kinds import PERSISTENT
from controller.wire.base import encode
from controller.wire.results import Result

#: 2026-06-01 00:00 UTC, a Monday.
END_MS: Final = 1_780_272_000_000
_HOUR_MS: Final = 3_600_000
_LIMIT: Final = 0.85
_GOAL: Final = 0.8
_EPOCH: Final = 7
#: How long a broker that is gone stays away.
_AWAY_MS: Final = _HOUR_MS // 2
#: Of commands: every so many fails.
_EVERY_FAILS: Final = 29
_SPLITS_EVERY_MS: Final = 6 * _HOUR_MS
_SHARES: Final = np.array([1.0, 0.3, 0.55, 0.7, 0.9])
#: Of a busy bundle's load, by each of the topics that are known one by one.
_TOPIC_SHARES: Final = np.array([0.6, 0.25, 0.1, 0.05])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """One interval of the week."""

    view: ClusterView
    commands: tuple[Command, ...]
    verdicts: tuple[Verdict, ...]
    outcomes: tuple[OutcomeOfMove, ...]
    outlook: UsageOutlook


@dataclass
class InventedWeek:
    """See the module docstring."""

    brokers: int = 3
    bundles: int = 60
    namespaces: int = 0
    """0: one for about twenty bundles."""
    days: float = 7
    period_ms: int = 60_000
    end_ms: int = END_MS
    seed: int = 0
    cluster: str = "invented"
    #: The clock of what was written last; the log's, where it has none of its own.
    clock_ms: int = 0
    #: T of the measurement -> commands, and the usage of their sources and destinations before, percent.
    _moved: dict[int, list[tuple[Command, float, float]]] = field(default_factory=dict)
    _limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        count = self.namespaces or max(1, self.bundles // 20)
        sizes = np.full(count, self.bundles // count) + (np.arange(count) < self.bundles % count)
        self._names = sorted(
            f"tenant-{number % 7}/app-{number:04d}/0x{lower:08x}_0x{upper:08x}"
            for number, size in enumerate(sizes.tolist())
            for lower, upper in zip(*(default_boundaries(size)[i:] for i in (0, 1)), strict=False)
        )
        self._owner: Ints = self._random.permutation(np.arange(len(self._names)) % self.brokers)
        self._base: Floats = self._random.lognormal(0.0, 0.8, len(self._names)) * 200_000
        self._broker_names = tuple(f"broker-{each:04d}.example:8080" for each in range(self.brokers))
        self._tables()

    def now_ms(self) -> int:
        """The clock of the invented cluster, epoch ms."""
        return self.clock_ms

    def write(self, log: Log, *, newest_only: int | None = None) -> None:
        """Write the week to *log*; *newest_only*: only so many of its last intervals."""
        journal = LogJournal(log, cluster=self.cluster)
        summaries = SummaryLog(log)
        log.partitions("results", "summaries")
        self.clock_ms = self.start_ms - self.period_ms
        journal.open()
        journal.begin_epoch(_EPOCH)
        skipped = 0 if newest_only is None else self.intervals - newest_only
        memory = Memory(roster=Roster(brokers=self._broker_names))
        for number, made in enumerate(self._intervals()):
            interval = made.view.as_of_ms
            memory = self._memory(memory, made)
            if number < skipped:
                continue
            self.clock_ms = interval + 20_000
            summary = f"{len(made.view.bundles)} bundles on {len(made.view.brokers)} brokers: " + (
                f"{len(made.commands)} unloads" if made.commands else "nothing to do"
            )
            decision = Decision(
                interval=interval,
                commands=made.commands,
                verdicts=made.verdicts,
                summary=summary,
                outlook=made.outlook,
            )
            entry = JournalEntry(
                cluster=self.cluster, decision=decision, memory=memory, controls=Controls(mode="active")
            )
            journal.append(entry, epoch=_EPOCH, issued_at_ms=self.clock_ms, before_commit=lambda: None)
            summaries.write(
                summary_of(
                    made.view,
                    entry,
                    self._limits,
                    period_ms=self.period_ms,
                    epoch=_EPOCH,
                    decided_at_ms=self.clock_ms,
                    tick_to_decision_ms=120,
                    outcomes=made.outcomes,
                )
            )
            self._answer(log, made.commands)

    @property
    def intervals(self) -> int:
        """How many the week has."""
        return int(self.days * 24 * _HOUR_MS / self.period_ms)

    @property
    def start_ms(self) -> int:
        """T of the first interval."""
        return self.end_ms // self.period_ms * self.period_ms - self.intervals * self.period_ms

    def controls(self) -> OperatorControls:
        """What people did meanwhile."""
        third = self.start_ms + int(self.days * 24 * _HOUR_MS) // 3
        return OperatorControls(
            history=(
                ControlChange(at_ms=self.start_ms + 60_000, by="ada", action="mode", detail="active"),
                ControlChange(at_ms=third, by="grace", action="pause", reason="upgrade of the bookies"),
                ControlChange(at_ms=third + 1_800_000, by="grace", action="resume"),
            )
        )

    # ---- how the cluster goes on ----

    def _intervals(self) -> Iterator[_Interval]:
        every = max(1, 20 * 60_000 // self.period_ms)
        for number in range(self.intervals):
            interval = self.start_ms + number * self.period_ms
            if number and interval % _SPLITS_EVERY_MS < self.period_ms:
                self._split_busiest()
            view, usage = self._view(interval)
            due = number % every == every // 2
            commands = self._moves(view, usage, interval) if due else ()
            yield _Interval(
                view=view,
                commands=commands,
                verdicts=self._verdicts(view, usage, commands),
                outcomes=tuple(self._outcomes(view, usage, interval)),
                outlook=self._outlook(view, usage, interval),
            )
            for command in commands:
                if not self._fails(command):
                    row = view.bundles.code_of[command.bundle]
                    self._owner[row] = self._broker_names.index(command.destination)

    def _tables(self) -> None:
        spaces = [namespace_of(name) for name in self._names]
        self._spaces = tuple(sorted(set(spaces)))
        code_of = {name: code for code, name in enumerate(self._spaces)}
        self._namespace = np.array([code_of[name] for name in spaces], np.int64)
        count = len(self._names)
        self._topics = np.full(count, 8, np.int64)
        self._full = np.full(count, SHORT_TERM_SAMPLES, np.int64), np.full(count, LONG_TERM_SAMPLES, np.int64)
        self._kinds = np.full(count, PERSISTENT, np.uint8)
        self._busiest = np.sort(np.argsort(-self._base, kind="stable")[:MOST_BUNDLES])
        self._topics_known = np.zeros(count, np.int64)
        self._topics_known[self._busiest] = len(_TOPIC_SHARES)
        self._places = np.array(
            [
                topic_hash(f"persistent://{namespace_of(self._names[row])}/topic-{row}-{nth}")
                for row in self._busiest.tolist()
                for nth in range(len(_TOPIC_SHARES))
            ],
            np.int64,
        )
        self._tuple = tuple(self._names)

    def _split_busiest(self) -> None:
        """The busiest bundle becomes two."""
        row = int(np.argmax(self._base))
        bundle = parse_bundle(self._names[row])
        if bundle.upper - bundle.lower < 2:
            return
        middle = (bundle.lower + bundle.upper) // 2
        halves = [(bundle.lower, middle), (middle, bundle.upper)]
        self._names[row : row + 1] = [f"{bundle.namespace}/0x{low:08x}_0x{high:08x}" for low, high in halves]
        self._base = np.insert(self._base, row, self._base[row] * 0.45)
        self._base[row + 1] *= 0.55
        self._owner = np.insert(self._owner, row, self._owner[row])
        self._tables()

    def _view(self, interval: int) -> tuple[ClusterView, Floats]:
        """The view, and (brokers,) the usage, a fraction."""
        absent = self._absent(interval)
        hour = interval % (24 * _HOUR_MS) / _HOUR_MS
        day = 0.65 + 0.35 * np.sin((hour - 9.0) / 24.0 * 2 * np.pi + self._namespace % 5 / 4.0)
        noise = 0.85 + 0.3 * self._random.random(len(self._names))
        traffic = self._base * day * noise
        load = np.stack([traffic / 1000, traffic / 800, traffic, traffic * 1.3], axis=1)
        owner = np.where(self._owner == absent, (self._owner + 1) % self.brokers, self._owner)
        there = [each for each in range(self.brokers) if each != absent]
        row_of = np.cumsum(np.arange(self.brokers) != absent) - 1
        broker = row_of[owner]
        total = np.bincount(broker, weights=traffic, minlength=len(there))
        capacity = self._base.sum() / self.brokers * 1.35
        usage = np.minimum(total / capacity, 1.2)
        brokers = self._broker_table(there, broker, load, usage)
        clients = (traffic / 40_000).astype(np.int64)
        topic_load = load[self._busiest, np.newaxis, :] * _TOPIC_SHARES[:, np.newaxis]
        bundles = BundleTable(
            names=self._tuple,
            namespaces=self._spaces,
            namespace=self._namespace,
            broker=broker,
            load=load,
            short_term=load,
            long_term=load,
            short_samples=self._full[0],
            long_samples=self._full[1],
            topics=self._topics,
            producers=clients,
            consumers=clients,
            kinds=self._kinds,
            detail=TopicDetail.of(self._topics_known, self._places, topic_load.reshape(-1, 4)),
        )
        view = ClusterView(
            as_of_ms=interval,
            brokers=brokers,
            missing=() if absent is None else (self._broker_names[absent],),
            bundles=bundles,
            recently_unloaded=np.zeros(len(bundles), np.bool_),
            namespace_bundle_count=np.bincount(self._namespace, minlength=len(self._spaces)),
        )
        return view, usage

    def _broker_table(self, there: list[int], broker: Ints, load: Floats, usage: Floats) -> BrokerTable:
        counts = np.bincount(broker, minlength=len(there))
        sums = np.zeros((len(there), 4))
        for column in range(4):
            sums[:, column] = np.bincount(broker, weights=load[:, column], minlength=len(there))
        return BrokerTable(
            names=tuple(self._broker_names[each] for each in there),
            usage=100.0 * usage[:, None] * _SHARES,
            limit=np.full((len(there), 5), 100.0),
            load=sums,
            long_term=sums,
            preallocated_rate=np.zeros(len(there)),
            bundle_count=counts,
            topic_count=counts * 8,
        )

    def _absent(self, interval: int) -> int | None:
        since = self.start_ms + 2 * 24 * _HOUR_MS + 9 * _HOUR_MS
        return 1 if self.brokers > 2 and since <= interval < since + _AWAY_MS else None

    def _moves(self, view: ClusterView, usage: Floats, interval: int) -> tuple[Command, ...]:
        """The fullest broker gives its two busiest bundles to the emptiest one."""
        source, destination = int(np.argmax(usage)), int(np.argmin(usage))
        rows = view.bundles.of_broker(source)
        if source == destination or len(rows) < 3:
            return ()
        busiest = rows[np.argsort(-view.bundles.load[rows, 2], kind="stable")[1:3]]
        names = view.brokers.names
        why = Verdict(
            subject=names[source],
            reason=Reason.OVERLOADED,
            observed=float(usage[source]),
            limit=_LIMIT,
            unit="usage",
            by="PeakShedder",
        )
        action: Action = "unload"
        commands = tuple(
            Command(
                id=f"{interval}-{row}",
                action=action,
                cluster=self.cluster,
                bundle=view.bundles.names[row],
                interval=interval,
                expires_at_ms=interval + 600_000,
                mode="active",
                source=names[source],
                destination=names[destination],
                why=why,
            )
            for row in busiest.tolist()
        )
        before = 100.0 * float(usage[source]), 100.0 * float(usage[destination])
        self._moved[interval + 2 * self.period_ms] = [(command, *before) for command in commands]
        return commands

    def _verdicts(self, view: ClusterView, usage: Floats, commands: tuple[Command, ...]) -> tuple[Verdict, ...]:
        names = view.brokers.names
        taken = {command.source for command in commands}
        about = [
            Verdict(
                subject=name,
                reason=Reason.OVERLOADED if name in taken else Reason.BALANCED,
                observed=share,
                limit=_LIMIT,
                unit="usage",
                by="PeakShedder",
            )
            for name, share in zip(names, usage.tolist(), strict=True)
        ]
        recent = [
            Verdict(subject=name, reason=Reason.RECENTLY_UNLOADED, by="grace period", detail="30 min are not over")
            for name in view.bundles.names[:5]
        ]
        summary = Verdict(subject=CLUSTER, reason=Reason.BUDGET, observed=12, limit=40, unit="unloads", by="guardrails")
        return (*about, *recent, summary)

    def _outlook(self, view: ClusterView, usage: Floats, interval: int) -> UsageOutlook:
        """Usage follows the hour of the day; half an hour later it is as far up or down as the day goes then."""
        hour = interval % (24 * _HOUR_MS) / _HOUR_MS
        slope = 0.05 * np.cos((hour - 9.0) / 24.0 * 2 * np.pi)
        foreseen = np.clip(usage * (1 + slope), 0.0, 1.2)
        return UsageOutlook(
            limit=_LIMIT, goal=_GOAL, forecast=dict(zip(view.brokers.names, foreseen.tolist(), strict=True))
        )

    def _outcomes(self, view: ClusterView, usage: Floats, interval: int) -> Iterator[OutcomeOfMove]:
        row_of = view.brokers.code_of
        for number, (command, *before) in enumerate(self._moved.pop(interval, ())):
            failed = self._fails(command)
            sides = []
            for side, name in enumerate((command.source, command.destination)):
                measured = 100.0 * float(usage[row_of[name]]) if name in row_of else None
                # One promise in eight is missed, as is that of each move that failed.
                off = 5.0 if failed or (interval // self.period_ms + number) % 8 == 0 else 0.8
                promised = None if measured is None else measured + (off if side else -off)
                sides.append(MoveSide(broker=name, before=before[side], promised=promised, measured=measured))
            yield OutcomeOfMove(
                id=command.id,
                outcome="stayed" if failed else "arrived",
                source=sides[0],
                destination=sides[1],
                came_to="" if failed else command.destination,
            )

    def _memory(self, before: Memory, made: _Interval) -> Memory:
        interval = made.view.as_of_ms
        issued: Mapping[str, Issued] = {
            key: each for key, each in before.issued.items() if each.interval > interval - _HOUR_MS
        } | {
            each.id: Issued(
                action="unload",
                namespace=namespace_of(each.bundle),
                source=each.source,
                destination=each.destination,
                connections=10,
                interval=interval,
            )
            for each in made.commands
        }
        flights = {
            each.id: InFlight(
                action="unload",
                bundle=each.bundle,
                source=each.source,
                destination=each.destination,
                interval=interval,
                expires_at_ms=each.expires_at_ms,
            )
            for each in made.commands
        }
        return Memory(
            last_interval=interval,
            samples=before.samples + 1,
            issued=issued,
            in_flight=flights,
            roster=Roster(brokers=tuple(sorted((*made.view.brokers.names, *made.view.missing)))),
        )

    def _fails(self, command: Command) -> bool:
        return int(command.id.partition("-")[0]) // self.period_ms % _EVERY_FAILS == 0

    def _answer(self, log: Log, commands: tuple[Command, ...]) -> None:
        for command in commands:
            failed = self._fails(command)
            result = Result(
                cluster=self.cluster,
                id=command.id,
                status="failed" if failed else "done",
                detail="the broker did not answer" if failed else "",
                owner_before=command.source,
                owner_after=command.source if failed else command.destination,
                started_at=self.clock_ms,
                finished_at=self.clock_ms + 800,
                attempts=3 if failed else 1,
            )
            key = namespace_of(command.bundle).encode()
            log.append([Out("results", encode(result), key=key)], within_seconds=30.0)
