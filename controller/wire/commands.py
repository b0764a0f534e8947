"""Commands as CloudEvents 1.0 in structured JSON: what subscribers of the command topic read.

The command itself is a :class:`controller.model.decision.Command`.  Epoch and time are stamped on the
event when it is issued, so the same decision has the same command whoever issues it, and whenever.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field

from controller.model.decision import Command, Reason, Verdict
from controller.model.errors import WireError
from controller.model.names import namespace_of, parse_bundle
from controller.wire.base import (
    Boundary,
    BundleText,
    Count,
    Millis,
    Name,
    Number,
    Record,
    encode,
    is_foreign,
    model_by_type,
    read_object,
    reader,
    validate,
)


class Preconditions(Record):
    """The preconditions on the cluster under which the command is carried out."""

    source_broker: Name
    bundle: tuple[Boundary, Boundary]
    """The bundle's boundaries."""


class Explanation(Record):
    """The verdict that led to the command, in numbers."""

    subject: str
    observed: Number | None
    limit: Number | None
    unit: str
    strategy: str
    detail: str = ""


class _CommandData(Record):
    cluster: str
    interval: Millis
    """T, the interval decided on."""
    issued_at: Millis
    """The logical time of issue: T."""
    expires_at: Millis
    mode: Literal["active", "dry_run"]
    preconditions: Preconditions
    reason: Annotated[Reason, Field(strict=False)]
    explanation: Explanation


class UnloadData(_CommandData):
    """What an unload is about."""

    destination_broker: str | None = None
    """Where the bundle is to go; none leaves it to the brokers."""


class SplitData(_CommandData):
    """What a split is about."""

    algorithm: str
    boundaries: tuple[Boundary, ...] | None = None
    """Where to cut; none leaves it to the algorithm."""
    unload_after_split: bool


class UnloadCommand(Record):
    """An unload without its envelope, as it is journalled."""

    id: Name
    type: Literal["trimtab.unload"] = "trimtab.unload"
    subject: BundleText
    data: UnloadData


class SplitCommand(Record):
    """A split without its envelope, as it is journalled."""

    id: Name
    type: Literal["trimtab.split"] = "trimtab.split"
    subject: BundleText
    data: SplitData


#: A command as it is journalled.
CommandData: TypeAlias = Annotated[UnloadCommand | SplitCommand, Field(discriminator="type")]


class _CloudEvent(Record):
    specversion: Literal["1.0"] = "1.0"
    source: Name
    """``/trimtab/<cluster>``."""
    time: AwareDatetime
    """When this event was issued, UTC."""
    datacontenttype: Literal["application/json"] = "application/json"
    epoch: Count
    """The leadership that issued it; lower ones are fenced off."""

    @property
    def time_ms(self) -> int:
        """When this event was issued, epoch ms."""
        return round(self.time.timestamp() * 1000)


class _SignedEvent(_CloudEvent):
    signature: Annotated[str, Field(exclude_if=lambda value: not value)] = ""
    """The controller's, Ed25519 in base64 (docs/executor.md says over what); left out where it has no key."""


class UnloadEvent(UnloadCommand, _SignedEvent):
    """trimtab.unload."""


class SplitEvent(SplitCommand, _SignedEvent):
    """trimtab.split."""


class EpochData(Record):
    """The leader from this point of the partition on."""

    cluster: str
    epoch: Count


class EpochEvent(_CloudEvent):
    """trimtab.epoch: the first event of every new leader; whatever is lower after it is refused."""

    id: Name
    type: Literal["trimtab.epoch"] = "trimtab.epoch"
    subject: Name
    data: EpochData


CommandEvent: TypeAlias = UnloadEvent | SplitEvent | EpochEvent

MODELS: Final[dict[str, type[Any]]] = {
    "trimtab.unload": UnloadEvent,
    "trimtab.split": SplitEvent,
    "trimtab.epoch": EpochEvent,
}


#: A record's headers by CloudEvents' binding for Kafka, in its structured mode: the value is the whole event.
EVENT_HEADERS: Final[Mapping[str, bytes]] = {"content-type": b"application/cloudevents+json; charset=UTF-8"}


def command_key(command: Command) -> str:
    """The record key: the namespace, so that a child's unload never overtakes its parent's split."""
    return namespace_of(command.bundle)


def command_event(command: Command, epoch: int, time_ms: int, signature: str = "") -> bytes:
    """The event that issues *command* under leadership *epoch* at *time_ms* (epoch ms, wall clock)."""
    data = command_data(command)
    model = UnloadEvent if isinstance(data, UnloadCommand) else SplitEvent
    return encode(model(**dict(data), **_stamp(command.cluster, epoch, time_ms), signature=signature))


def epoch_event(cluster: str, epoch: int, time_ms: int) -> bytes:
    """The event that begins leadership *epoch*."""
    data = EpochData(cluster=cluster, epoch=epoch)
    return encode(EpochEvent(id=f"epoch/{epoch}", subject=cluster, data=data, **_stamp(cluster, epoch, time_ms)))


@reader
def parse_event(value: bytes) -> CommandEvent:
    """The event that *value* holds, or WireError."""
    event: CommandEvent = validate(model_by_type(read_object(value), MODELS), value)
    return event


def own_event(value: bytes, cluster: str) -> CommandEvent | None:
    """The event that *value* holds, or WireError; None of another one than *cluster*, as clusters may share a topic.

    What else is wrong with another one's is no matter: it may be a later release's.
    """
    try:
        event = parse_event(value)
    except WireError:
        if _is_anothers(value, cluster):
            return None
        raise
    return event if event.data.cluster == cluster else None


def _is_anothers(value: bytes, cluster: str) -> bool:
    try:
        data = read_object(value).get("data")
    except WireError:
        return False
    return isinstance(data, dict) and is_foreign(data, cluster)


def command_data(command: Command) -> UnloadCommand | SplitCommand:
    """*command* without an envelope, for the journal; ``to_command`` is the way back."""
    why, bundle = command.why, parse_bundle(command.bundle)
    common: dict[str, Any] = {
        "cluster": command.cluster,
        "interval": command.interval,
        "issued_at": command.interval,
        "expires_at": command.expires_at_ms,
        "mode": command.mode,
        "preconditions": Preconditions(source_broker=command.source, bundle=(bundle.lower, bundle.upper)),
        "reason": why.reason,
        "explanation": Explanation(
            subject=why.subject,
            observed=why.observed,
            limit=why.limit,
            unit=why.unit,
            strategy=why.by,
            detail=why.detail,
        ),
    }
    if command.action == "unload":
        unload = UnloadData(**common, destination_broker=command.destination or None)
        return UnloadCommand(id=command.id, subject=command.bundle, data=unload)
    split = SplitData(
        **common,
        algorithm=command.algorithm,
        boundaries=command.boundaries or None,
        unload_after_split=command.unload_after_split,
    )
    return SplitCommand(id=command.id, subject=command.bundle, data=split)


def to_command(record: UnloadCommand | SplitCommand) -> Command:
    """The command that a journalled *record*, or an event, carries."""
    data, why = record.data, record.data.explanation
    common: dict[str, Any] = {
        "id": record.id,
        "cluster": data.cluster,
        "bundle": record.subject,
        "interval": data.interval,
        "expires_at_ms": data.expires_at,
        "mode": data.mode,
        "source": data.preconditions.source_broker,
        "why": Verdict(
            subject=why.subject,
            reason=data.reason,
            observed=why.observed,
            limit=why.limit,
            unit=why.unit,
            by=why.strategy,
            detail=why.detail,
        ),
    }
    if isinstance(data, UnloadData):
        return Command(action="unload", destination=data.destination_broker or "", **common)
    return Command(
        action="split",
        algorithm=data.algorithm,
        boundaries=data.boundaries or (),
        unload_after_split=data.unload_after_split,
        **common,
    )


def _stamp(cluster: str, epoch: int, time_ms: int) -> dict[str, Any]:
    return {
        "source": f"/trimtab/{cluster}",
        "time": datetime.fromtimestamp(time_ms / 1000, UTC),
        "epoch": epoch,
    }
