"""Whether the model allows what really happened: a trace of events, judged by the rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.protocol.rules import KINDS, Event, Ledger, Life, RuleError, allowed, step, unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a trace is not one of the model."""

    #: Of the event in the trace; its length where something is missing at the end.
    at: int
    event: Event | None
    why: str
    #: What the model allows there instead, about the same command.
    allowed: Sequence[str] = ()

    def __str__(self) -> str:
        instead = f"; allowed are: {', '.join(self.allowed)}" if self.allowed else ""
        return f"event {self.at}, {self.event or 'the end'}: {self.why}{instead}"


def differs(trace: Sequence[Event], *, quiet: bool = True, needed: int = 0) -> Difference | None:
    """Where *trace* differs from all traces of the model; None where it is one of them.

    Kinds of events that it has none of are not asked for: a log does not show acts.  *quiet*: at its end everything
    is at rest, so each command has its result.  *needed*: how many approvals a plan needs.
    """
    observed = frozenset(event.kind for event in trace) & KINDS
    names = {name: at for at, name in enumerate(dict.fromkeys(event.command for event in trace if event.command))}
    ledger = Ledger(lives=(Life(),) * len(names), needed=needed)
    for number, event in enumerate(trace):
        at = names.get(event.command, 0)
        try:
            ledger = step(ledger, event, at, observed)
        except RuleError as error:
            return Difference(at=number, event=event, why=str(error), allowed=allowed(ledger, event, at, observed))
    if quiet and (remaining := unfinished(ledger)):
        command = [*names][remaining[0]]
        return Difference(at=len(trace), event=None, why=f"command {command} has no result", allowed=("answered",))
    return None
