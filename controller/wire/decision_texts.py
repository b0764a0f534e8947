"""Commands and verdicts as text for people."""

from controller.model.decision import Command, Verdict
from controller.wire.answers.base import CommandAnswer, VerdictAnswer
from controller.wire.readable import amounts, compared
from controller.wire.results import Result


def became(result: Result | None) -> str:
    """The outcome of a command."""
    if result is None:
        return "no result yet"
    return result.status + (f": {result.detail}" if result.detail else "")


def does(command: Command | CommandAnswer) -> str:
    """The action of the command, without the bundle."""
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
    numbers = [number for number in (verdict.observed, verdict.limit) if number is not None]
    texts = iter(amounts(numbers, verdict.unit))
    observed, limit = ("" if number is None else next(texts) for number in (verdict.observed, verdict.limit))
    return verdict.subject, verdict.reason, observed, limit, verdict.by, verdict.detail


def verdict_text(verdict: Verdict | VerdictAnswer) -> str:
    """*verdict* for people: its subject, its reason, what was seen against which limit, and its detail."""
    return f"{verdict.subject}: {reason_text(verdict)}"


def reason_text(verdict: Verdict | VerdictAnswer) -> str:
    """*verdict* for people, without its subject.  The detail is the text that is journalled, as it is."""
    numbers = "" if verdict.observed is None else compared(verdict.observed, verdict.limit, verdict.unit)
    detail = f": {verdict.detail}" if verdict.detail else ""
    return f"{verdict.reason}{f' ({numbers})' if numbers else ''}{detail}"
