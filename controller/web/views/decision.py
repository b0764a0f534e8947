"""One decision: what was done with promise and measurement, what was left alone, and why not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.decision import Verdict
from controller.web.store.values import BrokerMeasure, DecisionDetail, IssuedCommand
from controller.web.views.chips import Chip, outcome_chips, reason_chip, reason_kind, reason_meaning
from controller.web.views.formats import BrokerNames, BundleLabel, clock, percent
from controller.web.views.now import MISSED_POINTS, Heading, KeyFigure
from controller.web.views.sentences import amount_of, held_back, main_reason, why_text
from controller.wire.decision_texts import verdict_cells
from controller.wire.readable import counted, in_number

#: The classes of reasons, and what they are called on the page.
KINDS: Final[Mapping[str, str]] = {
    "normal": "normal",
    "throttled": "passes with time",
    "configuration": "a setting or person",
    "impossible": "cannot be done",
}
#: So many verdicts are listed, and so many commands with their promises.
_VERDICTS: Final = 60
#: So many of those that stand in nobody's way are listed among all.
_NORMAL: Final = 8
COMMANDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A broker of a move: before, promised and measured, percent of its fullest resource; None: not known."""

    broker: str
    before: float | None
    promised: float | None
    measured: float | None
    #: Measured, or else promised: where the line from *before* ends.
    end: float | None
    missed: bool
    #: "84 → 80, is" and "80 %".
    text: str
    is_text: str
    #: The same for readers.
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """A command with what became of it."""

    command: IssuedCommand
    bundle: BundleLabel
    why: str
    chips: tuple[Chip, ...]
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictShare:
    """How many verdicts have a class of reasons; x and width are percent."""

    kind: str
    text: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """What was found about one subject."""

    subject: str
    #: None: the subject is a broker, the cluster or a command.
    bundle: BundleLabel | None
    label: str
    is_broker: bool
    chip: Chip
    text: str
    observed: str
    limit: str
    by: str


def heading(detail: DecisionDetail, now_ms: int) -> Heading:
    """What was done at T, and what was held back."""
    row, at = detail.row, clock(detail.row.interval, now_ms)
    back = held_back(row.reasons or {})
    rest = f"; {counted(back, 'finding')} held something back" if back else ""
    if row.commands:
        title = f"{at}: {amount_of(detail.commands) or counted(row.commands, 'command')}{rest}"
    else:
        reason = main_reason(row)
        title = f"{at}: nothing was issued{f', {reason}' if reason else ''}"
    dry = " Commands of a dry run change nothing." if row.mode == "dry_run" and row.commands else ""
    return Heading(title=title, text=f"{in_number(row.summary)}.{dry}")


def facts(detail: DecisionDetail) -> tuple[KeyFigure, ...]:
    """Five figures about the decision."""
    row = detail.row
    measured = [command.measured for command in detail.commands if command.measured is not None]
    arrived = sum(each.outcome == "arrived" for each in measured)
    undone = sum(bool(each.undone) for each in measured)
    speed = "?" if detail.tick_to_decision_ms is None else f"{detail.tick_to_decision_ms / 1000:.1f}"
    misses = [
        miss for each in measured for side in (each.source, each.destination) if (miss := _miss(side)) is not None
    ]
    done = sum(count for status, count in row.statuses.items() if status in ("done", "already_done"))
    waiting = f"{row.statuses.get('', 0):,} wait for a result" if row.statuses.get("") else "all have a result"
    return (
        KeyFigure(label="Commands", figure=f"{row.commands:,}", unit="", context=f"{done:,} done; {waiting}"),
        KeyFigure(
            label="Moves that arrived",
            figure=f"{arrived:,}" if measured else "?",
            unit=f"of {len(measured):,}" if measured else "",
            context=f"{undone:,} undone" if measured else "none is measured yet",
        ),
        KeyFigure(
            label="Promises kept within",
            figure=f"{sum(misses) / len(misses):.1f}" if misses else "?",
            unit="points" if misses else "",
            context="of usage, two intervals later",
        ),
        KeyFigure(
            label="Verdicts",
            figure="?" if detail.verdicts_total is None else f"{detail.verdicts_total:,}",
            unit="",
            context=f"{held_back(row.reasons or {}):,} say that something is in the way",
        ),
        KeyFigure(
            label="Tick to decision",
            figure=speed,
            unit="s" if speed != "?" else "",
            context=f"epoch {row.epoch}, mode {row.mode.replace('_', ' ')}{', paused' if row.paused else ''}",
        ),
    )


def moves(commands: Sequence[IssuedCommand], names: BrokerNames) -> tuple[CommandOutcome, ...]:
    """The first commands with their promises."""
    return tuple(
        CommandOutcome(
            command=command,
            bundle=BundleLabel.of(command.bundle),
            why=why_text(command.why, names),
            chips=outcome_chips(command),
            sides=_sides(command, names),
        )
        for command in commands[:COMMANDS]
    )


def _sides(command: IssuedCommand, names: BrokerNames) -> tuple[Side, ...]:
    if command.measured is None:
        return ()
    sides = (command.measured.source, command.measured.destination)
    return tuple(_side(side, names) for side in sides if side.broker and side.before is not None)


def _miss(side: BrokerMeasure) -> float | None:
    if side.promised is None or side.measured is None:
        return None
    return abs(side.promised - side.measured)


def _side(side: BrokerMeasure, names: BrokerNames) -> Side:
    miss = _miss(side)
    promised = "" if side.promised is None else f" → {percent(side.promised)}"
    words = [f"{names.label(side.broker)}: before {percent(side.before)} %"]
    if side.promised is not None:
        words.append(f"promised {percent(side.promised)} %")
    words.append("not measured yet" if side.measured is None else f"measured {percent(side.measured)} %")
    return Side(
        broker=side.broker,
        before=_inside(side.before),
        promised=_inside(side.promised),
        measured=_inside(side.measured),
        end=_inside(side.measured if side.measured is not None else side.promised),
        missed=miss is not None and miss > MISSED_POINTS,
        text=f"{percent(side.before)}{promised}{', is' if side.measured is not None else ' %'}",
        is_text="" if side.measured is None else f"{percent(side.measured)} %",
        words=", ".join(words),
    )


def _inside(usage: float | None) -> float | None:
    return None if usage is None else round(min(100.0, max(0.0, usage)), 2)


def parts(reasons: Mapping[str, int]) -> tuple[VerdictShare, ...]:
    """The classes of *reasons* as shares of all verdicts; one that is rare is still wide enough to be seen."""
    counts = {kind: sum(n for reason, n in reasons.items() if reason_kind(reason) == kind) for kind in KINDS}
    total = sum(counts.values())
    if not total:
        return ()
    widths = {kind: max(1.5, 100 * count / total) for kind, count in counts.items() if count}
    scale = 100 / sum(widths.values())
    made, x = [], 0.0
    for kind, width in widths.items():
        made.append(VerdictShare(kind=kind, text=KINDS[kind], count=counts[kind], x=x, width=width * scale - 0.3))
        x += width * scale
    return tuple(made)


def verdict_lines(
    verdicts: Sequence[Verdict], names: BrokerNames, *, kind: str = "", text: str = ""
) -> tuple[VerdictLine, ...]:
    """Those with a reason of *kind* in which *text* occurs; what is in the way first."""
    order = list(KINDS)[::-1]
    matching = [
        verdict
        for verdict in verdicts
        if (not kind or reason_kind(verdict.reason) == kind)
        and text.casefold() in f"{verdict.subject} {verdict.reason} {verdict.by}".casefold()
    ]
    matching.sort(key=lambda verdict: order.index(reason_kind(verdict.reason)))
    if not kind and not text:  # what stands in nobody's way is a button away
        first_normal = sum(reason_kind(verdict.reason) != "normal" for verdict in matching)
        matching = matching[: first_normal + _NORMAL]
    return tuple(verdict_line(verdict, names) for verdict in matching[:_VERDICTS])


def verdict_line(verdict: Verdict, names: BrokerNames) -> VerdictLine:
    """One verdict in words with both numbers."""
    _, _, observed, limit, by, detail = verdict_cells(verdict)
    name = BundleLabel.of(verdict.subject)
    label = names.label(verdict.subject)
    return VerdictLine(
        subject=verdict.subject,
        bundle=name if name.range else None,
        label=label,
        is_broker=not name.range and label != verdict.subject,
        chip=reason_chip(verdict.reason),
        text=detail or reason_meaning(verdict.reason),
        observed=observed,
        limit=limit,
        by=by,
    )
