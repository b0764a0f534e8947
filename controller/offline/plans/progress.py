"""The progress of a plan's moves after they were handed to the controllers, from the journal and the results."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from controller.cycle.limits import Limits
from controller.cycle.ordered import BY_PLAN, plan_named
from controller.log.factory import log_system
from controller.log.recent import entries_backwards, recent_results
from controller.model.controls import Orders
from controller.model.journal import JournalEntry
from controller.settings.guardrails import limits_of
from controller.settings.trimtab_toml import Settings
from controller.wire.journal import to_decision

_DONE = frozenset({"done", "already_done"})
#: No executor started it, so the controllers issue it again.
_NEVER_STARTED = frozenset({"expired", "fenced"})


class MoveState(StrEnum):
    """How far a move is."""

    WAITING = "not issued yet"
    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """The controllers' decisions and the results that they know, as of their newest decision."""

    #: T of the newest decision, epoch ms; None: there is none.
    decided: int | None
    #: Bundle -> how far its newest command of this plan is; bundles without one are missing.
    states: dict[str, MoveState] = field(default_factory=dict)
    #: Bundle -> what its result says, of those that failed.
    details: dict[str, str] = field(default_factory=dict)
    #: Why the breaker tripped; "" while it is closed.
    breaker: str = ""
    #: Of the newest decision: why nothing was issued, or what was.
    summary: str = ""
    #: The newest decision, and the limits of the guardrails.
    last: JournalEntry | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def orders(self) -> Orders | None:
        """The orders that the newest decision was made with."""
        return None if self.last is None else self.last.controls.orders

    def of(self, bundles: Iterable[str]) -> dict[str, MoveState]:
        """How far each of *bundles* is."""
        return {bundle: self.states.get(bundle, MoveState.WAITING) for bundle in bundles}


def plan_progress(settings: Settings, plan: str, since: int) -> PlanProgress:
    """The outcomes of the commands of *plan*, a hash, that were decided in the interval *since*, epoch ms, or later."""
    tail, cluster = log_system(settings).tail(), settings.cluster.name
    last = tail.last_entry()
    if last is None:
        return PlanProgress(decided=None)
    commands: dict[str, str] = {}
    for read in entries_backwards(tail, cluster):
        if read.record.interval > last.interval:
            continue  # decided between the two looks: the memory of last does not know its commands
        if read.record.interval < since:
            break
        for command in to_decision(read.record).commands:
            if command.why.by == BY_PLAN and command.why.detail.startswith(plan_named(plan)):
                commands.setdefault(command.bundle, command.id)
    results = recent_results(settings, since) if commands else {}
    states, details = dict[str, MoveState](), dict[str, str]()
    for bundle, key in commands.items():
        result = results.get(key)
        if result is None:
            states[bundle] = MoveState.UNDER_WAY if key in last.memory.in_flight else MoveState.FAILED
            details[bundle] = "no result came back"
        elif result.status in _NEVER_STARTED:
            states[bundle] = MoveState.WAITING
        elif key in last.memory.in_flight:
            states[bundle] = MoveState.UNDER_WAY  # the controllers have not read the result yet
        else:
            states[bundle] = MoveState.DONE if result.status in _DONE else MoveState.FAILED
            details[bundle] = f"{result.status}{f': {result.detail}' if result.detail else ''}"
    return PlanProgress(
        decided=last.interval,
        states=states,
        details={bundle: text for bundle, text in details.items() if states[bundle] is MoveState.FAILED},
        breaker=last.memory.breaker.why if last.memory.breaker.tripped_at is not None else "",
        summary=last.decision.summary,
        last=last,
        limits=limits_of(settings.guardrails),
    )
