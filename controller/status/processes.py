"""Which processes run, and what is wrong with them, for people and for programs."""

from collections import Counter
from typing import Final

from controller.adapters.registration import RegisteredProcesses, SeenProcess
from controller.wire.answers.status import ProcessAnswer, ProcessesAnswer
from controller.wire.process import ROLES, RunningProcess
from controller.wire.readable import ago, counted, duration

#: Maximum number of unusable entries that are named.
_NAMED: Final = 5


def process_rows(status: RegisteredProcesses) -> list[tuple[str, str]]:
    """The rows above the table of processes."""
    if status.unknown:
        return [("processes", f"unknown: {status.unknown}")]
    rows = [("processes", process_counts(status))]
    if len(status.of("controller")) == 1:
        rows.append(("standby", "none: if the controller ends, no other takes over until it is started again"))
    named = [f"{name}: {why}" for name, why in sorted(status.unusable.items())]
    rows += [("unusable", line) for line in named[:_NAMED]]
    more = max(0, len(named) - _NAMED) + status.left_out
    if more:
        rows.append(("", f"and {counted(more, 'more entry', 'more entries')} of the registry not shown"))
    return rows


def process_cells(running: SeenProcess, now_ms: float) -> tuple[str, ...]:
    """A row of the table of processes."""
    process = running.process
    runs = duration(max(0.0, now_ms - process.started_at) / 1000)
    return (
        process.role,
        f"{process.host}, process {process.process}",
        version_text(process),
        runs,
        ago(now_ms, min(running.seen_ms, int(now_ms))),
        _does(process),
    )


def process_answer(status: RegisteredProcesses) -> ProcessesAnswer:
    """For a program."""
    return ProcessesAnswer(
        running=[
            ProcessAnswer(**running.process.model_dump(exclude={"standstill_ms"}), seen_at=running.seen_ms)
            for running in status.running
        ],
        unusable=dict(status.unusable),
        left_out=status.left_out,
        unknown=status.unknown,
    )


def differing_versions(status: RegisteredProcesses) -> str:
    """Each version with the processes that run it; "" where all run the same, as far as that is known."""
    roles: dict[str, Counter[str]] = {}
    for running in status.running:
        roles.setdefault(version_text(running.process), Counter())[running.process.role] += 1
    processes = [running.process for running in status.running]
    if max(len({each.version for each in processes}), len({each.commit for each in processes if each.commit})) < 2:
        return ""
    return "; ".join(
        f"{version}: {', '.join(counted(of[role], role) for role in ROLES if of[role])}"
        for version, of in sorted(roles.items())
    )


def version_text(process: RunningProcess) -> str:
    """Its version, with the commit where that is known."""
    return f"{process.version} ({process.commit})" if process.commit else process.version


def process_counts(status: RegisteredProcesses) -> str:
    """How many there are of each role."""
    if status.unknown:
        return "the processes are unknown"
    return ", ".join(counted(len(status.of(role)), role) if status.of(role) else f"no {role}" for role in ROLES)


def _does(process: RunningProcess) -> str:
    """What it says, and which part of the work it has."""
    parts = [process.state]
    if process.role == "collector" and process.brokers is not None:
        parts.append(f"{counted(process.brokers, 'broker')}{', ends the intervals' if process.leads else ''}")
    if process.group:
        parts.append(f"group {process.group}")
    if process.commands:
        parts.append(f"commands {process.commands}")
    return "; ".join(filter(None, parts))
