"""A proposal in words: its state, what has changed since, who approved it, and what stopping it would do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.proposals import CONTROLLER, ProposalKind, ProposalState
from controller.model.proposed import ProposedDecision
from controller.web.issued_plan import IssuedPlan
from controller.web.views.formats import BrokerNames, BundleLabel, clock, percent, sentence, span, whole
from controller.web.views.now import Heading, KeyFigure
from controller.wire.answers.proposals import DriftAnswer, ProposalAnswer, StatementAnswer
from controller.wire.readable import counted

#: So many changes since the plan was made are written out.
_CHANGES: Final = 5
_SHORT: Final = 12
_KINDS: Final = {ProposalKind.PLAN: "Plan", ProposalKind.DECISION: "Decision", ProposalKind.CONTROL: "Change"}
_ENDS: Final = {
    ProposalState.DONE: "done",
    ProposalState.FAILED: "failed",
    ProposalState.STOPPED: "stopped",
    ProposalState.REJECTED: "rejected",
    ProposalState.EXPIRED: "expired",
}
#: Its moves have begun, or had.
STARTED: Final = (
    ProposalState.APPLYING,
    ProposalState.PAUSED,
    ProposalState.DONE,
    ProposalState.FAILED,
    ProposalState.STOPPED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalLine:
    """A proposal in a list."""

    id: str
    title: str
    state: str
    #: Of a chip: normal, active, failed or throttled.
    kind: str
    icon: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalStep:
    """A part of the state line."""

    text: str
    icon: str
    is_reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftText:
    """Whether it can still be carried out, in words."""

    #: "": it can; hold: it needs repair, or nobody knows; stop: it is void.
    kind: str
    lead: str
    text: str
    interval: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A line of the approvals."""

    lead: str
    text: str
    icon: str


def line(answer: ProposalAnswer, now_ms: int) -> ProposalLine:
    """*answer* in a list."""
    state = ProposalState(answer.state)
    kind, icon = _chip(state)
    waits = f", {len(answer.approved_by)} of {answer.required} approvals" if state is ProposalState.PENDING else ""
    ends = f", expires {clock(answer.expires_at, now_ms)}" if state in _WAITING else ""
    size = counted(answer.moves, "move") if answer.moves else ""
    parts = [each for each in (size, f"by {answer.author}, {clock(answer.proposed_at, now_ms)}{waits}{ends}") if each]
    return ProposalLine(
        id=answer.id,
        title=f"{answer.title[:1].upper()}{answer.title[1:]}" or answer.id[:_SHORT],
        state=answer.state,
        kind=kind,
        icon=icon,
        text=", ".join(parts),
    )


_WAITING: Final = (ProposalState.PENDING, ProposalState.APPROVED)


def _chip(state: ProposalState) -> tuple[str, str]:
    if state is ProposalState.PENDING:
        return "throttled", "clock"
    if state in (ProposalState.APPROVED, ProposalState.APPLYING):
        return "active", "check" if state is ProposalState.APPROVED else "play"
    if state is ProposalState.PAUSED:
        return "throttled", "pause"
    return ("normal", "check") if state is ProposalState.DONE else ("failed", "cross")


def heading(answer: ProposalAnswer, statements: Sequence[StatementAnswer], now_ms: int) -> Heading:
    """What it is, who proposed it, and how far it is."""
    what = answer.title or _KINDS[ProposalKind(answer.kind)]
    title = what[:1].upper() + what[1:]
    by = "the controllers" if answer.author == CONTROLLER else answer.author
    why_proposed = next((each.reason for each in statements if each.kind == "propose" and each.reason), "")
    reason = f": “{why_proposed}”" if why_proposed else ""
    progress = f" {_progress(answer, now_ms)}" if answer.state in STARTED else ""
    return Heading(title=title, text=f"Proposed by {by} at {clock(answer.proposed_at, now_ms)}{reason}.{progress}")


def _progress(answer: ProposalAnswer, now_ms: int) -> str:
    """How far it is, since when, by whom, and why."""
    state = ProposalState(answer.state)
    when = f" {'at' if state in _ENDS else 'since'} {clock(answer.at, now_ms)}" if answer.at else ""
    if state in (ProposalState.DONE, ProposalState.FAILED):
        return f"{state.capitalize()}{when}. {sentence(answer.detail)}".rstrip()
    by, why = f", by {answer.by}" if answer.by else "", f": “{answer.detail}”" if answer.detail else ""
    return f"{state.capitalize()}{when}{by}{why}."


def steps(answer: ProposalAnswer, now_ms: int) -> tuple[ProposalStep, ...]:
    """The state line: proposed, approved, applying, done."""
    state = ProposalState(answer.state)
    made = [ProposalStep(text=f"proposed {clock(answer.proposed_at, now_ms)}", icon="check", is_reached=True)]
    if state in (ProposalState.REJECTED, ProposalState.EXPIRED):
        by = f" by {answer.rejected_by}" if answer.rejected_by else ""
        return (*made, ProposalStep(text=f"{_ENDS[state]}{by}", icon="cross", is_reached=True))
    is_approved = state is not ProposalState.PENDING
    if answer.required:
        text = f"approved {len(answer.approved_by)} of {answer.required}"
        made.append(ProposalStep(text=text, icon="person", is_reached=is_approved or bool(answer.approved_by)))
    if answer.kind == "plan":
        text = "paused" if state is ProposalState.PAUSED else "applying"
        icon = "pause" if state is ProposalState.PAUSED else "play"
        made.append(ProposalStep(text=text, icon=icon, is_reached=state in STARTED))
    end = _ENDS.get(state, "done")
    icon = "cross" if state in (ProposalState.FAILED, ProposalState.STOPPED) else "check"
    made.append(ProposalStep(text=end, icon=icon, is_reached=state in _ENDS))
    return tuple(made)


def drift_text(drift: DriftAnswer | None, now_ms: int, *, has_begun: bool) -> DriftText | None:
    """What changed since the plan was made; how many moves are done is said elsewhere once it *has_begun*."""
    if drift is None:
        return None
    changes = ". ".join(drift.changed[:_CHANGES])
    more = f". {len(drift.changed) - _CHANGES} more." if len(drift.changed) > _CHANGES else "." if changes else ""
    notes = " ".join(drift.notes[:_CHANGES])
    checked = f"Checked against {clock(drift.interval, now_ms)}." if drift.interval else ""
    moves = "" if has_begun else f"{counted(drift.moves_left, 'move')} to go, {whole(drift.moves_done)} done."
    lead, kind, text = {
        "still valid": ("Still valid.", "", moves),
        "needs repair": ("It needs repair: refresh it.", "hold", changes + more),
        "void": ("Void: nothing of it is left to do, or possible.", "stop", changes + more),
    }.get(drift.verdict, ("Not known whether it is still valid.", "hold", notes))
    return DriftText(kind=kind, lead=lead, text=" ".join(filter(None, (checked, text))), interval=drift.interval)


def approvals(answer: ProposalAnswer, statements: Sequence[StatementAnswer], now_ms: int) -> tuple[Approval, ...]:
    """Who said what, and what is missing."""
    words = {"approve": ("approved", "check"), "reject": ("rejected", "cross")}
    made = []
    for each in statements:
        if each.kind not in words:
            continue
        word, icon = words[each.kind]
        signed = f", signed by {each.key}" if each.key else ""
        reason = f"“{each.reason}”" if each.reason else ""
        made.append(
            Approval(lead=each.person, text=f"{word} {clock(each.at, now_ms)}{signed}. {reason}".rstrip(), icon=icon)
        )
    if not statements:
        made += [Approval(lead=name, text="approved", icon="check") for name in answer.approved_by]
    missing = max(0, answer.required - len(answer.approved_by))
    if missing and answer.state == "pending":
        whose = "" if answer.author == CONTROLLER else f" {answer.author} is the author and may not."
        made.append(
            Approval(lead=f"{missing} more", text=f"{'is' if missing == 1 else 'are'} needed.{whose}", icon="clock")
        )
    return tuple(made)


def stop_text(progress: IssuedPlan, moves: int, drained: Sequence[str], names: BrokerNames) -> str:
    """What Stop and Pause would do now, in numbers."""
    counts = progress.counts
    rest = max(0, moves - counts["done"] - counts["in_flight"] - counts["failed"])
    stays = ", ".join(names.label(each) for each in drained)
    drain = f", and {stays} stays drained until it is released" if drained else ""
    flying = counts["in_flight"]
    flight = f"the {whole(flying)} in flight {'is' if flying == 1 else 'are'} finished, " if flying else ""
    return (
        f"{whole(counts['done'])} done, {whole(flying)} in flight, {whole(rest)} not issued. If you stop now: {flight}"
        f"{whole(rest)} never issued{drain}. If you pause: the same, and it goes on with Resume."
    )


def facts(answer: ProposalAnswer, now_ms: int) -> tuple[KeyFigure, ...]:
    """Figures of a proposal whose content is not verified yet, or that is no plan."""
    if ProposalKind(answer.kind) is ProposalKind.CONTROL:
        return (expiry(answer, now_ms),)
    return (
        KeyFigure(label="Moves", figure=whole(answer.moves), unit="", context="bundles that get another broker"),
        KeyFigure(label="Splits", figure=whole(answer.splits), unit="", context="bundles that are cut"),
        KeyFigure(
            label="Clients reconnect", figure=whole(answer.connections), unit="", context="producers and consumers"
        ),
        expiry(answer, now_ms),
    )


def expiry(answer: ProposalAnswer, now_ms: int) -> KeyFigure:
    """Until when it counts."""
    remaining = max(0, answer.expires_at - now_ms) / 1000
    context = f"in {span(remaining)}" if ProposalState(answer.state) in _WAITING else answer.state
    return KeyFigure(label="Expires", figure=clock(answer.expires_at, now_ms), unit="UTC", context=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionMove:
    """A command of a decision that waits."""

    bundle: BundleLabel
    action: str
    source: str
    destination: str
    reason: str


def decision_moves(decision: ProposedDecision, limit: int) -> tuple[DecisionMove, ...]:
    """The first *limit* commands of *decision*."""
    return tuple(
        DecisionMove(
            bundle=BundleLabel.of(each.bundle),
            action=each.action,
            source=each.source,
            destination=each.destination,
            reason=str(each.why.reason),
        )
        for each in decision.commands[:limit]
    )


def decision_usage(decision: ProposedDecision) -> tuple[tuple[str, str, str], ...]:
    """Broker, usage as it is and as predicted, percent; the fullest first."""
    brokers = sorted(decision.usage.items(), key=lambda pair: -pair[1].before)
    return tuple((name, percent(100 * each.before), percent(100 * each.after)) for name, each in brokers)
