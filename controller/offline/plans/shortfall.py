"""Explains why a plan ends above the requested level: the budget, the bundles themselves, or the filters."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from controller.offline.plans.filters import named
from controller.offline.plans.source import PlanSource
from controller.planning.from_view import MappedProblem
from controller.planning.objective import highest, load_after
from controller.planning.plans.plan import PlanStep
from controller.planning.plans.plan_steps import MAX_MOVES, PlanLimits
from controller.planning.problem import CertifiedPlan
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from controller.strategies.protocols import Filter
from controller.wire.readable import counted

#: A plan without a filter tells something where it ends lower by this share, at least.
_LOWER: Final = 0.005
#: Rounding does not decide whether a level is reached.
_ROUNDING: Final = 1e-9


def shortfall(source: PlanSource, mapped: MappedProblem, step: PlanStep, to: float, limits: PlanLimits) -> list[str]:
    """What keeps *step* from *to* times the mean usage, in sentences; none where its moves get there.

    A step without moves says that the cluster is there already.

    Costs a search for a plan without any filter, and, where that one is better, one without each.
    """
    goal, proof = mean_level(mapped.problem) * to, step.certificate
    if proof.reached <= goal + _ROUNDING:
        return [] if step.waves else [f"no move is needed: the highest usage is at most {to:g} times the mean already"]
    sentences = [
        f"a highest usage of {goal:.1%}, {to:g} times the mean, is not reached: {_fullest(source, mapped, step)}"
    ]
    if proof.bound > goal + _ROUNDING:
        at_most = "" if limits.max_moves >= MAX_MOVES else f" of at most {counted(limits.max_moves, 'move')}"
        sentences.append(f"no plan{at_most} gets there: none ends below {proof.bound:.1%} ({proof.kind})")
    # Filters are not in the way of what nothing could do much better.
    if proof.bound < proof.reached * (1 - _LOWER):
        sentences += _in_the_way(source, mapped, limits, goal, proof.reached)
    return sentences


def _in_the_way(
    source: PlanSource, mapped: MappedProblem, limits: PlanLimits, goal: float, reached: float
) -> Iterator[str]:
    def without(left_out: Sequence[Filter]) -> CertifiedPlan | None:
        """The plan without these filters; None where it ends hardly lower."""
        search = SearchLimits(max_moves=limits.max_moves, begin=goal, goal=goal, effort=limits.effort)
        plan = planned(mapped.problem, search, source.allowed(mapped, without=left_out))
        return plan if plan.certificate.reached < reached * (1 - _LOWER) else None

    filters = source.policy.filters
    free = without(filters) if filters else None
    if free is None:
        return
    is_explained = False
    for each in filters:
        if (plan := without([each])) is not None:
            is_explained = True
            yield f"the filter {named(each)} is in the way: without it {_end(plan)}"
    if not is_explained:
        yield f"the filters together are in the way: without any of them {_end(free)}"


def _fullest(source: PlanSource, mapped: MappedProblem, step: PlanStep) -> str:
    """Which brokers are fullest in the end."""
    after = highest(load_after(mapped.problem, step.moves), mapped.problem.capacity)
    first, *others = np.argsort(-after, kind="stable")[:2].tolist()
    names = source.view.brokers.names
    return f"{names[first]} ends at {after[first]:.1%}" + "".join(
        f", the next fullest, {names[other]}, at {after[other]:.1%}" for other in others
    )


def _end(plan: CertifiedPlan) -> str:
    return f"{counted(len(plan.moves), 'move')} end at {plan.certificate.reached:.1%}"
