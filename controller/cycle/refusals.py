"""Why no command of an interval may be issued: the guardrails that hold back all of them, in their order."""

from typing import Final

from controller.cycle.commands import Issuing
from controller.cycle.guardrails.catching_up import CATCHING_UP, catching_up
from controller.cycle.guardrails.freeze import too_many_missing
from controller.cycle.guardrails.operator import forbidden
from controller.cycle.guardrails.own_balancing import BY_BROKERS, BY_UNKNOWN
from controller.cycle.guardrails.warm_up import warming_up
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory

#: ``by`` of each verdict that holds back all commands of an interval, in the order in which the rules are asked: those
#: of this module, then those of decide.py.  ``trimtab explain`` shows them.
REFUSALS: Final = (
    "loadBalancerEnabled", "controls", "mode", "operator", "guardrails.maintenance", "stale_after_seconds",
    BY_BROKERS, BY_UNKNOWN, CATCHING_UP, "warm_up_samples", "roster", "guardrails.freeze_intervals",
    "guardrails.breaker",
)  # fmt: skip


def refusal_of(
    view: ClusterView, memory: Memory, issuing: Issuing, *, gap: bool, brokers_balance: Verdict | None = None
) -> Verdict | None:
    """Why no command may be issued now, or None.  *memory*: with the samples of this interval.

    *brokers_balance* forbids commands that change the cluster.
    """
    policy, controls = issuing.policy, issuing.controls
    rivals = brokers_balance if controls.moves_load else None
    return (
        forbidden(controls, enabled=policy.balancer.enabled)
        or rivals
        or catching_up(view.as_of_ms, controls, memory, policy.period_ms)
        or warming_up(memory.samples, policy.warm_up_samples, gap=gap)
        or too_many_missing(view, policy.limits)
    )


def switched_off(what: str) -> Verdict:
    """Verdict: *what* (shed or split) is switched off in the settings."""
    return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by=what)


def too_few_brokers(brokers: int, by: str) -> Verdict:
    """Verdict: with fewer than two brokers there is nothing to move or split."""
    return Verdict(subject=CLUSTER, reason=Reason.NO_BROKERS, observed=float(brokers), limit=2.0, unit="brokers", by=by)
