"""The brokers' own balancing: two balancers of the same bundles undo each other's moves, so modes active and approve
wait.

The switches arrive in ``broker_state`` records.  Only those count that do what trimtab does: see
``controller.model.balancing``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from controller.model.balancing import at_work
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory, OwnBalancing
from controller.model.reasons import CONFIGURATION, Meaning
from controller.model.some_of import some_of

MEANINGS: Final = {
    Reason.BROKERS_BALANCE: Meaning(
        CONFIGURATION, "brokers balance by themselves: switch it off (docs/take_over.md); then commands go on"
    ),
    Reason.BROKERS_BALANCE_UNKNOWN: Meaning(
        CONFIGURATION, "nobody knows whether brokers balance: see the collectors, or guardrails.brokers_balance_unknown"
    ),
}
#: ``by`` of the verdicts.
BY_BROKERS: Final = "the brokers' own balancing"
BY_UNKNOWN: Final = "guardrails.brokers_balance_unknown"
#: Maximum number of brokers that a verdict names.
_NAMED: Final = 5
#: The last known T of a broker whose switches were never known.
_NEVER: Final = 0


@dataclass(frozen=True, kw_only=True)
class BalancingLimits:
    """See the module docstring."""

    #: For so many intervals the switches of a broker's own balancing are believed after they were last known, in mode
    #: active; then nothing is issued.  None: without limit, also where they were never known.
    balancing_unknown_intervals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancingRule:
    """What trimtab does, and its limits."""

    shed: bool
    split: bool
    period_ms: int
    limits: BalancingLimits


def watched_balancing(memory: Memory, view: ClusterView, rule: BalancingRule) -> tuple[OwnBalancing, Verdict | None]:
    """What is known of the brokers' own balancing at T, and a verdict if no command may change the cluster.

    *memory* is that of the interval before, with its roster.
    """
    on = at_work(view.balancing, shed=rule.shed, split=rule.split)
    unknown = _unknown(memory, view, rule)
    balancing = sorted({broker for brokers in on.values() for broker in brokers})
    verdict = _balance(on, len(balancing)) or _cannot_tell(unknown, view.as_of_ms, rule)
    why = "" if verdict is None else verdict.detail
    return OwnBalancing(why=why, on=len(balancing), unknown=unknown), verdict


def _unknown(memory: Memory, view: ClusterView, rule: BalancingRule) -> dict[str, int]:
    """Active broker whose switches are not known -> the last T at which they were."""
    if rule.limits.balancing_unknown_intervals is None or not (rule.shed or rule.split):
        return {}
    before, known_at = memory.balancing.unknown, memory.last_interval or _NEVER
    # A broker that was active in the interval before, and not unknown, was known then.
    known = dict.fromkeys(memory.roster.brokers, known_at)
    unread = [name for name in (*view.brokers.names, *view.missing) if name not in view.balancing]
    return {name: before.get(name, known.get(name, _NEVER)) for name in sorted(unread)}


def _balance(on: Mapping[str, tuple[str, ...]], brokers: int) -> Verdict | None:
    if not on:
        return None
    switches_on = "; ".join(f"{switch}=true on {_listed(names)}" for switch, names in on.items())
    return Verdict(
        subject=CLUSTER,
        reason=Reason.BROKERS_BALANCE,
        observed=float(brokers),
        unit="brokers",
        by=BY_BROKERS,
        detail=f"{switches_on}: mode active issues nothing until it is false there",
    )


def _cannot_tell(unknown: Mapping[str, int], interval: int, rule: BalancingRule) -> Verdict | None:
    believed = rule.limits.balancing_unknown_intervals
    if believed is None:
        return None
    since = interval - believed * rule.period_ms
    over = [name for name, known_at in unknown.items() if known_at < since]
    if not over:
        return None
    return Verdict(
        subject=CLUSTER,
        reason=Reason.BROKERS_BALANCE_UNKNOWN,
        observed=float(len(over)),
        unit="brokers",
        by=BY_UNKNOWN,
        detail=f"nobody could read the balancing switches of {_listed(over)}: mode active issues nothing until a"
        ' collector does; see its log and `trimtab doctor`, or set brokers_balance_unknown = "ignore" in [guardrails]',
    )


def _listed(names: Collection[str]) -> str:
    return some_of(names, _NAMED)
