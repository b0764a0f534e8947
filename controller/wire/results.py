"""Records of the result topic: what became of the commands, and the ticks."""

from typing import Any, Final, Literal, TypeAlias, get_args

from controller.model.errors import WireError
from controller.wire.base import (
    MAX_RECORD_BYTES,
    AnyText,
    Count,
    Envelope,
    Millis,
    Name,
    NameOrEmpty,
    check_interval,
    is_foreign,
    model_for,
    read_object,
    reader,
    refuse_not_finite,
    refuse_too_large,
    validate,
)
from controller.wire.metrics import TickRecord

Status: TypeAlias = Literal[
    "done", "already_done", "obsolete", "skipped", "failed", "expired", "fenced", "dry_run", "unknown", "refused"
]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class Result(Envelope):
    """What an executor made of a command."""

    type: Literal["result"] = "result"
    id: Name
    """The command's."""
    status: Status
    detail: AnyText = ""
    owner_before: NameOrEmpty | None = None
    owner_after: NameOrEmpty | None = None
    started_at: Millis
    finished_at: Millis
    attempts: Count


MODELS: Final[dict[str, type[Any]]] = {"result": Result, "tick": TickRecord}


@reader
def decode_result(
    value: bytes,
    *,
    cluster: str,
    period_ms: int,
    append_time_ms: int | None = None,
    max_bytes: int = MAX_RECORD_BYTES,
) -> Result | TickRecord | None:
    """The result or tick that *value* holds, as ``decode_metric`` does for metrics."""
    refuse_too_large(value, max_bytes)
    fields = read_object(value)
    if is_foreign(fields, cluster):
        return None
    record: Result | TickRecord = validate(model_for(fields, MODELS), value)
    refuse_not_finite(value)
    if isinstance(record, TickRecord):
        check_interval(record.interval, period_ms=period_ms, append_time_ms=append_time_ms)
    return record


def answered_command(value: bytes) -> str:
    """The id of the command that *value*, any bytes of the result topic, answers; "" where it is no such result.

    A command that was refused has no answer: it came from nobody who may issue commands, and its id is another one's.
    """
    try:
        fields = read_object(value)
    except WireError:
        return ""
    command, is_answer = fields.get("id"), fields.get("type") == "result" and fields.get("status") != "refused"
    return command if is_answer and isinstance(command, str) else ""
