"""What has changed in the cluster since a plan was made, and whether the plan can still be carried out."""

from dataclasses import dataclass
from enum import StrEnum

from controller.model.errors import TrimtabError
from controller.offline.plans.repair import repaired
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import Today, today
from controller.planning.plans.plan import Plan


class DriftVerdict(StrEnum):
    """Whether a step of a plan can be carried out in the cluster as it is now."""

    #: As it is.
    VALID = "still valid"
    #: Not as it is; a new plan for what is left has moves.
    NEEDS_REPAIR = "needs repair"
    #: Nothing of it is left to do, or possible.
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a step of a plan stands in the cluster as it is now."""

    verdict: DriftVerdict
    #: T of the load, epoch ms.
    interval: int
    moves_done: int
    moves_left: int
    #: What is not as the plan says, a sentence each; it is not carried out because of these.
    changed: tuple[str, ...] = ()
    #: What else there is to know.
    notes: tuple[str, ...] = ()


def drift_of(plan: Plan, number: int, source: PlanSource, *, tolerance: float) -> Drift:
    """How the step *number* (from 0) of *plan* stands in the cluster of *source*; see ``today``."""
    now = today(plan, number, source, tolerance=tolerance)
    remaining = sum(map(len, now.waves))
    if now.changed:
        verdict = DriftVerdict.NEEDS_REPAIR if _can_be_repaired(plan, number, source, tolerance) else DriftVerdict.VOID
    else:
        verdict = DriftVerdict.VALID if remaining or _has_only_just_ended(now) else DriftVerdict.VOID
    return Drift(
        verdict=verdict,
        interval=now.interval,
        moves_done=len(now.done),
        moves_left=remaining,
        changed=now.changed,
        notes=now.notes,
    )


def _has_only_just_ended(now: Today) -> bool:
    """Whether bundles that were unloaded have yet to be seen, or are still where they should not be."""
    return bool(now.unseen or now.on_emptied)


def _can_be_repaired(plan: Plan, number: int, source: PlanSource, tolerance: float) -> bool:
    try:
        return any(step.moves for step in repaired(plan, number, source, tolerance=tolerance).plan.steps)
    except TrimtabError:
        return False  # a broker of it is gone, or has no room
