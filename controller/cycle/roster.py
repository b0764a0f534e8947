"""The freeze after a broker joined or left: no commands for some intervals, until the cluster has settled."""

from controller.cycle.limits import Limits
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Roster

#: Maximum number of brokers that a verdict names.
_TOLD = 5


def watched_roster(roster: Roster, view: ClusterView, period_ms: int, limits: Limits) -> tuple[Roster, Verdict | None]:
    """The roster after this interval, and a verdict while a change of it freezes all commands.

    The brokers of the first interval do not count as joined.  Brokers without data are active.
    """
    now, interval = tuple(sorted({*view.brokers.names, *view.missing})), view.as_of_ms
    since = interval - limits.freeze_intervals * period_ms
    came = {name: t for name, t in roster.came.items() if t > since}
    went = {name: t for name, t in roster.went.items() if t > since}
    if roster.brokers and limits.freeze_intervals:
        came |= dict.fromkeys(sorted(set(now) - set(roster.brokers)), interval)
        went |= dict.fromkeys(sorted(set(roster.brokers) - set(now)), interval)
    moved = Roster(brokers=now, came=came, went=went)
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
        detail="; ".join(f"{word}: {_listed(names)}" for word, names in (("came", came), ("went", went)) if names),
    )


def _listed(names: dict[str, int]) -> str:
    shown = ", ".join(sorted(names)[:_TOLD])
    return shown if len(names) <= _TOLD else f"{shown} and {len(names) - _TOLD} more"
