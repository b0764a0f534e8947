"""Values for tests of the pages: a small cluster without a log or a store, and each state that it can be in."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from controller.model.controls import Controls, OrderedMove, Orders, Pause
from controller.model.decision import Reason, Verdict
from controller.model.names import topic_hash
from controller.web.store.values import (
    BreakerState,
    BrokerMeasure,
    BrokerMetric,
    BrokerNow,
    BrokerPast,
    BrokerStates,
    BudgetUse,
    BundlePast,
    ControlEvent,
    ControlPage,
    DecisionDetail,
    DecisionPage,
    DecisionQuery,
    DecisionRow,
    HotMoment,
    HottestTopic,
    InFlightCommand,
    IssuedCommand,
    KeyspaceMetric,
    LatestState,
    Measured,
    NameMatch,
    NamespacePast,
    OwnedSpan,
    Progress,
    RowOrder,
    Series,
    SourceProgress,
    Tile,
    TileRow,
)

MINUTE: Final = 60_000
DAY: Final = 1440 * MINUTE
#: 26 Nov 2026 14:31:00 UTC.
T: Final = 1_795_703_460_000
NOW: Final = T + 22_000
ENDING: Final = ".pulsar-broker-headless.messaging.svc.cluster.local:8080"
NAMESPACES: Final = (
    "telemetry/raw",
    "orders/checkout-events",
    "iot-fleet-emea-production/gateway-heartbeats-v2",
    "billing/ledger",
)
_USAGES: Final = (84, 71, 69, 66, 64, 63, 62, 61, 59, 58, 57, 21)


def broker_name(number: int) -> str:
    """A name as in Kubernetes."""
    return f"pulsar-broker-{number}{ENDING}"


#: One of the two hot topics of every bundle.
HOT_TOPIC: Final = "persistent://telemetry/raw/meters-partition-3"


def bundle_name(number: int, namespaces: Sequence[str] = NAMESPACES) -> str:
    """One of 16 equal ranges of a namespace."""
    lower = number % 16 << 28
    return f"{namespaces[number // 16 % len(namespaces)]}/0x{lower:08x}_0x{min(lower + (1 << 28), 0xFFFFFFFF):08x}"


def brokers_now(count: int = 12, *, limit: float | None = 85.0, goal: float | None = 67.4) -> BrokerStates:
    """Brokers whose usages fall from 84 % to 21 %, or along a curve where they are many."""
    usages = _USAGES if count == 12 else [84 * (1 - 0.75 * (at / max(1, count)) ** 1.5) for at in range(count)]
    nodes = tuple(_node(at, usage) for at, usage in enumerate(usages))
    return BrokerStates(interval=T, limit=limit, goal=goal, brokers=nodes)


def _node(at: int, usage: float) -> BrokerNow:
    return BrokerNow(
        name=broker_name((at * 5 + 4) % 12 if at < 12 else at),
        has_data=True,
        drained=False,
        usage={"cpu": usage, "memory": usage / 2, "directMemory": 20.0, "bandwidthIn": 14.0, "bandwidthOut": 31.0},
        fullest="cpu",
        fullest_usage=usage,
        forecast=usage - 13 if at == 0 else usage + 0.5,
        rate_in=16_000.0,
        rate_out=32_230.0,
        throughput_in=18e6,
        throughput_out=35e6,
        bundles=104,
        topics=3_000,
        connections=1_250,
    )


def latest(**changes: object) -> LatestState:
    """The last interval: three moves under way, nothing in the way."""
    state = LatestState(
        cluster="harbour-eu",
        epoch=7,
        interval=T,
        period_ms=MINUTE,
        decided_at_ms=T + 1_800,
        tick_to_decision_ms=1_800,
        summary="1148 bundles on 12 brokers: 1 splits, 3 unloads",
        controls=Controls(mode="active"),
        budgets=(
            BudgetUse(key="window.unloads", scope="cluster", of="", used=41, limit=1_000, unit=""),
            BudgetUse(key="window.connections", scope="cluster", of="", used=12_480, limit=500_000, unit=""),
            BudgetUse(key="window.unloads_per_source", scope="source", of=broker_name(4), used=168, limit=200, unit=""),
            BudgetUse(key="in_flight", scope="cluster", of="", used=3, limit=200, unit=""),
        ),
        breaker=BreakerState(in_a_row=0, most_in_a_row=10, in_window=1, most_in_window=50, tripped_at=None, why=""),
        in_flight=tuple(
            InFlightCommand(
                id=f"c{at}",
                action="unload",
                bundle=bundle_name(at),
                source=broker_name(4),
                destination=broker_name(7),
                interval=T,
                expires_at_ms=T + 5 * MINUTE,
            )
            for at in range(3)
        ),
        in_flight_total=3,
        joined={},
        departed={},
        brokers_balance="",
        brokers=12,
        brokers_without_data=0,
        bundles=1_148,
        namespaces=6,
        topics=40_000,
        connections=15_000,
        rate=580_000.0,
        throughput=640e6,
        reasons={
            "Overloaded": 1,
            "Balanced": 11,
            "Budget": 6,
            "RecentlyUnloaded": 12,
            "IsolationPolicy": 3,
            "LargePartition": 1,
        },
        pulsar="4.0.3",
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def commands(interval: int = T, count: int = 4) -> tuple[IssuedCommand, ...]:
    """Moves off broker-4, one of which came elsewhere and one of which was undone, and a split."""
    return tuple(_command(interval, at) for at in range(count))


def _command(interval: int, at: int) -> IssuedCommand:
    is_split, is_recent = at == 3, interval > T - 2 * MINUTE
    before = 84.0 - 4 * at
    measured = Measured(
        outcome="elsewhere" if at == 2 else "arrived",
        source=BrokerMeasure(broker=broker_name(4), before=before, promised=before - 4, measured=before - 3.5),
        destination=BrokerMeasure(
            broker=broker_name(7), before=21.0, promised=26.0, measured=21.0 if at == 2 else 25.0
        ),
        came_to=broker_name(2) if at == 2 else "",
        undone=at == 1,
        undone_by="others" if at == 1 else "",
    )
    bundle = bundle_name(at * 17)
    return IssuedCommand(
        id=f"{interval}-{at}",
        interval=interval,
        action="split" if is_split else "unload",
        bundle=bundle,
        namespace=bundle.rpartition("/")[0],
        source=broker_name(4),
        destination="" if is_split else broker_name(7),
        mode="active",
        why=Verdict(
            subject=broker_name(4), reason=Reason.OVERLOADED, observed=0.84, limit=0.674, unit="usage", by="PeakShedder"
        ),
        status="" if is_recent and not is_split else "done",
        detail="",
        started_at=interval + 2_000,
        finished_at=None if is_recent and not is_split else interval + 3_200,
        measured=None if is_recent or is_split else measured,
    )


def verdicts() -> tuple[Verdict, ...]:
    """What was left alone: one of each class."""
    return (
        Verdict(
            subject=bundle_name(2),
            reason=Reason.LARGE_PARTITION,
            observed=0.88,
            limit=0.5,
            unit="",
            by="PeakShedder",
            detail="one topic has 88 % of the load",
        ),
        Verdict(
            subject=bundle_name(20),
            reason=Reason.BUDGET,
            observed=4,
            limit=4,
            unit="unloads",
            by="interval.unloads_per_source",
            detail="held back",
        ),
        Verdict(
            subject=bundle_name(40),
            reason=Reason.RECENTLY_UNLOADED,
            observed=12,
            limit=30,
            unit="min",
            by="PeakShedder",
        ),
        Verdict(
            subject=bundle_name(60),
            reason=Reason.ISOLATION_POLICY,
            by="BrokerIsolationPoliciesFilter",
            detail="the policy allows three brokers, all above the goal",
        ),
        Verdict(
            subject=broker_name(9), reason=Reason.BALANCED, observed=0.66, limit=0.674, unit="usage", by="PeakShedder"
        ),
    )


def decision_row(interval: int, *, number: int = 4, reasons: dict[str, int] | None = None) -> DecisionRow:
    """A decision with *number* commands."""
    statuses = {} if not number else ({"": 3, "done": 1} if interval > T - 2 * MINUTE else {"done": number})
    return DecisionRow(
        interval=interval,
        epoch=7,
        summary=f"1148 bundles on 12 brokers: {'1 splits, 3 unloads' if number else 'nothing to do'}",
        mode="active",
        paused=False,
        commands=number,
        statuses=statuses,
        reasons=reasons
        or {
            "Overloaded": 1,
            "Balanced": 1_102,
            "Budget": 6,
            "RecentlyUnloaded": 15,
            "IsolationPolicy": 14,
            "LargePartition": 7,
        },
    )


def progress(**changes: object) -> Progress:
    """All of seven days is loaded."""
    sources = tuple(
        SourceProgress(source=name, done=1.0, read_until_ms=NOW, refused=0, error="")
        for name in ("summaries", "journal", "results", "controls")
    )
    whole = Progress(complete=True, sources=sources, oldest=T - 7 * DAY, newest=T, missing=0, rebuilt="")
    return replace(whole, **changes)  # type: ignore[arg-type]


def series(names: Sequence[str], points: int = 168) -> Series:
    """A wave of a day for each of *names*, one point an hour, with an hour without data."""
    at = np.arange(T - points * 60 * MINUTE, T, 60 * MINUTE, dtype=np.int64)
    wave = 5_000 + 2_000 * np.sin(np.arange(len(at)) / 24 * 2 * np.pi)
    wave[40] = np.nan
    scale = {
        name: 0.01 if name in ("usage", "cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut") else 1.0
        for name in names
    }
    return Series(at=at, step=np.full(len(at), 60 * MINUTE), values={name: wave * scale[name] for name in names})


@dataclass
class InventedData:
    """Implements ``PageData`` with invented values; tests replace what they are about."""

    state: LatestState | None = field(default_factory=latest)
    nodes: BrokerStates | None = field(default_factory=brokers_now)
    loaded: Progress = field(default_factory=progress)
    namespaces: tuple[str, ...] = NAMESPACES
    details: dict[int, DecisionDetail] = field(default_factory=dict)
    control_events: tuple[ControlEvent, ...] = (
        ControlEvent(at_ms=T - 40 * MINUTE, by="duty-2", action="pause", detail="paused", reason="client upgrade"),
        ControlEvent(at_ms=T - 20 * MINUTE, by="duty-2", action="resume", detail="resumed", reason="upgrade is done"),
    )
    #: Commands of plans, the newest first.
    of_plans: tuple[IssuedCommand, ...] = ()
    #: Seconds that each tile takes.
    slow: float = 0.0
    number: int = 1
    #: Set after *number* has grown.
    changed: threading.Event = field(default_factory=threading.Event)

    def progress(self) -> Progress:
        return self.loaded

    def version(self) -> int:
        return self.number

    def wait(self, version: int, timeout_seconds: float) -> int:
        if self.number == version:
            self.changed.wait(timeout_seconds)
        return self.number

    def latest(self) -> LatestState | None:
        return self.state

    def brokers(self) -> BrokerStates | None:
        return self.nodes

    def broker_tile(
        self, metric: BrokerMetric, since_ms: int, until_ms: int, *, width: int, height: int, order: RowOrder = "usage"
    ) -> Tile:
        names = sorted(node.name for node in self.nodes.brokers) if self.nodes else []
        return self._tile(metric, names, since_ms, until_ms, width, height, "percent" if metric == "usage" else "msg/s")

    def keyspace_tile(
        self,
        metric: KeyspaceMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        namespace: str | None = None,
        owner: str = "",
    ) -> Tile:
        chosen = self.namespaces if namespace is None else (namespace,)
        names = [bundle_name(at, chosen) for at in range(16 * len(chosen))]
        return self._tile(metric, names, since_ms, until_ms, width, height, "" if metric == "owner" else "msg/s")

    def _tile(
        self, metric: str, names: Sequence[str], since_ms: int, until_ms: int, width: int, height: int, unit: str
    ) -> Tile:
        time.sleep(self.slow)
        if since_ms >= until_ms:
            raise ValueError("the span ends before it begins")
        column_ms = max(MINUTE, -(-(until_ms - since_ms) // width // MINUTE) * MINUTE)
        columns = -(-(until_ms - since_ms) // column_ms)
        fold = -(-len(names) // height) if names else 1
        groups = [names[at : at + fold] for at in range(0, len(names), fold)]
        rows = tuple(
            TileRow(name=group[0] if len(group) == 1 else "", count=len(group), first=group[0], last=group[-1])
            for group in groups
        )
        at = (since_ms + np.arange(columns) * column_ms) / DAY * 2 * np.pi
        row = np.arange(len(rows))[:, None]
        cells = np.clip(
            130 + 40 * np.sin(at + row) + 30 * np.sin(row * 7.3) + 12 * np.sin(at * 31 + row * 3), 0, 253
        ).astype(np.uint8)
        if len(rows) > 7:
            cells[7, : columns // 2] = 255
        if len(rows) > 4:
            cells[4, columns * 3 // 4 : columns * 9 // 10] = 235
        top = 100.0 if unit == "percent" else 12_000.0
        values = np.zeros(0) if metric == "owner" else np.arange(255) / 254 * top
        return Tile(
            metric=metric,
            since_ms=since_ms,
            until_ms=until_ms,
            column_ms=column_ms,
            rows=rows,
            cells=cells,
            values=values,
            unit=unit,
            top=top,
            rows_left_out=0,
            final=until_ms < T,
        )

    def moves(self, since_ms: int, until_ms: int, *, limit: int = 90) -> tuple[IssuedCommand, ...]:
        all_of_them = tuple(
            each for interval in self._intervals() for each in commands(interval) if since_ms <= interval < until_ms
        )
        return all_of_them if len(all_of_them) <= limit else ()

    def plan_commands(self, plan: str, *, limit: int = 10_000) -> tuple[IssuedCommand, ...]:
        return tuple(each for each in self.of_plans if each.why.detail.startswith(f"plan {plan[:12]}, "))[:limit]

    def plan_failures(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        return ()

    def undone_moves(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        return ()

    def move_counts(self, since_ms: int, until_ms: int, *, bins: int) -> tuple[int, ...]:
        counts = [0] * bins
        for interval in self._intervals():
            if since_ms <= interval < until_ms:
                counts[(interval - since_ms) * bins // (until_ms - since_ms)] += 4
        return tuple(counts)

    def _intervals(self) -> list[int]:
        return [T - minutes * MINUTE for minutes in (0, 4, 9, 27, 61, 300, 1_500)] if self.state else []

    def _rows(self) -> list[DecisionRow]:
        quiet = {"CoolDown": 1, "Balanced": 11}
        with_commands = {interval: decision_row(interval) for interval in self._intervals()}
        all_minutes = [T - minutes * MINUTE for minutes in range(120)] if self.state else []
        return [with_commands.get(each) or decision_row(each, number=0, reasons=quiet) for each in all_minutes]

    def decisions(self, query: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> DecisionPage:
        rows = [
            row
            for row in self._rows()
            if (row.commands or not query.with_commands) and (query.since_ms is None or row.interval >= query.since_ms)
        ]
        if query.reason:
            rows = [row for row in rows if query.reason in (row.reasons or {})]
        start = int(cursor or 0)
        older = str(start + limit) if start + limit < len(rows) else None
        return DecisionPage(
            rows=tuple(rows[start : start + limit]), cursor=older, newer=str(max(0, start - limit)) if start else None
        )

    def decision(self, interval: int) -> DecisionDetail | None:
        if interval in self.details:
            return self.details[interval]
        row = next((row for row in self._rows() if row.interval == interval), None)
        if row is None or self.state is None:
            return None
        return DecisionDetail(
            row=row,
            decided_at_ms=interval + 1_800,
            tick_to_decision_ms=1_800,
            controls=self.state.controls,
            commands=commands(interval) if row.commands else (),
            verdicts=verdicts(),
            verdicts_total=1_144,
            budgets=self.state.budgets,
            earlier=interval - MINUTE,
            later=interval + MINUTE if interval < T else None,
        )

    def bundle(self, bundle: str, since_ms: int, until_ms: int) -> BundlePast:
        owners = (
            OwnedSpan(owner=broker_name(9), since_ms=T - 7 * DAY, until_ms=T - 4 * DAY),
            OwnedSpan(owner=broker_name(2), since_ms=T - 4 * DAY, until_ms=T - 9 * MINUTE),
            OwnedSpan(owner=broker_name(7), since_ms=T - 9 * MINUTE, until_ms=T),
        )
        namespace = bundle.rpartition("/")[0]
        return BundlePast(
            bundle=bundle,
            namespace=namespace,
            known="nowhere" not in bundle,
            folded=False,
            owner=broker_name(7),
            load=series(("rate", "throughput")),
            owners=owners,
            commands=commands(T - 9 * MINUTE)[:1],
            verdicts=(replace(verdicts()[2], subject=bundle),),
            siblings=tuple(bundle_name(at, (namespace,)) for at in range(16)),
            figures={
                "rate_in": 2_000.0,
                "rate_out": 4_204.0,
                "throughput_in": 14.1e6,
                "throughput_out": 28.4e6,
                "topics": 38,
                "producers": 212,
                "consumers": 428,
            },
            hot_topics=(
                HottestTopic(place=topic_hash(HOT_TOPIC), rate=4_100.0, throughput=30.2e6, share=0.71),
                HottestTopic(place=0x2C0FFEE0, rate=620.0, throughput=2.1e6, share=0.1),
            ),
        )

    def hot_topics(self, bundle: str, since_ms: int, until_ms: int) -> HotMoment | None:
        at = (until_ms - 1) // MINUTE * MINUTE
        topics = self.bundle(bundle, since_ms, until_ms).hot_topics
        return HotMoment(at_ms=at, topics=topics) if topics and since_ms <= at <= T else None

    def broker(self, broker: str, since_ms: int, until_ms: int) -> BrokerPast:
        node = next((each for each in self.nodes.brokers if each.name == broker), None) if self.nodes else None
        return BrokerPast(
            broker=broker,
            known=node is not None,
            now=node,
            load=series(
                (
                    "usage",
                    "cpu",
                    "memory",
                    "directMemory",
                    "bandwidthIn",
                    "bandwidthOut",
                    "rate",
                    "throughput",
                    "connections",
                )
            ),
            commands=commands(T - 9 * MINUTE),
            verdicts=(replace(verdicts()[4], subject=broker),),
            bundles=tuple(bundle_name(at) for at in range(40)),
        )

    def namespace(self, namespace: str, since_ms: int, until_ms: int) -> NamespacePast:
        return NamespacePast(
            bundles_in_all=16,
            namespace=namespace,
            known=namespace in self.namespaces,
            load=series(("rate", "throughput")),
            bundles=tuple((bundle_name(at, (namespace,)), broker_name(at % 12)) for at in range(16)),
            commands=commands(T - 9 * MINUTE),
        )

    def controls(self, *, cursor: str | None = None, limit: int = 50) -> ControlPage:
        return ControlPage(events=self.control_events, cursor=None)

    def search(self, text: str, limit: int = 20) -> tuple[NameMatch, ...]:
        names = [
            *(("broker", node.name) for node in (self.nodes.brokers if self.nodes else ())),
            *(("namespace", name) for name in self.namespaces),
        ]
        return tuple(NameMatch(kind=kind, name=name) for kind, name in names if text in name)[:limit]

    def close(self) -> None:
        pass


def states() -> dict[str, InventedData]:
    """Each state that the controller can be in, by name."""
    pause = Pause(by="duty-2", reason="broker upgrade", at_ms=T - 33 * MINUTE)
    tripped = BreakerState(
        in_a_row=10,
        most_in_a_row=10,
        in_window=14,
        most_in_window=50,
        tripped_at=T - 22 * MINUTE,
        why="10 commands failed in a row, the last an unload to broker-7",
    )
    loading = progress(
        complete=False,
        sources=tuple(replace(each, done=0.4) for each in progress().sources),
        oldest=None,
        newest=None,
    )
    late = T - 19 * MINUTE
    return {
        "normal": InventedData(),
        "breaker": InventedData(state=latest(breaker=tripped)),
        "late": InventedData(state=latest(interval=late, decided_at_ms=late + 1_800)),
        "paused": InventedData(state=latest(controls=Controls(mode="active", paused=True, pauses=(pause,)))),
        "dry_run": InventedData(state=latest(controls=Controls(mode="dry_run"))),
        "empty": InventedData(state=None, nodes=None, loaded=progress(oldest=None, newest=None)),
        "loading": InventedData(state=None, nodes=None, loaded=loading),
        "many": InventedData(state=latest(brokers=1_000, bundles=100_000), nodes=brokers_now(1_000)),
    }


HOSTILE: Final = "</script><img src=x onerror=alert(1)>'\" {{7*7}} \u2028 \u202e"


def hostile() -> InventedData:
    """A cluster in which every text that somebody else chose is an attack."""
    node = replace(brokers_now().brokers[0], name=f"a{HOSTILE}:8080", fullest=HOSTILE)
    nodes = replace(brokers_now(), brokers=(node, *brokers_now().brokers[1:]))
    pause = Pause(by=HOSTILE, reason=HOSTILE, at_ms=T)
    orders = Orders(
        plan=HOSTILE,
        step=1,
        wave=1,
        waves=3,
        moves=(OrderedMove(bundle=HOSTILE, source=HOSTILE, destination=HOSTILE),),
        checked_at=T,
        expires_at_ms=T,
        holder=HOSTILE,
        by=HOSTILE,
    )
    controls = Controls(
        mode="active", paused=True, pauses=(pause,), maintenance=HOSTILE, drained=(HOSTILE,), orders=orders, by=HOSTILE
    )
    breaker = replace(latest().breaker, tripped_at=T, why=HOSTILE)
    budget = BudgetUse(key="window.unloads_per_source", scope="source", of=HOSTILE, used=1, limit=2, unit="")
    state = latest(
        controls=controls,
        breaker=breaker,
        budgets=(budget,),
        summary=HOSTILE,
        joined={HOSTILE: T},
        brokers_balance=HOSTILE,
    )
    why = Verdict(subject=HOSTILE, reason=Reason.OVERLOADED, unit=HOSTILE, observed=1.0, by=HOSTILE, detail=HOSTILE)
    command = replace(
        commands(T - 9 * MINUTE)[0],
        bundle=f"{HOSTILE}/0x00000000_0x10000000",
        source=HOSTILE,
        destination=HOSTILE,
        why=why,
        detail=HOSTILE,
    )
    data = InventedData(state=state, nodes=nodes, namespaces=(HOSTILE,))
    detail = data.decision(T)
    assert detail is not None
    data.details[T] = replace(
        detail,
        commands=(command,),
        verdicts=(why,),
        row=replace(detail.row, summary=HOSTILE, reasons={HOSTILE: 3}, statuses={HOSTILE: 1}),
    )
    event = ControlEvent(at_ms=T, by=HOSTILE, action="apply", detail=HOSTILE, reason=HOSTILE)
    data.control_events = (event, replace(event, action="pause"))
    source = replace(progress().sources[0], source=HOSTILE, error=HOSTILE)
    data.loaded = progress(sources=(source,))
    return data
