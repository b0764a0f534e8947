"""The processes that run, and what needs attention, as the status answers it."""

from dataclasses import dataclass
from typing import Final

from controller.web.views.formats import span
from controller.wire.answers.status import ProcessAnswer, StatusAnswer

#: So many processes are listed.
_MAX_LINES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLine:
    """A process in a table."""

    role: str
    name: str
    text: str
    is_ready: bool
    #: For how long it runs.
    age: str


def process_lines(status: StatusAnswer | None, now_ms: int) -> tuple[ProcessLine, ...]:
    """Leaders first, at most a dozen; empty where the status is not known."""
    if status is None:
        return ()
    return tuple(_line(process, status.epoch, now_ms) for process in status.processes.running[:_MAX_LINES])


def _line(process: ProcessAnswer, epoch: int, now_ms: int) -> ProcessLine:
    role = process.role.capitalize()
    parts = [process.state]
    if process.role == "controller" and process.leads:
        role, parts = "Leader", [f"epoch {epoch}"]
    elif process.brokers is not None:
        parts = [f"{process.brokers:,} brokers"]
    elif process.partitions is not None:
        parts = [f"{process.partitions:,} partitions"]
    return ProcessLine(
        role=role,
        name=process.host,
        text=", ".join(parts),
        is_ready=process.ready,
        age=span((now_ms - process.started_at) / 1000),
    )
