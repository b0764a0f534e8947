"""Budgets and the breaker: what can stop commands, and how much of it is used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controller.web.store.values import BreakerState, BudgetUse
from controller.web.views.formats import BrokerNames

#: From this share on a budget is amber.
_HIGH: Final = 0.8
#: A breaker shows as many pips as failures are allowed, up to this many.
_PIPS: Final = 20
_WHERE: Final = {"source": "off one broker", "destination": "to one broker", "namespace": "of one namespace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A budget as a bar."""

    name: str
    use: str
    #: 0 to 1.
    share: float
    #: "", high or full.
    level: str
    #: Its key below [guardrails], to be searched for in the settings.
    key: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerMeter:
    """The breaker as pips."""

    use: str
    is_open: bool
    #: One for each failure in a row that is allowed; True: it has happened.  Empty: too many to draw.
    pips: tuple[bool, ...]


def meters(budgets: Iterable[BudgetUse], names: BrokerNames) -> tuple[Meter, ...]:
    """All *budgets*, those of the cluster first, then those that are used most."""
    ordered = sorted(budgets, key=lambda budget: (budget.scope != "cluster", -_share(budget), budget.key, budget.of))
    return tuple(_meter(budget, names) for budget in ordered)


def tightest(budgets: Iterable[BudgetUse], names: BrokerNames) -> tuple[Meter, ...]:
    """Of each budget the broker or namespace that has used most of it, those of the cluster first."""
    first: dict[str, Meter] = {}
    for meter in meters(budgets, names):
        first.setdefault(meter.key, meter)
    return tuple(first.values())


def fullest(rows: Sequence[Meter], number: int) -> tuple[Meter, ...]:
    """The *number* of *rows* that are fullest, in their order."""
    places = sorted(range(len(rows)), key=lambda at: -rows[at].share)[:number]
    return tuple(rows[at] for at in sorted(places))


def breaker(state: BreakerState) -> BreakerMeter:
    """The breaker as of the last interval."""
    parts = []
    if state.most_in_a_row is not None:
        parts.append(f"{state.in_a_row} of {state.most_in_a_row} in a row")
    if state.most_in_window is not None:
        parts.append(f"{state.in_window} of {state.most_in_window} in the window")
    use = "; ".join(parts) or "off"
    allowed = state.most_in_a_row or 0
    pips = tuple(at < state.in_a_row for at in range(allowed)) if allowed <= _PIPS else ()
    return BreakerMeter(
        use=f"open: {use}" if state.tripped_at else use, is_open=state.tripped_at is not None, pips=pips
    )


def _share(budget: BudgetUse) -> float:
    return budget.used / budget.limit if budget.limit > 0 else 1.0


def _meter(budget: BudgetUse, names: BrokerNames) -> Meter:
    span, _, what = budget.key.rpartition(".")
    words = what.partition("_per_")[0].replace("_", " ").capitalize()
    when = {"interval": ", this interval", "window": ", rolling window"}.get(span, "")
    subject = ""
    if budget.of and budget.scope != "cluster":
        label = budget.of if budget.scope == "namespace" else names.label(budget.of)
        subject = f" {_WHERE.get(budget.scope, 'of one broker')}: {label}"
    share = _share(budget)
    level = "full" if share >= 1 else "high" if share >= _HIGH else ""
    return Meter(
        name=f"{words}{subject}{when}",
        use=f"{budget.used:,} / {budget.limit:,}",
        share=min(1.0, share),
        level=level,
        key=budget.key,
        used=budget.used,
        limit=budget.limit,
    )
