"""The operator's controls as they are stored with the election: one small JSON object."""

from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from controller.model.controls import (
    MAX_DECISIONS,
    MAX_DRAINED,
    MAX_EXCLUDED,
    MAX_GRANTS,
    MAX_HISTORY,
    MAX_PAUSES,
    MAX_REFUSED,
    MAX_REQUESTS,
    OperatorControls,
    Pause,
)
from controller.model.errors import ControlsCorruptError, WireError
from controller.wire.base import (
    VERSION,
    BundleText,
    Items,
    Millis,
    Name,
    NameOrEmpty,
    Record,
    encode,
    is_empty,
    model_for,
    read_object,
    refuse_too_large,
    validate,
)
from controller.wire.conversion import from_record, to_record
from controller.wire.proposals import GrantRecord

#: A wave of 100 moves with names of 300 characters comes to a quarter.  ZooKeeper takes no more than 1 MiB.
MAX_BYTES: Final = 512 * 1024
MAX_MOVES: Final = 100
MAX_REASON: Final = 500
MAX_NAME: Final = 100
#: Persons who approved one decision.
MAX_APPROVERS: Final = 20
#: No control characters: it is printed.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"


class _ChoiceRecord(Record):
    reason: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)]
    by: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    at_ms: Millis


class ModeRecord(_ChoiceRecord):
    """Which mode somebody set."""

    value: Literal["active", "approve", "dry_run", "observe"]


class SinglePauseRecord(_ChoiceRecord):
    """That somebody paused or resumed, as it was stored when one pause replaced the other."""

    value: Literal["paused", "running"]


class PauseRecord(_ChoiceRecord):
    """One person's pause."""

    until_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    """When it ends by itself; left out where it does not."""


class ControlChangeRecord(_ChoiceRecord):
    """An operator's action."""

    action: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    detail: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)] = ""


class AnsweredRequestRecord(Record):
    """A request that was carried out, by the key that its client gave it."""

    key: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    body: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    at_ms: Millis
    answer: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)]


_DecisionHash: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Person: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]


class DecisionApprovalRecord(Record):
    """That enough persons approved a decision."""

    decision: _DecisionHash
    by: Annotated[Items[_Person], Field(min_length=1, max_length=MAX_APPROVERS)]
    at_ms: Millis


class DecisionRejectionRecord(Record):
    """That a person rejected a decision."""

    decision: _DecisionHash
    by: _Person
    reason: Annotated[str, Field(max_length=MAX_REASON, pattern=_PRINTABLE)] = ""
    at_ms: Millis


class DrainedRecord(Record):
    """A broker that gets no bundles."""

    broker: Name
    by: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=_PRINTABLE)]
    at_ms: Millis


class ExcludedRecord(_ChoiceRecord):
    """A bundle, or a namespace, that is neither moved nor split."""

    name: Name


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


class PlanRestartsRecord(Record):
    """How far `trimtab apply --hook` is."""

    plan: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """The plan's hash."""
    step: Annotated[int, Field(ge=1, le=100_000)]
    broker: NameOrEmpty = ""
    """The broker of this step that the hook restarts, or restarted last."""
    started_ms: Millis = 0
    """When the process of that broker started that the hook has to replace."""
    hook_failed: bool = False


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
    excluded: Annotated[Items[ExcludedRecord], Field(max_length=MAX_EXCLUDED, exclude_if=is_empty)] = ()
    orders: Annotated[OrdersRecord | None, Field(exclude_if=is_empty)] = None
    restarts: Annotated[PlanRestartsRecord | None, Field(exclude_if=is_empty)] = None
    approvals: Annotated[Items[DecisionApprovalRecord], Field(max_length=MAX_DECISIONS, exclude_if=is_empty)] = ()
    rejections: Annotated[Items[DecisionRejectionRecord], Field(max_length=MAX_DECISIONS, exclude_if=is_empty)] = ()
    grants: Annotated[Items[GrantRecord], Field(max_length=MAX_GRANTS, exclude_if=is_empty)] = ()
    """Approved changes that allow more, with the statements that approve them."""
    history: Annotated[Items[ControlChangeRecord], Field(max_length=MAX_HISTORY, exclude_if=is_empty)] = ()
    refused: Annotated[Items[ControlChangeRecord], Field(max_length=MAX_REFUSED, exclude_if=is_empty)] = ()
    """What the page refused somebody."""
    requests: Annotated[Items[AnsweredRequestRecord], Field(max_length=MAX_REQUESTS, exclude_if=is_empty)] = ()
    """So that a request that is sent again is not carried out twice."""


MODELS: Final[dict[str, type[Any]]] = {"controls": ControlsDocument}


def encode_controls(controls: OperatorControls) -> bytes:
    """*controls* as they are stored; WireError if a reason or a name is too long or not printable.

    The oldest changes of the history, and the oldest requests, are dropped if the whole would be too large.
    """
    value = _encoded(controls)
    while len(value) > MAX_BYTES and (controls.history or controls.requests):
        controls = replace(
            controls,
            history=controls.history[(len(controls.history) + 1) // 2 :],
            requests=controls.requests[(len(controls.requests) + 1) // 2 :],
        )
        value = _encoded(controls)
    parse_controls(value)
    return value


def _encoded(controls: OperatorControls) -> bytes:
    return encode(to_record(ControlsDocument, controls))


def parse_controls(value: bytes) -> OperatorControls:
    """The controls that *value* holds, or WireError."""
    refuse_too_large(value, MAX_BYTES)
    record: ControlsDocument = validate(model_for(read_object(value), MODELS), value)
    controls, single = from_record(OperatorControls, record), record.pause
    if single is None:
        return controls
    if single.value == "running":
        return replace(controls, resumed_ms=max(controls.resumed_ms, single.at_ms))
    pause = Pause(by=single.by, reason=single.reason, at_ms=single.at_ms)
    return replace(controls, pauses=(*controls.pauses, pause))


def stored_controls(value: bytes, where: str) -> OperatorControls:
    """The controls that *value*, kept at *where*, holds, or ControlsCorruptError."""
    try:
        return parse_controls(value)
    except WireError as error:
        raise ControlsCorruptError(
            f"{where} does not hold valid controls ({error}): set them again with `trimtab pause` and `trimtab resume`"
        ) from error
