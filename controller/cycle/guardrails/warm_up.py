"""Warm-up: nothing is issued before enough intervals were seen without a gap."""

from typing import Final

from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.reasons import THROTTLED, Meaning

MEANINGS: Final = {
    Reason.WARMING_UP: Meaning(THROTTLED, "the controller is new and waits for intervals.warm_up_samples"),
    Reason.GAP: Meaning(THROTTLED, "intervals were missing; the controller waits for intervals.warm_up_samples again"),
}


def warming_up(samples: int, required: int, *, gap: bool) -> Verdict | None:
    """Why nothing is issued after *samples* intervals in a row, of which *required* are needed; None: those are there.

    *gap*: intervals are missing before this one.
    """
    if samples >= required:
        return None
    reason = Reason.GAP if gap else Reason.WARMING_UP
    return Verdict(
        subject=CLUSTER,
        reason=reason,
        observed=float(samples),
        limit=float(required),
        unit="samples",
        by="warm_up_samples",
    )
