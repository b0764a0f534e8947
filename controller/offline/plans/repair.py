"""Makes a new plan from the remaining moves of an old one, for the present cluster; it has its own hash."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import today
from controller.planning.plans.plan import BALANCE, DRAIN, EMPTY, FILL, JOIN, SPREAD, Plan, PlanKind, StepTask

#: Maximum length of the request that is stored.
_LONGEST: Final = 900
#: The kind of a step -> the kind of the plan for its remaining moves.
_KINDS: Final[Mapping[StepTask, PlanKind]] = {EMPTY: DRAIN, FILL: JOIN, SPREAD: BALANCE}


def repaired(plan: Plan, number: int, source: PlanSource, *, tolerance: float) -> PlannedCluster:
    """What is left of the step *number* (from 0) of *plan*, in the cluster of *source*.

    A broker that was to be emptied, or filled, is planned anew.  Of a balance, the moves that are still possible stay.
    """
    step = plan.steps[number]
    request = PlanRequest(
        brokers=tuple(plan.brokers[row] for row in step.brokers),
        connections_per_second=plan.pace.connections_per_second,
        burst_seconds=plan.pace.burst_seconds,
        wave_moves=max((len(wave) for wave in step.waves), default=1),
        ceiling=plan.ceiling,
        own=plan.own,
        text=f"{plan.asked[:_LONGEST]}, repaired",
    )
    kind = _KINDS[step.task]
    moves = None
    if kind == BALANCE:
        waves = today(plan, number, source, tolerance=tolerance).waves
        moves = tuple((move.bundle, move.source, move.destination) for wave in waves for move in wave)
    return planned_cluster(source, replace(request, kind=kind, moves=moves))
