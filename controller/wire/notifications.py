"""Notifications: what receivers get as CloudEvents, and what the senders of a cluster share in the election's store."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field

from controller.model.errors import WireError
from controller.model.lookalikes import revealed
from controller.wire.base import (
    VERSION,
    Count,
    Entries,
    Items,
    Millis,
    Name,
    NameOrEmpty,
    Record,
    encode,
    model_for,
    printable,
    read_object,
    refuse_too_large,
    validate,
)


class EventKind(StrEnum):
    """What a notification is about."""

    #: The breaker tripped: nothing is issued until somebody resumes.
    BREAKER_OPENED = "breaker-opened"
    #: A command of a plan's wave failed.
    WAVE_FAILED = "wave-failed"
    #: A plan ended without success.
    PLAN_FAILED = "plan-failed"
    #: A plan, or a decision of a strategy, waits for approval.
    PROPOSAL_WAITS = "proposal-waits"
    #: Another controller leads.
    LEADER_CHANGED = "leader-changed"
    #: No decision came for several intervals.
    NO_DECISION = "no-decision"
    #: `trimtab doctor` finds an error that it did not find before.
    DOCTOR_ERROR = "doctor-error"
    #: Bundles that trimtab moved are back on their source within an hour.
    MOVES_UNDONE = "moves-undone"
    #: Sent by a person who tries whether notifications arrive.
    TEST = "test"


#: The kinds that a webhook may choose.
CHOSEN_KINDS: Final = tuple(kind for kind in EventKind if kind is not EventKind.TEST)

#: Characters of a title, of a text, and of each value of the data.
_LONGEST_TITLE: Final = 150
_LONGEST_TEXT: Final = 1_500
_LONGEST_VALUE: Final = 200
#: Values in the data, and texts in one of them.
_MOST_VALUES: Final = 16
_MOST_ITEMS: Final = 10
#: Notifications that wait at most; with these limits all of them fit into a node of ZooKeeper.
MOST_WAITING: Final = 100
MOST_WEBHOOKS: Final = 20
#: Of each kind of thing that was noticed.
MOST_OBSERVED: Final = 500
#: ZooKeeper refuses a node of more than 1 MiB.
MAX_STATE_BYTES: Final = 1_000_000

_Key: TypeAlias = Annotated[str, Field(max_length=64)]
_Value: TypeAlias = Annotated[str, Field(max_length=_LONGEST_VALUE)]
DataValue: TypeAlias = _Value | int | tuple[_Value, ...]
_WebhookName: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
_Identities: TypeAlias = Annotated[Items[Name], Field(max_length=MOST_OBSERVED)]


class Notification(Record):
    """Something that people should know."""

    id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    """The same each time that this is sent, so that a receiver can drop what it has already."""
    kind: EventKind
    at_ms: Millis
    """When it happened, epoch ms."""
    title: Annotated[str, Field(min_length=1, max_length=_LONGEST_TITLE)]
    text: Annotated[str, Field(max_length=_LONGEST_TEXT)]
    """What was observed, and what to do."""
    data: Annotated[dict[_Key, DataValue], Field(max_length=_MOST_VALUES, default_factory=dict)]
    """The same for a program."""


def notification(
    identity: str, kind: EventKind, at_ms: int, title: str, text: str, data: dict[str, str | int | list[str]]
) -> Notification:
    """A notification of these texts, each cut to its limit and on one line: names come from brokers and records.

    *identity*: its ``id``, 32 hexadecimal digits.
    """
    return Notification(
        id=identity,
        kind=kind,
        at_ms=at_ms,
        title=_cut(revealed(title), _LONGEST_TITLE),
        text=_cut(revealed(text), _LONGEST_TEXT),
        data={key: _cut_value(value) for key, value in data.items()},
    )


def _cut(text: str, limit: int) -> str:
    line = printable(text)
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def _cut_value(value: str | int | list[str]) -> DataValue:
    if isinstance(value, list):
        return tuple(_cut(each, _LONGEST_VALUE) for each in value[:_MOST_ITEMS])
    return _cut(value, _LONGEST_VALUE) if isinstance(value, str) else value


class WaitingNotification(Record):
    """A notification that some webhooks have not accepted yet."""

    notification: Notification
    since_ms: Millis
    """When it began to wait, epoch ms."""
    webhooks: Annotated[tuple[_WebhookName, ...], Field(max_length=MOST_WEBHOOKS)]


class ClusterObservation(Record):
    """What was noticed already; it says what is new."""

    started: bool = False
    """Whether anything was noticed yet.  What happened before that is not sent."""
    epoch: Count = 0
    """The newest leadership that was noticed."""
    leader_at_ms: Millis = 0
    """When another leader was noticed last."""
    decided: Millis = 0
    """T of the newest decision; 0: none yet."""
    watched_since_ms: Millis = 0
    """When the first sender began."""
    silent_at: Millis | None = None
    """The ``decided`` for which the silence after it was noticed."""
    breaker: Millis | None = None
    """T at which the open breaker tripped; null: it is closed."""
    waves: _Identities = ()
    """Waves with a failed command."""
    undone: _Identities = ()
    """Ids of commands whose moves were undone."""
    undone_at_ms: Millis = 0
    """When undone moves were noticed last."""
    doctor: _Identities = ()
    """Errors that the doctor found last."""
    proposals: Annotated[Entries[Name, NameOrEmpty], Field(max_length=MOST_OBSERVED)] = Field(default_factory=dict)
    """Proposal -> its state."""


class NotificationState(Record):
    """What the senders of a cluster share: whoever sends goes on where the one before stopped."""

    v: Literal[1] = VERSION
    type: Literal["notifications"] = "notifications"
    cluster: Name
    observation: ClusterObservation = ClusterObservation()
    waiting: Annotated[Items[WaitingNotification], Field(max_length=MOST_WAITING)] = ()
    """The oldest first."""
    dropped: Annotated[Entries[_WebhookName, Count], Field(max_length=MOST_WEBHOOKS)] = Field(default_factory=dict)
    """Webhook -> how many notifications were given up since it accepted one."""


MODELS: Final[dict[str, type[Any]]] = {"notifications": NotificationState}


def encode_state(state: NotificationState) -> bytes:
    """*state* as it is stored."""
    return encode(state)


def decode_state(value: bytes, cluster: str) -> NotificationState:
    """The state of *cluster* in *value*, which may hold anything.  WireError."""
    refuse_too_large(value, MAX_STATE_BYTES)
    state: NotificationState = validate(model_for(read_object(value), MODELS), value)
    if state.cluster != cluster:
        raise WireError("bad_value", f"it is of cluster {state.cluster!r}, not of {cluster!r}")
    return state


class NotificationEvent(Record):
    """A notification as a CloudEvent 1.0."""

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    """``/trimtab/<cluster>``."""
    type: str
    """``trimtab.notification.<kind>``."""
    time: AwareDatetime
    """When it happened, UTC."""
    datacontenttype: Literal["application/json"] = "application/json"
    data: dict[str, DataValue]


def encode_event(notified: Notification, cluster: str, *, dropped: int, page_url: str) -> bytes:
    """*notified* of *cluster* as a CloudEvent in structured JSON.

    *dropped*: how many notifications before it were given up.  *page_url*: where the page is; "" where none is known.
    """
    data: dict[str, DataValue] = {"cluster": cluster, "title": notified.title, "text": notified.text}
    data |= {"droppedBefore": dropped} if dropped else {}
    data |= {"page": page_url} if page_url else {}
    event = NotificationEvent.model_construct(
        id=notified.id,
        source=f"/trimtab/{cluster}",
        type=f"trimtab.notification.{notified.kind}",
        time=datetime.fromtimestamp(notified.at_ms / 1000, UTC),
        data=data | notified.data,
    )
    return encode(event)
