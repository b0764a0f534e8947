"""What persons have set, as it is kept beside the election: one small JSON object."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from controller.model.controls import Choice, OperatorControls
from controller.model.errors import ControlsCorruptError, WireError
from controller.wire.base import VERSION, Millis, Record, encode, model_for, read_object, refuse_too_large, validate

#: Far above what two choices with their reasons come to.
MAX_BYTES: Final = 16 * 1024
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


class PauseRecord(_ChoiceRecord):
    """That somebody paused or resumed."""

    value: Literal["paused", "running"]


class ControlsDocument(Record):
    """What persons have set; null where nobody has."""

    v: Literal[1] = VERSION
    type: Literal["controls"] = "controls"
    mode: ModeRecord | None = None
    pause: PauseRecord | None = None
    resumed_ms: Millis = 0


MODELS: Final[dict[str, type[Any]]] = {"controls": ControlsDocument}


def encode_controls(controls: OperatorControls) -> bytes:
    """*controls* as they are kept; WireError where a reason or a name is too long or not printable."""
    value = encode(
        ControlsDocument.model_construct(
            mode=None if controls.mode is None else ModeRecord.model_construct(**_fields(controls.mode)),
            pause=None if controls.pause is None else PauseRecord.model_construct(**_fields(controls.pause)),
            resumed_ms=controls.resumed_ms,
        )
    )
    parse_controls(value)
    return value


def parse_controls(value: bytes) -> OperatorControls:
    """The controls that *value* holds, or WireError."""
    refuse_too_large(value, MAX_BYTES)
    record: ControlsDocument = validate(model_for(read_object(value), MODELS), value)
    return OperatorControls(
        mode=None if record.mode is None else Choice(**dict(record.mode)),
        pause=None if record.pause is None else Choice(**dict(record.pause)),
        resumed_ms=record.resumed_ms,
    )


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
