"""Who a process is, as it lies in the election for people who ask: one small JSON object."""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from controller.model.errors import WireError
from controller.wire.base import (
    Count,
    Millis,
    Name,
    NameOrEmpty,
    Record,
    encode,
    printable,
    reader,
    refuse_too_large,
    validate,
)

#: Far above what a host's name and a number come to.
MAX_PROCESS_BYTES: Final = 4 * 1024
#: Characters of what a process says it does.
_LONGEST_STATE: Final = 300

Role: TypeAlias = Literal["controller", "collector", "executor"]
#: In the order in which people look at them.
ROLES: Final[tuple[Role, ...]] = get_args(Role)


class ProcessDocument(Record):
    """A process, by its host and its number there."""

    host: Name
    process: Count


class RunningProcess(ProcessDocument):
    """A process as it describes itself in the registry.  Fields of later releases are ignored."""

    role: Role
    version: Name
    commit: NameOrEmpty = ""
    """Of the source that runs, as `trimtab --version` has it; "": not known."""
    started_at: Millis
    """By the clock of its host."""
    standstill_ms: Count = 0
    """For so long its main loop had not come round when this was written."""
    ready: bool
    """What /readyz answers."""
    state: Annotated[NameOrEmpty, Field(max_length=_LONGEST_STATE)] = ""
    """What it does, or why it is not ready."""
    leads: bool = False
    """A controller: whether it decides.  A collector: whether it ends the intervals."""
    brokers: Count | None = None
    """A collector: how many brokers are its to sweep; null: not known yet."""
    group: NameOrEmpty = ""
    """An executor: the consumer group in Kafka, or the subscription in Pulsar, in which it shares the commands."""
    commands: NameOrEmpty = ""
    """An executor: the command topic, or folder."""
    partitions: Count | None = None
    """An executor: how many partitions of the commands it has; null: not known yet."""
    policy: Annotated[NameOrEmpty, Field(exclude_if=lambda value: not value)] = ""
    """A controller: the version of its policy of approvals; left out where it demands none."""


def encode_process(host: str, process: int) -> bytes:
    """The process number *process* on *host*."""
    return encode(ProcessDocument(host=host, process=process))


def process_in(value: bytes) -> tuple[str, int]:
    """Host and number of the process that *value* names; "" and 0 where it names none."""
    try:
        process = _parsed(value)
    except WireError:
        return "", 0
    return process.host, process.process


def short_state(state: str) -> str:
    """*state* on one line, cut to what an entry may hold."""
    line = printable(" ".join(state.split()))
    return line if len(line) <= _LONGEST_STATE else f"{line[: _LONGEST_STATE - 3]}..."


@reader
def decode_process(value: bytes) -> RunningProcess:
    """The process that *value*, an entry of the registry, describes; WireError where it describes none."""
    refuse_too_large(value, MAX_PROCESS_BYTES)
    return validate(RunningProcess, value)


@reader
def _parsed(value: bytes) -> ProcessDocument:
    refuse_too_large(value, MAX_PROCESS_BYTES)
    return validate(ProcessDocument, value)
