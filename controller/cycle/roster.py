"""The freeze after a broker joined or left: no commands for some intervals, until the cluster has settled."""

from collections.abc import Mapping

from controller.cycle.limits import Limits
from controller.model.controls import Orders
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Roster
from controller.model.some_of import some_of

#: Maximum number of brokers that a verdict names.
_TOLD = 5


def watched_roster(
    roster: Roster, view: ClusterView, period_ms: int, limits: Limits, orders: Orders | None = None
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
    return some_of(sorted(names), _TOLD)
