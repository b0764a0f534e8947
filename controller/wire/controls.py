"""What persons have set, as it is kept beside the election: one small JSON object."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from controller.model.controls import (
    MAX_HISTORY,
    MAX_PAUSES,
    Choice,
    ControlChange,
    Drained,
    OperatorControls,
    OrderedMove,
    Orders,
    Pause,
)
from controller.model.errors import ControlsCorruptError, WireError
from controller.wire.base import (
    VERSION,
    BundleText,
    Items,
    Millis,
    Name,
    Record,
    encode,
    is_empty,
    model_for,
    read_object,
    refuse_too_large,
    validate,
)

#: A wave of 100 moves with names of 300 characters comes to a quarter.  ZooKeeper takes no more than 1 MiB.
MAX_BYTES: Final = 512 * 1024
MAX_MOVES: Final = 100
MAX_DRAINED: Final = 1000
MAX_REASON: Final = 500
MAX_NAME: Final = 100
#: No control characters: it is printed.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"


class _ChoiceRecord(Record):
    reason: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)]
    by: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    at_ms: Millis


class ModeRecord(_ChoiceRecord):
    """Which mode somebody set."""

    value: Literal["active", "dry_run", "observe"]


class SinglePauseRecord(_ChoiceRecord):
    """That somebody paused or resumed, as it was stored when one pause replaced the other."""

    value: Literal["paused", "running"]


class PauseRecord(_ChoiceRecord):
    """One person's pause."""

    until_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    """When it ends by itself; left out where it does not."""


class ControlChangeRecord(_ChoiceRecord):
    """Something that an operator did."""

    action: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    detail: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)] = ""


class DrainedRecord(Record):
    """A broker that gets no bundles."""

    broker: Name
    by: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    at_ms: Millis


class OrderedMoveRecord(Record):
    """One bundle that a plan moves."""

    bundle: BundleText
    source: Name
    destination: Name


class OrdersRecord(Record):
    """One wave of a plan that is being applied."""

    plan: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """The plan's hash."""
    step: Annotated[int, Field(ge=1, le=100_000)]
    wave: Annotated[int, Field(ge=0, le=100_000)]
    waves: Annotated[int, Field(ge=0, le=100_000)]
    moves: Annotated[Items[OrderedMoveRecord], Field(max_length=MAX_MOVES)] = ()
    checked_at: Millis
    """T of the load that the moves were checked against."""
    expires_at_ms: Millis
    holder: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    by: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    held_back: Annotated[bool | None, Field(exclude_if=lambda value: value is None)] = None
    """Whether guardrails held back all moves that were handed over last.  Left out by earlier releases."""


class ControlsDocument(Record):
    """What persons have set; null where nobody has."""

    v: Literal[1] = VERSION
    type: Literal["controls"] = "controls"
    mode: ModeRecord | None = None
    pause: Annotated[SinglePauseRecord | None, Field(exclude_if=is_empty)] = None
    """Read, and never written."""
    pauses: Annotated[Items[PauseRecord], Field(max_length=MAX_PAUSES, exclude_if=is_empty)] = ()
    resumed_ms: Millis = 0
    stopped_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    loss_accepted_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    drained: Annotated[Items[DrainedRecord], Field(max_length=MAX_DRAINED, exclude_if=is_empty)] = ()
    orders: Annotated[OrdersRecord | None, Field(exclude_if=is_empty)] = None
    history: Annotated[Items[ControlChangeRecord], Field(max_length=MAX_HISTORY, exclude_if=is_empty)] = ()


MODELS: Final[dict[str, type[Any]]] = {"controls": ControlsDocument}


def encode_controls(controls: OperatorControls) -> bytes:
    """*controls* as they are kept; WireError where a reason or a name is too long or not printable.

    The oldest changes of the history give way where all together would be too large.
    """
    value = _encoded(controls)
    while len(value) > MAX_BYTES and controls.history:
        controls = replace(controls, history=controls.history[(len(controls.history) + 1) // 2 :])
        value = _encoded(controls)
    parse_controls(value)
    return value


def _encoded(controls: OperatorControls) -> bytes:
    return encode(
        ControlsDocument.model_construct(
            mode=None if controls.mode is None else ModeRecord.model_construct(**_fields(controls.mode)),
            pauses=tuple(PauseRecord.model_construct(**asdict(each)) for each in controls.pauses),
            resumed_ms=controls.resumed_ms,
            stopped_ms=controls.stopped_ms,
            loss_accepted_ms=controls.loss_accepted_ms,
            drained=tuple(DrainedRecord.model_construct(**asdict(each)) for each in controls.drained),
            orders=orders_record(controls.orders),
            history=tuple(ControlChangeRecord.model_construct(**asdict(each)) for each in controls.history),
        )
    )


def parse_controls(value: bytes) -> OperatorControls:
    """The controls that *value* holds, or WireError."""
    refuse_too_large(value, MAX_BYTES)
    record: ControlsDocument = validate(model_for(read_object(value), MODELS), value)
    pauses, resumed_ms, single = [Pause(**dict(each)) for each in record.pauses], record.resumed_ms, record.pause
    if single is not None and single.value == "paused":
        pauses.append(Pause(by=single.by, reason=single.reason, at_ms=single.at_ms))
    elif single is not None:
        resumed_ms = max(resumed_ms, single.at_ms)
    return OperatorControls(
        mode=None if record.mode is None else Choice(**dict(record.mode)),
        pauses=tuple(pauses),
        resumed_ms=resumed_ms,
        stopped_ms=record.stopped_ms,
        loss_accepted_ms=record.loss_accepted_ms,
        drained=tuple(Drained(**dict(each)) for each in record.drained),
        orders=to_orders(record.orders),
        history=tuple(ControlChange(**dict(each)) for each in record.history),
    )


def orders_record(orders: Orders | None) -> OrdersRecord | None:
    """*orders* as they are kept; what is wrong with them is found when they are read."""
    if orders is None:
        return None
    moves = tuple(OrderedMoveRecord.model_construct(**asdict(move)) for move in orders.moves)
    return OrdersRecord.model_construct(**{**asdict(orders), "moves": moves})


def to_orders(record: OrdersRecord | None) -> Orders | None:
    """The orders that *record* says."""
    if record is None:
        return None
    return Orders(**{**dict(record), "moves": tuple(OrderedMove(**dict(move)) for move in record.moves)})


def stored_controls(value: bytes, where: str) -> OperatorControls:
    """The controls that *value*, kept at *where*, holds, or ControlsCorruptError."""
    try:
        return parse_controls(value)
    except WireError as error:
        raise ControlsCorruptError(
            f"{where} does not hold valid controls ({error}): set them again with `trimtab pause` and `trimtab resume`"
        ) from error


def _fields(choice: Choice) -> dict[str, Any]:
    return {"value": choice.value, "reason": choice.reason, "by": choice.by, "at_ms": choice.at_ms}
