"""Finds why moves of a plan are not issued: budgets, a freeze, maintenance windows, a pause.

The journal keeps a decision without its verdicts, so the guardrails are asked once more, by what the journal remembers.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from controller.cycle.guardrails.budgets import Ledger, Rejection
from controller.cycle.guardrails.freeze import changed_since
from controller.cycle.guardrails.listing import Rooms
from controller.cycle.limits import Limits
from controller.model.decision import Reason, Verdict
from controller.model.journal import JournalEntry
from controller.offline.plans.moves import NamedMove
from controller.wire.readable import duration, in_number

#: Reasons that hold all commands back and pass by themselves -> the setting behind each.
_PASSING: Final = {
    Reason.PAUSED: "a pause",
    Reason.MAINTENANCE: "guardrails.maintenance",
    Reason.BROKERS_BALANCE: "the brokers' own balancing",
    Reason.BROKERS_BALANCE_UNKNOWN: "guardrails.brokers_balance_unknown",
    Reason.FROZEN: "guardrails.freeze_intervals",
    Reason.WARMING_UP: "intervals.warm_up_samples",
    Reason.GAP: "intervals.warm_up_samples, after a gap",
}
#: The ending of a budget's name -> the scope of the budget.
_OF: Final = {
    "_per_source": " off one broker",
    "_per_destination": " to one broker",
    "_per_namespace": " of one namespace",
    "_per_broker": " of one broker",
}
_HOUR_MS: Final = 3_600_000


def blocked_by(entry: JournalEntry, limits: Limits, period_ms: int, waiting: Sequence[NamedMove]) -> str:
    """Why *waiting*, moves that the decision of *entry* did not issue, were held back; "": no temporary reason.

    *period_ms*: length of the intervals.
    """
    of_all = next((each for each in _PASSING if f": {each}, " in entry.decision.summary), None)
    if of_all is None:
        verdicts = _over_budget(entry, limits, waiting)
        return "; ".join(describe_budget(verdict, limits.window_ms) for verdict in verdicts)
    by, detail = _PASSING[of_all], entry.controls.maintenance if of_all is Reason.MAINTENANCE else ""
    if of_all in (Reason.BROKERS_BALANCE, Reason.BROKERS_BALANCE_UNKNOWN):
        detail = entry.memory.balancing.why
    if of_all is Reason.FROZEN:
        detail = changed_since(entry.memory.roster, entry.interval - limits.freeze_intervals * period_ms)
        by = by if detail else "guardrails.freeze_share: too many brokers have no data"
    return f"{by} ({detail})" if detail else by


def max_connections(limits: Limits) -> float:
    """More connections than this can never be moved at once."""
    of = [getattr(budget, f"connections{of}", None) for budget in (limits.interval, limits.window) for of in ("", *_OF)]
    return min((each for each in of if each is not None), default=inf)


def never_issued(move: NamedMove, limits: Limits) -> str:
    """Says which budget *move* alone exceeds; "": none."""
    if move.connections <= max_connections(limits):
        return ""
    ledger = Ledger(limits, (), ())
    ledger.try_charge(move.bundle, move.issued(0))
    [budget] = ledger.verdicts()
    return f"is never issued: alone it is more than {describe_budget(budget, limits.window_ms)}"


def _over_budget(entry: JournalEntry, limits: Limits, waiting: Iterable[NamedMove]) -> list[Verdict]:
    """A verdict for each budget that held one of *waiting* back; none that would hold it back for ever."""
    memory, interval = entry.memory, entry.interval
    in_flight = [each for each in memory.in_flight.values() if each.interval < interval]
    ledger = Ledger(
        limits,
        [each for each in memory.issued.values() if each.interval < interval],
        in_flight,
        rooms=Rooms(memory.destinations, in_flight, limits, interval),
    )
    for each in memory.issued.values():
        if each.interval == interval:
            ledger.try_charge("", each)
    if all(ledger.try_charge(move.bundle, move.issued(interval)) is Rejection.PERMANENT for move in waiting):
        return []
    return ledger.verdicts()


def describe_budget(verdict: Verdict, window_ms: int) -> str:
    """The budget that *verdict* is about: ``200 unloads an hour off one broker (guardrails.window.…)``.

    *window_ms*: length of the rolling window.
    """
    key, what = verdict.by, verdict.unit
    of = next((text for ending, text in _OF.items() if key.endswith(ending)), "")
    if ".window." in key:
        when = "an hour" if window_ms == _HOUR_MS else f"in {duration(window_ms / 1000)}"
        what = f"{what.partition(' ')[0]} {when}"
    return in_number(f"{verdict.limit or 0:,.0f} {what}{of} ({key})")
