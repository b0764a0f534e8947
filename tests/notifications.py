"""Senders of notifications for tests: a store in memory, receivers that note what they get, and data to be changed."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from controller.adapters.election.controls import ABSENT
from controller.adapters.election.notifications import NotificationStore
from controller.adapters.metrics.web import WebMetrics
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import read_settings
from controller.web.notifications.sender import NotificationSender
from controller.web.notifications.webhook import NotAcceptedError
from controller.web.store.values import DecisionPage, DecisionQuery, IssuedCommand, LatestState, Progress
from controller.wire.notifications import CHOSEN_KINDS, Notification
from tests.folder_settings import write_settings
from tests.page_data import ROW, FixedPageData, T

PERIOD_MS = 60_000


@dataclass
class SharedState:
    """What all stores of a cluster share."""

    value: bytes | None = None
    version: int = ABSENT
    #: The stores that take part, the one whose process sends first.
    senders: list["MemoryNotifications"] = field(default_factory=list)


@dataclass(eq=False)
class MemoryNotifications:
    """NotificationStore in memory; *fails* makes every call fail."""

    shared: SharedState
    fails: bool = False

    def sends(self) -> bool:
        self._check()
        if self not in self.shared.senders:
            self.shared.senders.append(self)
        return self.shared.senders[0] is self

    def read(self) -> tuple[bytes | None, int]:
        self._check()
        return self.shared.value, self.shared.version

    def write(self, value: bytes, version: int) -> int | None:
        self._check()
        if version != self.shared.version:
            return None
        self.shared.value, self.shared.version = value, version + 1
        return self.shared.version

    def close(self) -> None:
        if self in self.shared.senders:
            self.shared.senders.remove(self)

    def _check(self) -> None:
        if self.fails:
            raise TrimtabError("the store does not answer")


@dataclass
class ChangingData(FixedPageData):
    """PageData whose last decision, breaker and failed commands a test sets."""

    epoch: int = 1
    decided: int = T
    tripped_at: int | None = None
    failures: tuple[IssuedCommand, ...] = ()
    loaded: bool = True

    def progress(self) -> Progress:
        return replace(super().progress(), complete=self.loaded)

    def latest(self) -> LatestState | None:
        latest = super().latest()
        assert latest is not None
        breaker = replace(latest.breaker, tripped_at=self.tripped_at, why="10 commands failed")
        return replace(latest, interval=self.decided, breaker=breaker)

    def decisions(self, query: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> DecisionPage:
        row = replace(ROW, interval=self.decided, epoch=self.epoch)
        return DecisionPage(rows=(row,), cursor=None, newer=None)

    def plan_failures(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        return self.failures


@dataclass
class NotingReceiver:
    """Accepts, unless *problem* says why not; *blocked* makes it hang until it is set."""

    name: str = "oncall"
    kinds: frozenset[str] = frozenset(CHOSEN_KINDS)
    accepted: list[Notification] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    attempts: int = 0
    problem: str = ""
    blocked: threading.Event | None = None

    def send(self, notified: Notification, dropped: int = 0) -> None:
        self.attempts += 1
        if self.blocked is not None:
            self.blocked.wait(30)
        if self.problem:
            raise NotAcceptedError(self.problem)
        self.accepted.append(notified)
        self.dropped.append(dropped)


@dataclass
class Time:
    """The wall clock and the one that is never set."""

    now_ms: int = T + PERIOD_MS

    def pass_seconds(self, seconds: float) -> None:
        self.now_ms += int(1000 * seconds)


def sender(
    folder: Path,
    store: NotificationStore,
    data: ChangingData,
    *receivers: NotingReceiver,
    time: Time,
    ask_doctor: Callable[[Any], Any] = lambda _: (),
    read_proposals: Callable[[], Any] = lambda: (),
    lines: tuple[str, ...] = (),
) -> NotificationSender:
    """A sender for the cluster of *data*."""
    settings = read_settings(write_settings(folder, *lines, cluster=data.cluster))
    return NotificationSender(
        settings,
        data,
        store,
        {each.name: each for each in receivers},
        WebMetrics(),
        ask_doctor=ask_doctor,
        read_proposals=read_proposals,
        now_ms=lambda: time.now_ms,
        clock=lambda: time.now_ms / 1000,
    )
