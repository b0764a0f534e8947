"""A bundle and a command as text and as JSON; `status` and `lookup` show them alike."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from controller.model.decision import Command
from controller.status.bundle import LastDecision, LiveBundle
from controller.wire.results import Result


def bundle_fields(bundle: str, live: LiveBundle | None, decision: LastDecision) -> dict[str, Any]:
    """For a program; without *live* nothing is said about now."""
    now = {} if live is None else {"owner": live.owner or None, "load": dict(live.load)}
    return {"bundle": bundle, **now, **decision_fields(decision)}


def decision_fields(decision: LastDecision) -> dict[str, Any]:
    """The last decision for a program."""
    return {
        "lastCommand": None if decision.command is None else json_of(decision.command, decision.result),
        "judged": decision.judged,
        "verdicts": [asdict(verdict) for verdict in decision.verdicts],
    }


def bundle_lines(bundle: str, live: LiveBundle | None, decision: LastDecision) -> list[str]:
    """For people."""
    rows = {"bundle": bundle, **({} if live is None else live_rows(live))}
    return [f"{key:<10} {value}" for key, value in rows.items()] + decision_lines(decision)


def live_rows(live: LiveBundle) -> dict[str, str]:
    """Who has it now, and with what load."""
    if not live.owner:
        return {"owner": "nobody, until a client looks up a topic in it"}
    load = live.load
    return {
        "owner": f"{live.owner}, now",
        "load": f"{load['topics']:.0f} topics, in {load['msgRateIn']:.1f} msg/s {load['msgThroughputIn']:.0f} bytes/s,"
        f" out {load['msgRateOut']:.1f} msg/s {load['msgThroughputOut']:.0f} bytes/s",
    }


def decision_lines(decision: LastDecision) -> list[str]:
    """The last decision for people."""
    lines = []
    if decision.command is None:
        lines.append(f"{'decided':<10} no command about it lately")
    else:
        command, result = decision.command, decision.result
        lines.append(f"{'decided':<10} {utc(command.interval)}: {command.action} {does(command)}")
        lines.append(f"{'because':<10} {command.why}")
        became = "no result yet" if result is None else f"{result.status} {result.detail}".rstrip()
        lines.append(f"{'result':<10} {became}")
    if decision.judged is not None:
        lines.append(f"{'judged':<10} {utc(decision.judged)}")
        lines += [f"{'':<10} {verdict}{f', by {verdict.by}' if verdict.by else ''}" for verdict in decision.verdicts]
    return lines


def json_of(command: Command, result: Result | None) -> dict[str, Any]:
    """A command with what became of it."""
    fields = asdict(command)
    return {**fields, "result": None if result is None else result.model_dump(mode="json", by_alias=True)}


def does(command: Command) -> str:
    """What the command wants to be done, without the bundle."""
    if command.action == "unload":
        return f"{command.source} -> {command.destination or 'chosen by the brokers'}"
    return f"by {command.algorithm}{''.join(f' 0x{boundary:08x}' for boundary in command.boundaries)}"


def utc(time_ms: int) -> str:
    """An interval, epoch ms, for people."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
