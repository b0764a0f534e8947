"""What the operator sets: the mode, pauses, maintenance windows; and data that are too old to act on."""

from typing import Final

from controller.model.controls import Controls
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.reasons import CONFIGURATION, IMPOSSIBLE, THROTTLED, Meaning

MEANINGS: Final = {
    Reason.DISABLED: Meaning(CONFIGURATION, "a setting switches it off"),
    Reason.STALE: Meaning(THROTTLED, "the interval is older than intervals.stale_after_seconds: the controller lags"),
    Reason.PAUSED: Meaning(CONFIGURATION, "the controller is paused: run `trimtab resume`"),
    Reason.OBSERVE_ONLY: Meaning(CONFIGURATION, "the mode is observe: run `trimtab mode dry_run` or `active`"),
    Reason.MAINTENANCE: Meaning(CONFIGURATION, "a window in [guardrails.maintenance] forbids commands now"),
    Reason.CONTROLS_UNKNOWN: Meaning(
        IMPOSSIBLE, "the operator's controls cannot be read: nobody knows whether it is paused"
    ),
}


def forbidden(controls: Controls, *, enabled: bool) -> Verdict | None:
    """Why the operator, a maintenance window or the age of the data forbids commands, or None.

    *enabled*: loadBalancerEnabled.
    """
    if not enabled:
        return Verdict(subject=CLUSTER, reason=Reason.DISABLED, by="loadBalancerEnabled")
    if controls.unknown:
        return Verdict(subject=CLUSTER, reason=Reason.CONTROLS_UNKNOWN, by="controls", detail=controls.unknown)
    who = f"{controls.by}: {controls.reason}" if controls.by else ""
    if controls.mode == "observe":
        return Verdict(subject=CLUSTER, reason=Reason.OBSERVE_ONLY, by="mode", detail=who)
    if controls.paused:
        detail = "; ".join(map(str, controls.pauses)) or who
        return Verdict(subject=CLUSTER, reason=Reason.PAUSED, by="operator", detail=detail)
    if controls.maintenance:
        by = "guardrails.maintenance"
        return Verdict(subject=CLUSTER, reason=Reason.MAINTENANCE, by=by, detail=controls.maintenance)
    if controls.stale:
        return Verdict(subject=CLUSTER, reason=Reason.STALE, by="stale_after_seconds")
    return None
