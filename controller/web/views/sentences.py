"""Decisions in words."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.model.decision import Verdict
from controller.model.some_of import some_of
from controller.web.store.values import DecisionRow, IssuedCommand
from controller.web.views.chips import Chip, reason_chip, reason_kind, reason_meaning, status_chips
from controller.web.views.formats import BrokerNames, BundleLabel
from controller.wire.readable import counted, in_number

#: So many brokers or namespaces are named in a sentence.
_NAMED: Final = 3
#: What stops a whole decision, the most general first; other reasons are about single bundles.
_STOPS: Final = (
    "ControlsUnknown", "Breaker", "Paused", "BrokersBalance", "BrokersBalanceUnknown", "Maintenance", "Stale",
    "CatchingUp", "WarmingUp", "Gap", "Frozen", "ObserveOnly", "PlanInForce", "Disabled", "NoLoadData", "NoBrokers",
)  # fmt: skip

#: Verdicts of strategies that want something to be moved or split.
_WISHES: Final = frozenset(
    ("Overloaded", "Underloaded", "BrokerJoined", "BrokerLeft", "Topics", "Sessions", "MsgRate", "Bandwidth", "Planned")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLine:
    """A decision in a list."""

    interval: int
    #: What was issued, in a few words, to be emphasised: "3 moves, 1 split", or "Nothing issued".
    lead: str
    #: The rest of the sentence.
    text: str
    chips: tuple[Chip, ...]
    #: The oldest interval, where the line is of several in a row that issued nothing for the same reason.
    since: int | None = None


def decision_lines(
    rows: Iterable[DecisionRow], commands_of: Callable[[int], Sequence[IssuedCommand]], names: BrokerNames, limit: int
) -> list[DecisionLine]:
    """At most *limit* lines of *rows*, newest first; intervals in a row with nothing for one reason are one line."""
    lines: list[DecisionLine] = []
    reason, count = None, 0
    for row in rows:
        why = None if row.commands else main_reason(row)
        if why is not None and why == reason:
            count += 1
            lead = f"Nothing issued in {counted(count, 'interval')}"
            lines[-1] = replace(lines[-1], lead=lead, since=row.interval)
            continue
        if len(lines) == limit:
            break
        lines.append(decision_line(row, commands_of(row.interval) if row.commands else (), names))
        reason, count = why, 1
    return lines


def decision_line(row: DecisionRow, commands: Sequence[IssuedCommand], names: BrokerNames) -> DecisionLine:
    """*row*, whose *commands* are all that it issued, or empty where they are not known."""
    if row.commands:
        lead = amount_of(commands) if commands else counted(row.commands, "command")
        text = route(commands, names) if commands else ""
        return DecisionLine(interval=row.interval, lead=lead, text=text, chips=status_chips(row.statuses))
    reason = main_reason(row)
    if reason is None:
        return DecisionLine(interval=row.interval, lead="Nothing issued", text=f": {in_number(row.summary)}", chips=())
    text = f": {reason_meaning(reason)}."
    return DecisionLine(interval=row.interval, lead="Nothing issued", text=text, chips=(reason_chip(reason),))


def amount_of(commands: Iterable[IssuedCommand]) -> str:
    """How many moves and splits: "3 moves and 1 split"."""
    by_action = Counter(command.action for command in commands)
    parts = []
    if by_action["unload"]:
        parts.append(counted(by_action["unload"], "move"))
    if by_action["split"]:
        parts.append(counted(by_action["split"], "split"))
    return " and ".join(parts)


def route(commands: Sequence[IssuedCommand], names: BrokerNames) -> str:
    """From where to where, and where splits are: " off broker-4 to broker-7 and broker-8; the split in a/b"."""
    moves = [command for command in commands if command.action == "unload"]
    splits = [command for command in commands if command.action == "split"]
    text = ""
    if moves:
        sources = _ordered(names.label(command.source) for command in moves)
        destinations = _ordered(names.label(command.destination) for command in moves if command.destination)
        text = f" off {_listed(sources)}"
        text += f" to {_listed(destinations)}" if destinations else ", where the brokers choose"
    if splits:
        namespaces = _ordered(BundleLabel.of(command.bundle).namespace for command in splits)
        text += f"{'; the split is' if moves and len(splits) == 1 else '; splits are' if moves else ''}"
        text += f" in {_listed(namespaces)}"
    return f"{text}."


def main_reason(row: DecisionRow) -> str | None:
    """Why a decision issued nothing: what stops all, else the reason given limit often; None: it is not known."""
    reasons = dict(row.reasons or {})
    if row.paused:
        return "Paused"
    stop = next((reason for reason in _STOPS if reason in reasons), None)
    if stop is not None:
        return stop
    if "Balanced" in reasons and _WISHES.isdisjoint(reasons):
        # What settings exclude stands in every decision, and stopped nothing where nothing was to be moved.
        reasons = {reason: count for reason, count in reasons.items() if reason_kind(reason) != "configuration"}
    held_back = {reason: count for reason, count in reasons.items() if reason_kind(reason) != "normal"}
    candidates = held_back or reasons
    return max(candidates, key=lambda reason: (candidates[reason], reason)) if candidates else None


def held_back(reasons: Mapping[str, int]) -> int:
    """How many verdicts say that something is in the way."""
    return sum(count for reason, count in reasons.items() if reason_kind(reason) != "normal")


def why_text(verdict: Verdict, names: BrokerNames) -> str:
    """The detail of *verdict*; without one, what its reason means, about its subject."""
    if verdict.detail:
        return verdict.detail
    subject = names.label(verdict.subject)
    return f"{subject}: {reason_meaning(verdict.reason)}"


def _ordered(names: Iterable[str]) -> list[str]:
    """Without repetition, those that are named limit often first."""
    return [name for name, _ in Counter(names).most_common()]


def _listed(names: Sequence[str]) -> str:
    return (
        some_of(names, _NAMED)
        if len(names) > _NAMED
        else " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    )
