"""Reads a plan's file, and says what is in it, for the person who approves it."""

from pathlib import Path

import numpy as np

from controller.model.errors import PlanRefusedError, SettingsError
from controller.offline.plans.plan_time import plan_time
from controller.offline.plans.planner import PlannedCluster
from controller.planning.plans.plan import Plan
from controller.settings.guardrails import limits_of, maintenance_of
from controller.settings.small_file import open_to_read
from controller.settings.trimtab_toml import Settings
from controller.wire.plan import MAX_BYTES, parse_plan

_STAYS = "no other broker may have it, or has room for it"


def read_plan(file: Path) -> tuple[Plan, str]:
    """The verified plan in *file*, and its hash.

    SettingsError where the file cannot be read; PlanRefusedError where it is no plan, or says something untrue.
    """
    return parse_plan(read_plan_bytes(file), str(file))


def read_plan_bytes(file: Path) -> bytes:
    """The content of *file*, up to a little more than a plan may have, unverified; or SettingsError."""
    try:
        with open_to_read(file) as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error


def refuse_other_cluster(plan: Plan, settings: Settings, conf: Path) -> None:
    """PlanRefusedError where *plan* is not for the cluster of *settings*, the file *conf*, and its intervals."""
    if plan.cluster != settings.cluster.name:
        raise PlanRefusedError(f"the plan is for cluster {plan.cluster!r}, and {conf} is of {settings.cluster.name!r}")
    period_ms = settings.intervals.period_ms
    if plan.period_ms != period_ms:
        raise PlanRefusedError(
            f"the plan is for intervals of {plan.period_ms // 1000} s, and those of {conf} have {period_ms // 1000} s:"
            " make a new plan, with --period if it is made from a recording"
        )


def described_plan(plan: Plan, settings: Settings) -> PlannedCluster:
    """*plan*, which is for the cluster of *settings*, with its time under the guardrails there.

    PlanRefusedError where its numbers are beyond what can be counted.
    """
    problem = plan.problem
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        max_usage = (problem.fixed.sum() + problem.size.sum()) / problem.capacity.min(initial=np.inf)
    # No usage, before, after or on the way, is above that.
    if not np.isfinite(max_usage):
        raise PlanRefusedError("the plan has loads and capacities of which no usage can be computed")
    try:
        time = plan_time(plan, limits_of(settings.guardrails), maintenance_of(settings.guardrails))
    except (OverflowError, ValueError, OSError) as error:
        raise PlanRefusedError(
            f"the plan's times end in no calendar: its load is of {plan.interval} ms, and its waves are"
            f" {plan.pace.wave_seconds:g} s apart, with {plan.pace.connections_per_second} connections/s"
        ) from error
    stuck = (plan.bundles[row] for step in plan.steps for row in step.stuck)
    return PlannedCluster(plan=plan, notes=(), stays=dict.fromkeys(stuck, _STAYS), time=time)
