"""The answer of ``trimtab status`` about a cluster, for people: whole, and on one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from controller.cli.shared.console import command_line
from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.model.decision import Command
from controller.model.leadership import Leader
from controller.model.pulsar_version import version_text
from controller.status.cluster import ClusterStatus
from controller.status.guardrails import guardrail_rows
from controller.status.health import Problem, health_line
from controller.status.processes import process_cells, process_counts, process_rows
from controller.wire.decision_texts import became, does
from controller.wire.readable import ago, counted, in_number, utc
from controller.wire.results import Result

#: Width of the names in front of the values.
LABEL: Final = 9


def print_status(out: Console, status: ClusterStatus, problems: Sequence[Problem], now_ms: float, conf: Path) -> None:
    """For people; *conf* are the settings of the commands that it names."""
    run, collect = (f"start `{command_line(name, conf=conf)}`" for name in ("run", "collect"))
    rows = [
        ("health", health_line(problems)),
        *(("", f"{each.title}: {each.detail}") for each in problems),
        ("cluster", status.cluster),
        (
            "leader",
            f"unknown: {status.leader_unknown}" if status.leader_unknown else _leader(status.leader, now_ms, run),
        ),
        ("epoch", str(status.epoch) if status.epoch else "none: no controller has led yet"),
        *process_rows(status.processes),
        ("decided", _decided(status, now_ms, run, collect)),
        *_pulsar(status),
        *guardrail_rows(status.guardrails).items(),
        ("ticked", _ticked(status, now_ms, collect)),
        *_load_rows(status),
        *_in_flight_rows(status),
    ]
    print_fields(out, rows, label=LABEL)
    for command, result in status.commands:
        print_line(out, _of_command(command, result), first="  ", rest="    ")
    if status.processes.running:
        out.print()
        header = columns("role", "where", "version", "runs for", "seen", "does", prose=("does",))
        print_table(out, header, [process_cells(each, now_ms) for each in status.processes.running])


def status_line(status: ClusterStatus, problems: Sequence[Problem], now_ms: float) -> str:
    """All of it on one line, for people who follow it in a file."""
    parts = [
        health_line(problems),
        "no leader" if status.leader is None else f"leader {status.leader.host}, process {status.leader.process}",
        "nothing decided" if status.last is None else f"decided {utc(status.last.interval)}",
        f"mode {status.guardrails.mode}{_paused_by(status)}",
        f"{counted(len(_acting(status)), 'command')} in flight",
        process_counts(status.processes),
    ]
    return f"{utc(int(now_ms))}  {'  '.join(parts)}"


def _paused_by(status: ClusterStatus) -> str:
    if not status.guardrails.paused:
        return ""
    names = sorted({each.by for each in status.guardrails.pauses})
    return f", paused by {', '.join(names)}" if names else ", paused by the settings"


def _load_rows(status: ClusterStatus) -> list[tuple[str, str]]:
    rows = []
    if status.imbalance is not None:
        even = status.imbalance
        rows.append(
            (
                "imbalance",
                f"the busiest of {counted(even.brokers, 'broker')} has {even.msg_rate:.2f} times the average by"
                f" messages ({even.busiest}), {even.msg_throughput:.2f} times by bytes",
            )
        )
    rows += [("silent", f"{broker}: {why}") for broker, why in status.silent.items()]
    if status.judged is not None:
        rows.append(("reasons", f"{utc(status.judged)}: {_counts(status.reasons)}"))
    return rows + [("policies", why) for why in status.unreadable_policies]


def _in_flight_rows(status: ClusterStatus) -> list[tuple[str, str]]:
    rows = [("in flight", counted(len(_acting(status)), "command"))]
    # Results that came after the last decision count, as the list of commands below shows them.
    answered = {command.id for command, result in status.commands if result is not None}
    waiting = [key for key, each in status.in_flight.items() if each.dry_run and key not in answered]
    if waiting:
        rows.append(("dry run", f"{counted(len(waiting), 'command')} without an executor's answer; they move nothing"))
    return rows


def _acting(status: ClusterStatus) -> list[str]:
    """The commands in flight that are to be carried out."""
    return [key for key, each in status.in_flight.items() if not each.dry_run]


def _leader(leader: Leader | None, now_ms: float, run: str) -> str:
    if leader is None:
        return f"none: no controller runs; {run}"
    who = f"{leader.host}, process {leader.process}" if leader.host else "a process that does not say who it is"
    return f"{who}, since {utc(leader.since_ms)}, {ago(now_ms, leader.since_ms)}"


def _decided(status: ClusterStatus, now_ms: float, run: str, collect: str) -> str:
    last = status.last
    if last is None:
        if status.leader is None:
            return "nothing decided yet" + ("" if status.leader_unknown else f"; {run}")
        wait = collect if status.ticked is None else "a decision follows each interval that ends"
        return f"nothing decided yet; {wait}"
    controls = last.controls
    notes = [note for note, on in (("paused", controls.paused), ("stale", controls.stale)) if on]
    how = ", ".join([controls.mode, *notes])
    return f"{utc(last.interval)}, {ago(now_ms, last.interval)}, {how}: {in_number(last.decision.summary)}"


def _pulsar(status: ClusterStatus) -> list[tuple[str, str]]:
    used = None if status.last is None else status.last.decision.pulsar
    if used is None:
        return []
    advice = "set pulsar in [cluster], or run `trimtab collect`" if used.source == "nobody" else ""
    return [("pulsar", "; ".join(filter(None, [version_text(used), advice])))]


def _ticked(status: ClusterStatus, now_ms: float, collect: str) -> str:
    if status.ticked is None:
        return f"never: no interval has ended; {collect}"
    return f"{utc(status.ticked)}, {ago(now_ms, status.ticked)}"


def _of_command(command: Command, result: Result | None) -> str:
    """What was issued, and what became of it.  A dry run that was checked would only say again what was issued."""
    dry_run = command.mode == "dry_run"
    is_checked = dry_run and result is not None and result.status == "dry_run"
    action = f"{'dry run of ' if dry_run else ''}{command.action}"
    end = "checked, nothing was changed" if is_checked else became(result)
    return f"{utc(command.interval)}  {action} {command.bundle}  {does(command)}: {end}"


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "none"
