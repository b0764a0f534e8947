"""Brokers that come and go: for some intervals after that nothing is issued, until the cluster has settled."""

from controller.cycle.limits import Limits
from controller.model.decision import Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Roster

#: So many names are told at most.
_TOLD = 5


def watched_roster(roster: Roster, view: ClusterView, period_ms: int, limits: Limits) -> tuple[Roster, Verdict | None]:
    """The roster one interval on, and the verdict while a change of it holds everything back.

    The brokers of the first interval are taken for having been there.  Brokers without data are active.
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
        subject="cluster",
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
