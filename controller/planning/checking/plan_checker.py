"""Checks a whole plan: every certificate, every wave, and that brokers end as the plan says.

What is checked are the plan's own numbers.  Whether they are those of today's cluster is checked before the plan is
carried out (controller/offline/plans/today.py).
"""

import math
from dataclasses import replace

import numpy as np

from controller.model.load import Ints
from controller.model.names import is_system_owned, namespace_of
from controller.planning.checking.checker import flaws
from controller.planning.checking.wave_checker import wave_flaws
from controller.planning.plans.plan import EMPTY, FILL, KINDS, TASKS, Plan, PlanStep
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, BalanceProblem


def plan_flaws(plan: Plan) -> list[str]:
    """What is wrong with *plan*, a sentence each; empty: it is verified."""
    all_flaws = _shapes(plan)
    if all_flaws:
        return all_flaws
    problem = plan.problem
    for number, step in enumerate(plan.steps, 1):
        wrong = _step_flaws(plan, step, problem)
        all_flaws += [f"step {number}: {flaw}" for flaw in wrong]
        if wrong:
            break  # what follows begins where this step does not end
        problem = replace(problem, owner=_after(problem, step))
    return all_flaws


def _after(problem: BalanceProblem, step: PlanStep) -> Ints:
    owner = problem.owner.copy()
    for move in step.moves:
        owner[move.bundle] = move.destination
    return owner


def _step_flaws(plan: Plan, step: PlanStep, problem: BalanceProblem) -> list[str]:
    """What is wrong with *step*, which begins with *problem*."""
    emptied = step.brokers if step.task == EMPTY else ()
    allowed = [plan.ceiling] * len(plan.brokers) if step.task == EMPTY else _ceilings(problem, step)
    step_flaws = flaws(problem, step.moves, step.certificate, *_easier(problem, step))
    step_flaws += wave_flaws(problem, step.waves, allowed, emptied, _at_once(plan))
    if step_flaws:
        return step_flaws
    if step.task == FILL:
        step_flaws += [
            f"bundle {plan.bundles[bundle]} goes to {plan.brokers[to]}, which is not to be filled"
            for bundle, _, to in step.moves
            if to not in step.brokers
        ]
    guarded = {plan.bundles[move.bundle] for move in step.moves}
    step_flaws += [
        f"{name} belongs to Pulsar itself and must not move" for name in sorted(guarded) if _is_guarded(name)
    ]
    return step_flaws + _left_behind(plan, step, problem)


def _easier(problem: BalanceProblem, step: PlanStep) -> list[BalanceProblem]:
    """Problems without some of what the moves of *step* have to do; none where it spreads load.

    Where it empties brokers, the same bundles go anywhere, and all others stay: first with the emptied brokers among
    those that they may go to, then without.
    """
    if step.task == FILL:
        return _of_the_full(problem, step)
    if step.task != EMPTY:
        return []
    moved = np.isin(np.arange(len(problem.owner)), [move.bundle for move in step.moves])
    fixed = problem.fixed.copy()
    np.add.at(fixed, problem.owner[~moved], problem.size[~moved])
    eased = replace(problem, fixed=fixed, size=problem.size[moved], owner=problem.owner[moved])
    if step.certificate.kind not in (MEAN, FIXED, PIGEONHOLE):
        return [eased]  # the others ask who has the bundles
    open_to_them = np.setdiff1d(np.arange(len(problem.capacity)), step.brokers)
    return [eased, replace(eased, capacity=problem.capacity[open_to_them], fixed=fixed[open_to_them])]


def _of_the_full(problem: BalanceProblem, step: PlanStep) -> list[BalanceProblem]:
    """Only the brokers that *step* fills, and those above its bound: nothing leaves these but to each other.

    So a level that is too low for what lies on them now is too low for *step*.  Only the mean says so here.
    """
    column, bound = step.certificate.resource, step.certificate.bound
    if step.certificate.kind != MEAN or not 0 <= column < len(problem.resources):
        return []
    load = problem.fixed[:, column] + np.bincount(
        problem.owner, weights=problem.size[:, column], minlength=len(problem.capacity)
    )
    above_bound = load > bound * problem.capacity[:, column]
    above_bound[list(step.brokers)] = True
    size = problem.size[above_bound[problem.owner]]  # the mean does not ask who has them
    return [replace(problem, capacity=problem.capacity[above_bound], fixed=problem.fixed[above_bound], size=size)]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _ceilings(problem: BalanceProblem, step: PlanStep) -> list[float]:
    """How full each broker may be during *step*: its capacity, or as it is before the step or after it.

    No fuller in any case than the step says that the fullest one is in the end.
    """
    highest = np.zeros(len(problem.capacity))
    for owner in (problem.owner, _after(problem, step)):
        load = problem.fixed.copy()
        np.add.at(load, owner, problem.size)
        highest = np.maximum(highest, (load / problem.capacity).max(axis=1, initial=0.0))
    return [max(1.0, min(float(each), step.certificate.reached)) for each in highest]


def _at_once(plan: Plan) -> float:
    """The connections that may reconnect at once: what the rate allows in its period, or until the next wave."""
    rate, burst, until_next = plan.pace.connections_per_second, plan.pace.burst_seconds, plan.pace.wave_seconds
    if rate is None:
        return math.inf
    return rate * (until_next if burst is None or burst > until_next else burst)


def _is_guarded(bundle: str) -> bool:
    return is_system_owned(namespace_of(bundle))


def _left_behind(plan: Plan, step: PlanStep, problem: BalanceProblem) -> list[str]:
    """Bundles that an emptying step leaves, although it does not say so."""
    if step.task != EMPTY:
        return []
    moved = {move.bundle for move in step.moves}
    on_them = np.flatnonzero(np.isin(problem.owner, list(step.brokers))).tolist()
    reported = set(step.stuck)
    unmoved = [bundle for bundle in on_them if bundle not in moved and bundle not in reported]
    flaws = [f"{plan.bundles[bundle]} stays on a broker that is to be empty" for bundle in unmoved]
    return flaws + [f"bundle {bundle} both moves and stays" for bundle in sorted(reported & moved)]


def _shapes(plan: Plan) -> list[str]:
    """What contradicts itself in *plan*, before its numbers are looked at."""
    n, m, resources = len(plan.brokers), len(plan.bundles), len(plan.problem.resources)
    problem = plan.problem
    expected = {
        "capacity": (problem.capacity.shape, (n, resources)),
        "fixed": (problem.fixed.shape, (n, resources)),
        "size": (problem.size.shape, (m, resources)),
        "owner": (problem.owner.shape, (m,)),
        "connections": (problem.connections.shape, (m,)),
        "disturbance": (problem.disturbance.shape, (m,)),
        "msg_rate": (plan.msg_rate.shape, (m,)),
    }
    flaws = [f"{name} has the shape {has}, expected {want}" for name, (has, want) in expected.items() if has != want]
    if flaws:
        return flaws
    if len(set(plan.brokers)) < n or len(set(plan.bundles)) < m:
        flaws.append("a broker or a bundle is named twice")
    if m and not (problem.owner.min() >= 0 and problem.owner.max() < n):
        flaws.append("a bundle is on a broker that is not in the plan")
    numbers = (problem.connections, plan.msg_rate, problem.disturbance)
    if not all(np.isfinite(each).all() and (each >= 0).all() for each in numbers):
        flaws.append("a number of connections or messages is not finite, or below 0")
    if plan.kind not in KINDS or any(step.task not in TASKS for step in plan.steps):
        flaws.append("the kind of the plan or of a step is unknown")
    if not 0 < plan.ceiling <= 1:
        flaws.append("the ceiling is not above 0 and at most 1")
    if plan.moves and not resources:
        flaws.append("bundles move, and the plan has no resource that counts")
    for step in plan.steps:
        brokers = {*step.brokers, *(row for move in step.moves for row in (move.source, move.destination))}
        bundles = {*step.stuck, *(move.bundle for move in step.moves)}
        if any(not 0 <= row < n for row in brokers) or any(not 0 <= row < m for row in bundles):
            flaws.append("a step names a broker or a bundle that is not in the plan")
    return flaws + _pace(plan)


def _pace(plan: Plan) -> list[str]:
    rate = plan.pace.connections_per_second
    if not (math.isfinite(plan.pace.wave_seconds) and plan.pace.wave_seconds > 0):
        return ["the time of a wave is not above 0"]
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        return ["the connections in a second are not above 0"]
    burst = plan.pace.burst_seconds
    if burst is not None and not (math.isfinite(burst) and burst > 0):
        return ["the period of the connections is not above 0"]
    return []
