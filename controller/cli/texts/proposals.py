"""Prints proposals: lists of them, and one with its content, its approvals, and how it stands now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.arguments import now_ms
from controller.cli.shared.console import command_line
from controller.cli.shared.layout import print_fields, print_line
from controller.cli.texts.planned import print_plan
from controller.wire.answers.proposals import DriftAnswer, ProposalAnswer, ProposalDetailAnswer, StatementAnswer
from controller.wire.readable import counted, utc

_LIST: Final = fields_of(
    ProposalAnswer,
    *("id", "kind", "state", "author", "approved_by", "required", "moves", "connections", "expires_at", "title"),
)
_STATEMENTS: Final = fields_of(StatementAnswer, "at", "person", "kind", "reason")
_MOST_CHANGES: Final = 5


def print_proposals(out: Console, answers: Sequence[ProposalAnswer]) -> None:
    """Print *answers*, a row each."""
    print_answers(out, _LIST, answers)


def print_proposal(out: Console, answer: ProposalAnswer) -> None:
    """Print the state of *answer* in a few lines."""
    print_fields(out, _fields(answer))


def print_detail(out: Console, answer: ProposalDetailAnswer, conf: Path | None) -> None:
    """Print all of *answer*; *conf* are the settings with which it is approved and carried out, None: a server's."""
    if answer.plan is not None:
        print_plan(out, answer.plan, None)
    for line in answer.content:
        print_line(out, line)
    out.print()
    print_answers(out, _STATEMENTS, answer.statements)
    next_lines = [] if conf is None else [("next", text) for text in _next(answer, conf)]
    print_fields(out, [*_fields(answer), *_drift_fields(answer.drift), *next_lines], whole=["next"])


def _fields(answer: ProposalAnswer) -> list[tuple[str, str]]:
    approvals = f"{len(answer.approved_by)} of {answer.required}"
    by = f", by {', '.join(answer.approved_by)}" if answer.approved_by else ""
    rows = [
        ("proposal", answer.id),
        ("what", answer.title),
        ("state", _state(answer)),
        ("approvals", f"{approvals}{by}; author: {answer.author}"),
        ("expires", utc(answer.expires_at)),
        ("carried out", _carried_out(answer)),
        ("by", _nobody(answer)),
        *(("note", flaw) for flaw in answer.flaws),
    ]
    return [(name, text) for name, text in rows if text]


def _state(answer: ProposalAnswer) -> str:
    if answer.state == "rejected" and answer.rejected_by:
        return f"rejected by {answer.rejected_by}"
    who = f", by {answer.by} at {utc(answer.at)}" if answer.at and answer.by else ""
    return f"{answer.state}{who}{f': {answer.detail}' if answer.detail else ''}"


def _carried_out(answer: ProposalAnswer) -> str:
    if not answer.step:
        return ""
    wave = f", wave {answer.wave} of {answer.waves}" if answer.wave else ""
    return f"step {answer.step}{wave}: {counted(answer.moves_done, 'move')} done"


def _nobody(answer: ProposalAnswer) -> str:
    """That no process goes on with what was begun; "" where one does, or nothing was begun."""
    if answer.state not in ("applying", "paused") or answer.held_until > now_ms():
        return ""
    return "no process, at present: `trimtab apply --proposal ID` goes on"


def _drift_fields(drift: DriftAnswer | None) -> list[tuple[str, str]]:
    if drift is None:
        return []
    when = f" at {utc(drift.interval)}" if drift.interval else ""
    rows = [("now", f"{drift.verdict}{when}: {drift.moves_done} moves done, {drift.moves_left} left")]
    changed = drift.changed[:_MOST_CHANGES]
    rows += [("changed", text) for text in changed]
    if len(drift.changed) > len(changed):
        rows.append(("changed", f"{len(drift.changed) - len(changed)} more; --json lists all"))
    return [*rows, *(("note", text) for text in drift.notes)]


def _next(answer: ProposalDetailAnswer, conf: Path) -> list[str]:
    short = answer.id[:12]
    match answer.state:
        case "pending":
            return [command_line("proposals", "approve", answer.id, conf=conf)]
        case "approved" if answer.kind == "plan":
            return [command_line("apply", "--proposal", short, conf=conf)]
        case "applying":
            return [command_line("proposals", "pause", short, conf=conf)]
        case "paused":
            return [command_line("proposals", "resume", short, conf=conf)]
        case "failed" | "stopped" | "expired" if answer.kind == "plan":
            return [command_line("proposals", "refresh", short, conf=conf)]
        case _:
            return []
