"""The summary of one decided interval: a pure function of the view, the decision and the memory after it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from controller.aggregate.summarized import ViewSummary
from controller.cycle.dry_run import in_flight
from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import CLUSTER, UsageOutlook, Verdict
from controller.model.journal import JournalEntry
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.model.proposed import ProposedDecision
from controller.model.summary import (
    MOST_BUNDLES,
    MOST_CHANGES,
    MOST_IN_FLIGHT,
    MOST_OUTCOMES,
    MOST_VERDICTS,
    BudgetInForce,
    Guarding,
    IntervalSummary,
    JudgedSubjects,
    OutcomeOfMove,
)

#: So many verdicts of each reason stand first, so that every reason has some.
_OF_EACH_REASON: Final = 8
#: Characters of a text at most.
_LONGEST: Final = 512


def summary_of(
    view: ClusterView,
    entry: JournalEntry,
    limits: Limits,
    *,
    period_ms: int,
    epoch: int,
    decided_at_ms: int,
    tick_to_decision_ms: int | None = None,
    outcomes: Sequence[OutcomeOfMove] = (),
) -> IntervalSummary:
    """The summary of *entry*, which still has its verdicts and was decided on *view* within *limits*.

    *outcomes*: of earlier moves, as far as they became known since the last summary.
    """
    columns, decision = ViewSummary(view), entry.decision
    outlook = decision.outlook or UsageOutlook()
    brokers, ranges = columns.brokers(outlook.forecast), columns.ranges()
    return IntervalSummary(
        cluster=entry.cluster,
        interval=entry.interval,
        epoch=epoch,
        period_ms=period_ms,
        decided_at_ms=decided_at_ms,
        tick_to_decision_ms=tick_to_decision_ms,
        summary=decision.summary[:_LONGEST],
        pulsar="" if decision.pulsar is None else str(decision.pulsar.version),
        limit=_percent(outlook.limit),
        goal=_percent(outlook.goal),
        totals=columns.totals(),
        guarding=_guarding(entry.memory, entry.controls, limits),
        judged=_judged(decision.verdicts, set(view.brokers.names) | set(view.missing)),
        outcomes=tuple(outcomes[-MOST_OUTCOMES:]),
        brokers=brokers,
        ranges=ranges,
        bundles=columns.bundles(_named(entry)),
        scalable=columns.scalable(ranges.namespaces),
    )


def _percent(usage: float | None) -> float | None:
    return None if usage is None else 100.0 * usage


def _named(entry: JournalEntry) -> set[str]:
    """Bundles that something was done to."""
    commands = (command.bundle for command in entry.decision.commands)
    flights = (each.bundle for each in entry.memory.in_flight.values())
    return set(islice(commands, MOST_BUNDLES)) | set(islice(flights, MOST_BUNDLES))


def _guarding(memory: Memory, controls: Controls, limits: Limits) -> Guarding:
    flights = in_flight(memory, dry_run=controls.mode == "dry_run")
    ledger = Ledger(limits, memory.issued.values(), flights.values())
    orders = controls.orders
    return Guarding(
        controls=replace(controls, orders=None if orders is None else replace(orders, moves=())),
        budgets=tuple(
            BudgetInForce(key=line.key, scope=line.scope, of=line.whose, used=used, limit=line.limit, unit=line.unit)
            for line, used in ledger.usage()
            if not line.key.startswith("interval.")
        ),
        breaker=memory.breaker,
        failures_in_window=len(memory.failures),
        most_in_a_row=limits.failures_in_a_row,
        most_in_window=limits.failures_in_window,
        in_flight=dict(islice(flights.items(), MOST_IN_FLIGHT)),
        in_flight_total=len(flights),
        joined=_first(memory.roster.came),
        departed=_first(memory.roster.went),
        brokers_balance=memory.balancing.why[:_LONGEST],
        proposed=_proposed(memory),
    )


def _proposed(memory: Memory) -> ProposedDecision | None:
    """The decision that waits; what its commands say of their reasons is cut."""
    decision = memory.proposed
    if decision is None:
        return None
    return replace(decision, commands=tuple(replace(each, why=_cut(each.why)) for each in decision.commands))


def _first(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return dict(islice(sorted(mapping.items()), MOST_CHANGES))


def _judged(verdicts: Sequence[Verdict], brokers: set[str]) -> JudgedSubjects:
    """*verdicts* counted by reason, and the most important ones: of every reason some, then cluster and brokers."""
    by_reason: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_reason[verdict.reason].append(verdict)
    groups = [_by_weight(group, brokers) for group in by_reason.values()]
    first = [each for group in groups for each in group[:_OF_EACH_REASON]]
    rest = [each for group in groups for each in group[_OF_EACH_REASON:]]
    return JudgedSubjects(
        reasons=dict(Counter({str(reason): len(group) for reason, group in by_reason.items()}).most_common()),
        total=len(verdicts),
        verdicts=tuple(map(_cut, islice((*first, *_by_weight(rest, brokers)), MOST_VERDICTS))),
    )


def _by_weight(verdicts: Iterable[Verdict], brokers: set[str]) -> list[Verdict]:
    """*verdicts* on the cluster first, then those on brokers; otherwise in their order."""

    def weight(verdict: Verdict) -> int:
        return 0 if verdict.subject == CLUSTER else 1 if verdict.subject in brokers else 2

    return sorted(verdicts, key=weight)


def _cut(verdict: Verdict) -> Verdict:
    return (
        verdict if len(verdict.detail) <= _LONGEST else replace(verdict, detail=verdict.detail[: _LONGEST - 3] + "...")
    )
