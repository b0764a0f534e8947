"""Reasons and outcomes as chips: a sign and a word first, a colour last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.model.decision import Reason
from controller.model.reasons import ReasonClass
from controller.status.reasons import MEANINGS
from controller.web.store.values import IssuedCommand
from controller.web.views.formats import span

_ICONS: Final[Mapping[str, str]] = {
    "normal": "check",
    "throttled": "clock",
    "configuration": "lock",
    "impossible": "ban",
}
#: Outcomes of the audit that are not simply an arrival (docs/audit.md).
_ODD: Final[Mapping[str, str]] = {
    "elsewhere": "came elsewhere",
    "stayed": "stayed",
    "unlisted": "not listed yet",
    "merged": "merged",
}
#: Statuses of executors that no person has to look at (docs/executor.md).
_GOOD: Final = frozenset(("done", "already_done", "dry_run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A word with a sign."""

    #: normal, throttled, configuration, impossible, odd, active or failed: a class of the style sheet.
    kind: str
    icon: str
    text: str
    #: What it means, in a sentence; "": the word says it.
    title: str = ""


def reason_kind(reason: str) -> str:
    """The class of *reason*; normal for one that this release does not know."""
    try:
        return str(MEANINGS[Reason(reason)].kind)
    except ValueError:
        return str(ReasonClass.NORMAL)


def reason_meaning(reason: str) -> str:
    """What *reason* says; "" for one that this release does not know."""
    try:
        return MEANINGS[Reason(reason)].text
    except ValueError:
        return ""


def reason_chip(reason: str, count: int | None = None) -> Chip:
    """*reason* under its own name, so that it can be searched for."""
    kind = reason_kind(reason)
    text = reason if count is None else f"{reason} {count:,}"
    return Chip(kind=kind, icon=_ICONS[kind], text=text, title=reason_meaning(reason))


def status_chips(statuses: Mapping[str, int]) -> tuple[Chip, ...]:
    """What became of the commands of a decision, as counts; those without a result last."""
    ordered = sorted(statuses.items(), key=lambda pair: (pair[0] == "", pair[0] not in _GOOD, pair[0]))
    return tuple(_counted_status(status, count) for status, count in ordered if count)


def _counted_status(status: str, count: int) -> Chip:
    if not status:
        return Chip(kind="active", icon="right", text=f"{count:,} in flight", title="no result has come back yet")
    if status in _GOOD:
        return Chip(kind="normal", icon="check", text=f"{count:,} {status.replace('_', ' ')}")
    failed = status == "failed"
    text = f"{count:,} {status.replace('_', ' ')}"
    return Chip(kind="failed" if failed else "odd", icon="cross" if failed else "warn", text=text)


def outcome_chips(command: IssuedCommand) -> tuple[Chip, ...]:
    """What became of one command: the executor's status, the audit's outcome, and whether it was undone."""
    chips = [_status_chip(command)]
    measured = command.measured
    if measured is None:
        return tuple(chips)
    if measured.outcome == "arrived":
        chips.append(Chip(kind="normal", icon="check", text="arrived"))
    elif measured.outcome in _ODD:
        chips.append(Chip(kind="odd", icon="warn", text=_ODD[measured.outcome]))
    if measured.undone:
        by = f" by {measured.undone_by}" if measured.undone_by else ""
        chips.append(Chip(kind="odd", icon="warn", text=f"undone{by}", title="back on its source within an hour"))
    return tuple(chips)


def _status_chip(command: IssuedCommand) -> Chip:
    if not command.status:
        return Chip(kind="active", icon="right", text="in flight", title="no result has come back yet")
    seconds = ""
    if command.started_at is not None and command.finished_at is not None:
        seconds = f", {max(0, command.finished_at - command.started_at) / 1000:.1f} s"
        if command.finished_at - command.started_at >= 120_000:
            seconds = f", {span((command.finished_at - command.started_at) / 1000)}"
    text = command.status.replace("_", " ") + seconds
    if command.status in _GOOD:
        return Chip(kind="normal", icon="check", text=text, title=command.detail)
    failed = command.status == "failed"
    return Chip(kind="failed" if failed else "odd", icon="cross" if failed else "warn", text=text, title=command.detail)
