"""A store that knows two brokers, a namespace with a bundle, and one decision, and never changes by itself."""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controller.model.controls import Controls, Pause
from controller.model.decision import Reason, Verdict
from controller.web.store.values import (
    BreakerState,
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
    IssuedCommand,
    LatestState,
    NameMatch,
    NamespacePast,
    OwnedSpan,
    Progress,
    Series,
    SourceProgress,
    Tile,
)

T = 1_735_689_600_000
NAMESPACE = "tenant/ns"
BUNDLE = f"{NAMESPACE}/0x00000000_0x80000000"
SIBLING = f"{NAMESPACE}/0x80000000_0xffffffff"
BROKERS = ("broker-1:8080", "broker-2:8080")
REASON = Verdict(
    subject=BROKERS[0], reason=Reason.OVERLOADED, observed=0.9, limit=0.7, unit="usage", by="OverloadShedder"
)
COMMAND = IssuedCommand(
    id="c-1",
    interval=T,
    action="unload",
    bundle=BUNDLE,
    namespace=NAMESPACE,
    source=BROKERS[0],
    destination=BROKERS[1],
    mode="active",
    why=REASON,
    status="done",
    detail="",
    started_at=T + 1000,
    finished_at=T + 2000,
    measured=None,
)
ROW = DecisionRow(
    interval=T,
    epoch=1,
    summary="1 unloads",
    mode="active",
    paused=False,
    commands=1,
    statuses={"done": 1},
    reasons={"Overloaded": 1},
)


def _broker(name: str, usage: float | None) -> BrokerNow:
    return BrokerNow(
        name=name,
        has_data=usage is not None,
        drained=False,
        usage={"cpu": usage},
        fullest="" if usage is None else "cpu",
        fullest_usage=usage,
        forecast=None,
        rate_in=usage,
        rate_out=usage,
        throughput_in=usage,
        throughput_out=usage,
        bundles=1,
        topics=2,
        connections=3,
    )


def _series(*names: str) -> Series:
    at = np.array([T - 60_000, T], dtype=np.int64)
    return Series(at=at, step=np.full(2, 60_000), values={name: np.array([1.0, np.nan]) for name in names})


@dataclass
class FixedPageData:
    """PageData; ``change`` makes its version grow."""

    cluster: str
    #: Names in place of those above, as hostile ones.
    brokers_named: tuple[str, ...] = BROKERS
    summary: str = ROW.summary
    _version: int = 1
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def change(self) -> None:
        """Something is new."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def progress(self) -> Progress:
        sources = (SourceProgress(source="summaries", done=1.0, read_until_ms=T, refused=0, error=""),)
        return Progress(complete=True, sources=sources, oldest=T, newest=T, missing=0, rebuilt="")

    def version(self) -> int:
        with self._changed:
            return self._version

    def wait(self, version: int, timeout_seconds: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._version != version, timeout_seconds)
            return self._version

    def latest(self) -> LatestState | None:
        return LatestState(
            cluster=self.cluster,
            epoch=1,
            interval=T,
            period_ms=60_000,
            decided_at_ms=T + 500,
            tick_to_decision_ms=500,
            summary=self.summary,
            controls=Controls(mode="active"),
            budgets=(),
            breaker=BreakerState(
                in_a_row=0, most_in_a_row=10, in_window=0, most_in_window=None, tripped_at=None, why=""
            ),
            in_flight=(),
            in_flight_total=0,
            joined={},
            departed={},
            brokers_balance="",
            brokers=2,
            brokers_without_data=0,
            bundles=2,
            namespaces=1,
            topics=4,
            connections=6,
            rate=1.0,
            throughput=1.0,
            reasons={"Overloaded": 1},
            pulsar="",
        )

    def brokers(self) -> BrokerStates | None:
        usages = (90.0, None, 50.0, 40.0)
        states = tuple(_broker(name, usage) for name, usage in zip(self.brokers_named, usages, strict=False))
        return BrokerStates(interval=T, limit=85.0, goal=70.0, brokers=states)

    def broker_tile(self, *_: Any, **__: Any) -> Tile:
        raise ValueError("no pictures here")

    keyspace_tile = broker_tile

    def moves(self, since_ms: int, until_ms: int, *, limit: int = 90) -> tuple[IssuedCommand, ...]:
        return (COMMAND,)

    def plan_commands(self, plan: str, *, limit: int = 10_000) -> tuple[IssuedCommand, ...]:
        return ()

    def plan_failures(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        return ()

    def undone_moves(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        return ()

    def move_counts(self, since_ms: int, until_ms: int, *, bins: int) -> tuple[int, ...]:
        return (1,) * bins

    def decisions(self, wanted: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> DecisionPage:
        if cursor not in (None, "older"):
            raise ValueError("cursor: nobody gave it out")
        return DecisionPage(rows=() if cursor else (ROW,), cursor=None if cursor else "older", newer=None)

    def decision(self, interval: int) -> DecisionDetail | None:
        if interval != T:
            return None
        return DecisionDetail(
            row=ROW,
            decided_at_ms=T + 500,
            tick_to_decision_ms=500,
            controls=Controls(mode="active", pauses=(Pause(by="ann", reason="", at_ms=T, until_ms=0),)),
            commands=(COMMAND,),
            verdicts=(REASON,),
            verdicts_total=1,
            budgets=(BudgetUse(key="unloads", scope="cluster", of="", used=1, limit=10, unit="unloads"),),
            earlier=None,
            later=None,
        )

    def bundle(self, bundle: str, since_ms: int, until_ms: int) -> BundlePast:
        return BundlePast(
            bundle=bundle,
            namespace=bundle.rpartition("/")[0],
            known=bundle == BUNDLE,
            folded=False,
            owner=BROKERS[1],
            load=_series("rate", "throughput"),
            owners=(OwnedSpan(owner=BROKERS[0], since_ms=since_ms, until_ms=until_ms),),
            commands=(COMMAND,),
            verdicts=(REASON,),
            siblings=(BUNDLE, SIBLING),
        )

    def hot_topics(self, _bundle: str, _since_ms: int, _until_ms: int) -> HotMoment | None:
        return None

    def broker(self, broker: str, since_ms: int, until_ms: int) -> BrokerPast:
        return BrokerPast(
            broker=broker,
            known=broker in self.brokers_named,
            now=_broker(broker, 50.0),
            load=_series("usage"),
            commands=(COMMAND,),
            verdicts=(),
            bundles=(BUNDLE,),
        )

    def namespace(self, namespace: str, since_ms: int, until_ms: int) -> NamespacePast:
        return NamespacePast(
            bundles_in_all=1,
            namespace=namespace,
            known=namespace == NAMESPACE,
            load=_series("rate"),
            bundles=((BUNDLE, BROKERS[0]),),
            commands=(COMMAND,),
        )

    def controls(self, *, cursor: str | None = None, limit: int = 50) -> ControlPage:
        if cursor is not None:
            raise ValueError("cursor: nobody gave it out")
        event = ControlEvent(at_ms=T, by="ann", action="apply", detail="plan 1", reason="")
        return ControlPage(events=(event,), cursor=None)

    def search(self, text: str, limit: int = 20) -> tuple[NameMatch, ...]:
        return (NameMatch(kind="broker", name=BROKERS[0]),)

    def close(self) -> None:
        pass
