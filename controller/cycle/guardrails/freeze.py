"""The freeze: no commands for some intervals after a broker joined or left, nor while many brokers have no data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.cycle.guardrails.setting import intervals, share
from controller.model.controls import Orders
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Roster
from controller.model.reasons import THROTTLED, Meaning
from controller.model.some_of import some_of

MEANINGS: Final = {
    Reason.FROZEN: Meaning(
        THROTTLED, "brokers have no data, joined or left; commands wait until the cluster is settled"
    ),
}
#: Maximum number of brokers that a verdict names.
_MAX_NAMED: Final = 5


@dataclass(frozen=True, kw_only=True)
class FreezeLimits:
    """See the module docstring."""

    freeze_intervals: int = intervals(
        2,
        "Nothing is issued for so many intervals from the one in which a broker joined or left; 0: the rule is off.",
    )
    freeze_share: float = share(
        0.4, "Nothing is issued while more than this share of active brokers has no complete data; 1: the rule is off."
    )


def too_many_missing(view: ClusterView, limits: FreezeLimits) -> Verdict | None:
    """Why nothing is issued, as too many brokers have no data: the data or the network is broken; else None."""
    active = len(view.brokers) + len(view.missing)
    missing = len(view.missing) / active if active else 0.0
    if missing <= limits.freeze_share:
        return None
    unit, limit = "of the brokers missing", limits.freeze_share
    return Verdict(subject=CLUSTER, reason=Reason.FROZEN, observed=missing, limit=limit, unit=unit, by="roster")


def watched_roster(
    roster: Roster, view: ClusterView, period_ms: int, limits: FreezeLimits, orders: Orders | None = None
) -> tuple[Roster, Verdict | None]:
    """The roster after this interval, and a verdict while a change of it freezes all commands.

    The brokers of the first interval do not count as joined.  Brokers without data are active.  While *orders* hold,
    what came or went since they were checked is kept: it makes their moves void.
    """
    now, interval = tuple(sorted({*view.brokers.names, *view.missing})), view.as_of_ms
    freeze = interval - limits.freeze_intervals * period_ms
    since = freeze if orders is None else min(freeze, orders.checked_at)
    came, went = _since(roster.came, since), _since(roster.went, since)
    if roster.brokers and (limits.freeze_intervals or orders is not None):
        came |= dict.fromkeys(sorted(set(now) - set(roster.brokers)), interval)
        went |= dict.fromkeys(sorted(set(roster.brokers) - set(now)), interval)
    moved = Roster(brokers=now, came=came, went=went)
    came, went = _since(came, freeze), _since(went, freeze)
    if not came and not went:
        return moved, None
    last = max((*came.values(), *went.values()))
    return moved, Verdict(
        subject=CLUSTER,
        reason=Reason.FROZEN,
        observed=float((interval - last) // period_ms),
        limit=float(limits.freeze_intervals),
        unit="intervals since then",
        by="guardrails.freeze_intervals",
        detail=changed_since(moved, freeze),
    )


def changed_since(roster: Roster, since: int) -> str:
    """Which brokers came or went after *since*, epoch ms, as far as *roster* knows; "" if none did."""
    changes = (("came", _since(roster.came, since)), ("went", _since(roster.went, since)))
    return "; ".join(f"{word}: {_listed(names)}" for word, names in changes if names)


def _since(changes: Mapping[str, int], since: int) -> dict[str, int]:
    return {name: t for name, t in changes.items() if t > since}


def _listed(names: dict[str, int]) -> str:
    return some_of(sorted(names), _MAX_NAMED)
