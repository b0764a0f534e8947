"""Notifications that wait: what is due for which webhook, and what is given up.  Pure; the caller stores the state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from controller.wire.notifications import (
    MAX_STATE_BYTES,
    MOST_WAITING,
    Notification,
    NotificationState,
    WaitingNotification,
    encode_state,
)

#: Seconds from one attempt to the next; after the last of these, its hour again and again.
DELAYS: Final = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0)

#: Why a notification was given up: too many wait, or it is too old.
DropReason: TypeAlias = Literal["full", "too_old"]


class Drop(NamedTuple):
    """A notification that a webhook does not get any more."""

    webhook: str
    why: DropReason
    notification: Notification


class DueNotification(NamedTuple):
    """A notification that is due for a webhook, and how many the webhook has missed since it accepted one."""

    webhook: str
    notification: Notification
    dropped: int


@dataclass(slots=True)
class _Tries:
    count: int
    due: float


class Schedule:
    """When each notification is tried again.  Another process that takes over begins with the first delay again."""

    def __init__(self) -> None:
        self._tries: dict[tuple[str, str], _Tries] = {}

    def due(self, state: NotificationState, now: float) -> Iterator[DueNotification]:
        """What may be sent *now*, seconds of a clock that is never set: for each webhook the oldest that is due."""
        started = set[str]()
        for each in state.waiting:
            for webhook in each.webhooks:
                tries = self._tries.get((webhook, each.notification.id))
                if webhook not in started and (tries is None or now >= tries.due):
                    started.add(webhook)
                    yield DueNotification(webhook, each.notification, state.dropped.get(webhook, 0))

    def failed(self, webhook: str, identity: str, now: float) -> float:
        """The notification *identity* was not accepted; returns after how many seconds it is tried again."""
        tries = self._tries.setdefault((webhook, identity), _Tries(0, 0.0))
        delay = DELAYS[min(tries.count, len(DELAYS) - 1)]
        tries.count, tries.due = tries.count + 1, now + delay
        return delay

    def forget_others(self, state: NotificationState) -> None:
        """Forget what waits no more."""
        waiting = {(webhook, each.notification.id) for each in state.waiting for webhook in each.webhooks}
        self._tries = {key: tries for key, tries in self._tries.items() if key in waiting}


def added(
    state: NotificationState,
    notifications: tuple[Notification, ...],
    webhooks: Mapping[str, frozenset[str]],
    now_ms: int,
) -> tuple[NotificationState, list[Drop]]:
    """*state*, in which *notifications* wait for those of *webhooks* that want their kind: name -> kinds.

    Where too many wait, the oldest are given up.
    """
    known = {each.notification.id for each in state.waiting}
    new = [
        WaitingNotification(notification=each, since_ms=now_ms, webhooks=names)
        for each in notifications
        if each.id not in known and (names := tuple(name for name, kinds in webhooks.items() if each.kind in kinds))
    ]
    waiting = (*state.waiting, *new)
    state, drops = _without(state, waiting, max(0, len(waiting) - MOST_WAITING))
    while len(encode_state(state)) > MAX_STATE_BYTES and state.waiting:
        state, more = _without(state, state.waiting, (len(state.waiting) + 1) // 2)
        drops += more
    return state, drops


def _without(
    state: NotificationState, waiting: tuple[WaitingNotification, ...], count: int
) -> tuple[NotificationState, list[Drop]]:
    """*state* with *waiting*, of which the first *count* are given up."""
    drops = [Drop(name, "full", each.notification) for each in waiting[:count] for name in each.webhooks]
    return _counted(state.model_copy(update={"waiting": waiting[count:]}), drops), drops


def cleaned(
    state: NotificationState, now_ms: int, give_up_ms: int, webhooks: Mapping[str, frozenset[str]]
) -> tuple[NotificationState, list[Drop]]:
    """*state* without what waits for longer than *give_up_ms*, or for others than *webhooks*, those of the settings."""
    drops, waiting = list[Drop](), list[WaitingNotification]()
    for each in state.waiting:
        names = tuple(name for name in each.webhooks if name in webhooks)
        if now_ms - each.since_ms > give_up_ms:
            drops += [Drop(name, "too_old", each.notification) for name in names]
        elif names:
            waiting.append(each if names == each.webhooks else each.model_copy(update={"webhooks": names}))
    dropped = {name: count for name, count in state.dropped.items() if name in webhooks}
    return _counted(state.model_copy(update={"waiting": tuple(waiting), "dropped": dropped}), drops), drops


def accepted(state: NotificationState, attempt: DueNotification) -> NotificationState:
    """*state* after *attempt*, which succeeded: it also said how many notifications were dropped before it."""
    waiting = list[WaitingNotification]()
    for each in state.waiting:
        names = each.webhooks
        if each.notification.id == attempt.notification.id:
            names = tuple(name for name in names if name != attempt.webhook)
        if names:
            waiting.append(each.model_copy(update={"webhooks": names}))
    dropped = dict(state.dropped)
    dropped[attempt.webhook] = dropped.get(attempt.webhook, 0) - attempt.dropped
    dropped = {name: count for name, count in dropped.items() if count > 0}
    return state.model_copy(update={"waiting": tuple(waiting), "dropped": dropped})


def waiting_for(state: NotificationState, webhook: str) -> int:
    """How many notifications wait for *webhook*."""
    return sum(webhook in each.webhooks for each in state.waiting)


def _counted(state: NotificationState, drops: list[Drop]) -> NotificationState:
    if not drops:
        return state
    dropped = dict(state.dropped)
    for drop in drops:
        dropped[drop.webhook] = dropped.get(drop.webhook, 0) + 1
    return state.model_copy(update={"dropped": dropped})
