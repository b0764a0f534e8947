"""A bundle, a command and a verdict as text and as JSON; `status`, `lookup` and `commands tail` show them alike."""

from typing import Any

from controller.model.decision import Command, Verdict
from controller.status.bundle import LastDecision, LiveBundle
from controller.wire.answers.base import CommandAnswer, VerdictAnswer
from controller.wire.answers.status import BundleAnswer
from controller.wire.readable import amounts, compared, counted, utc
from controller.wire.results import Result


def bundle_answer(bundle: str, live: LiveBundle | None, decision: LastDecision) -> BundleAnswer:
    """For a program; without *live* nothing is said about now."""
    now = {} if live is None else live_fields(live)
    return BundleAnswer(bundle=bundle, **now, **decision_fields(decision))


def live_fields(live: LiveBundle) -> dict[str, Any]:
    """Whether it is there now, who has it, and with what load, for a program."""
    return {"exists": not live.missing, "owner": live.owner or None, "load": dict(live.load)}


def decision_fields(decision: LastDecision) -> dict[str, Any]:
    """The last decision for a program."""
    return {
        "last_command": None if decision.command is None else CommandAnswer.of(decision.command, decision.result),
        "judged": decision.judged,
        "verdicts": [VerdictAnswer.of(verdict) for verdict in decision.verdicts],
    }


def bundle_rows(bundle: str, live: LiveBundle | None, decision: LastDecision) -> list[tuple[str, str]]:
    """For people: what is told, and what it is."""
    now = (
        [("owner", "unknown: without a section [pulsar] the brokers are not asked")]
        if live is None
        else live_rows(live)
    )
    return [("bundle", bundle), *now, *decision_rows(decision)]


def live_rows(live: LiveBundle) -> list[tuple[str, str]]:
    """Who has it now, and with what load; or that there is no such bundle."""
    if live.missing:
        return [("now", f"no such bundle: {live.missing}")]
    if not live.owner:
        return [("owner", "nobody, until a client looks up a topic in it")]
    load = live.load
    ways = (
        f"{way} {amounts([load[f'msgRate{way.title()}']], 'msg/s')[0]},"
        f" {amounts([load[f'msgThroughput{way.title()}']], 'bytes/s')[0]}"
        for way in ("in", "out")
    )
    return [
        ("owner", f"{live.owner}, now"),
        ("load", "; ".join([counted(int(load["topics"]), "topic"), *ways])),
    ]


def decision_rows(decision: LastDecision) -> list[tuple[str, str]]:
    """The last decision for people."""
    rows = []
    if decision.command is None:
        rows.append(("decided", "no command about it lately"))
    else:
        command = decision.command
        rows.append(("decided", f"{utc(command.interval)}: {command.action} {does(command)}"))
        rows.append(("because", verdict_text(command.why)))
        rows.append(("result", became(decision.result)))
    if decision.judged is not None:
        rows.append(("judged", utc(decision.judged)))
        rows += [("", f"{verdict_text(each)}{f', by {each.by}' if each.by else ''}") for each in decision.verdicts]
    return rows


def became(result: Result | None) -> str:
    """What became of a command."""
    if result is None:
        return "no result yet"
    return result.status + (f": {result.detail}" if result.detail else "")


def does(command: Command | CommandAnswer) -> str:
    """What the command wants to be done, without the bundle."""
    if command.action == "unload":
        return f"{command.source} -> {command.destination or 'chosen by the brokers'}"
    at = "".join(f" 0x{boundary:08x}" for boundary in command.boundaries)
    return f"by {command.algorithm}{at}{', then unload' if command.unload_after_split else ''}"


def because(command: Command) -> str:
    """Why *command* was issued; with the broker or bundle that this is about where the command names another one."""
    subject = command.why.subject
    return f"{'' if subject in (command.bundle, command.source) else f'{subject}: '}{reason_text(command.why)}"


def verdict_cells(verdict: Verdict | VerdictAnswer) -> tuple[str, ...]:
    """The cells of a row about *verdict*: what, reason, observed, limit, by and detail."""
    given = [number for number in (verdict.observed, verdict.limit) if number is not None]
    shown = iter(amounts(given, verdict.unit))
    observed, limit = ("" if number is None else next(shown) for number in (verdict.observed, verdict.limit))
    return verdict.subject, verdict.reason, observed, limit, verdict.by, verdict.detail


def verdict_text(verdict: Verdict) -> str:
    """*verdict* for people: its subject, its reason, what was seen against which limit, and its detail."""
    return f"{verdict.subject}: {reason_text(verdict)}"


def reason_text(verdict: Verdict) -> str:
    """*verdict* for people, without its subject.  The detail is the text that is journalled, as it is."""
    numbers = "" if verdict.observed is None else compared(verdict.observed, verdict.limit, verdict.unit)
    detail = f": {verdict.detail}" if verdict.detail else ""
    return f"{verdict.reason}{f' ({numbers})' if numbers else ''}{detail}"
