"""Makes the steps of plans: moves, cut into waves, with their certificate."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from controller.model.load import Bools, Ints
from controller.planning.objective import highest, loads, score
from controller.planning.plans.emptying import Emptied, emptied
from controller.planning.plans.emptying_bound import emptying_bound
from controller.planning.plans.plan import EMPTY, FILL, SPREAD, PlanStep, StepTask
from controller.planning.plans.restarting import RollingRestart, rolling_restart
from controller.planning.plans.waves import WaveLimits, waves_of
from controller.planning.problem import BalanceProblem, CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed, Closing, MoveSequence
from controller.planning.solving.bounds import lower_bounds, mean_level
from controller.planning.solving.certify import certified, planned
from controller.planning.solving.limits import SearchLimits

#: A plan has no more moves, unless fewer are asked for.
MOST_MOVES: Final = 10_000
#: A broker that is filled gets bundles until it is this near to the mean usage, as a share of it.
_FILLED: Final = 1.02
#: Goals that are tried where filters kept a plan from the one that was asked for, as multiples of the mean.
_LOOSER: Final = (1.05, 1.1, 1.2, 1.5)
#: Rounding does not decide whether a goal is reached.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """What a plan may do, and how long it is looked for."""

    max_moves: int = MOST_MOVES
    waves: WaveLimits = field(default_factory=WaveLimits)
    #: No broker that gets bundles of emptied ones goes above this share of its capacity; at most 1.
    ceiling: float = 1.0
    #: Pairs of a bundle and a broker that the search looks at, about.
    effort: int = 1_000_000


def spread_step(problem: BalanceProblem, limits: PlanLimits, to: float, allowed: Allowed | None = None) -> PlanStep:
    """Lower the fullest brokers until the highest usage is *to* times the mean, or as low as the moves bring it.

    With filters, a search for a low goal may end above one for a higher goal: the best one counts.
    """
    found = _searched(problem, limits, to, allowed)
    for looser in _LOOSER if allowed is not None else ():
        if found.certificate.reached <= mean_level(problem) * max(to, looser) + _ROUNDING:
            break
        found = min(found, _searched(problem, limits, looser, allowed), key=lambda each: _rank(problem, each))
    ceiling = max(1.0, found.certificate.reached)
    return _step(problem, found.moves, limits, ceiling, SPREAD, allowed=allowed, max_moves=limits.max_moves)


def _searched(problem: BalanceProblem, limits: PlanLimits, to: float, allowed: Allowed | None) -> CertifiedPlan:
    goal = mean_level(problem) * to
    search = SearchLimits(max_moves=limits.max_moves, begin=goal, goal=goal, effort=limits.effort)
    return planned(problem, search, allowed)


def _rank(problem: BalanceProblem, plan: CertifiedPlan) -> tuple[float, float]:
    found = score(problem, plan.moves)
    return round(found.peak, 9), found.disturbance


def kept_step(
    problem: BalanceProblem, moves: Sequence[PlannedMove], limits: PlanLimits, allowed: Allowed | None = None
) -> PlanStep:
    """Those of *moves* that capacity and filters allow one after the other."""
    ceiling, sequence = max(1.0, score(problem, moves).peak), MoveSequence(problem, moves, allowed)
    taken = sequence.take_all(ceiling)
    ceiling = max(1.0, score(problem, taken).peak)
    return _step(problem, taken, limits, ceiling, SPREAD, allowed=allowed)


def empty_step(
    problem: BalanceProblem, brokers: Collection[int], limits: PlanLimits, closing: Closing | None = None
) -> PlanStep:
    """Every bundle leaves *brokers*; those that cannot are told."""
    found = emptied(problem, brokers, limits.ceiling, closing=closing)
    return emptied_step(problem, brokers, found, limits, closing)


def emptied_step(
    problem: BalanceProblem,
    brokers: Collection[int],
    found: Emptied,
    limits: PlanLimits,
    closing: Closing | None = None,
) -> PlanStep:
    """*found*, which empties *brokers*, as a step."""
    stuck = tuple(each.bundle for each in found.stuck)
    allowed = None if closing is None else closing(brokers, problem.owner)
    step = _step(problem, found.moves, limits, limits.ceiling, EMPTY, brokers=tuple(brokers), allowed=allowed)
    return replace(step, stuck=stuck)


def fill_step(
    problem: BalanceProblem,
    brokers: Collection[int],
    limits: PlanLimits,
    goal: float = 0.0,
    allowed: Allowed | None = None,
) -> PlanStep:
    """Bundles of the fullest brokers go to *brokers*, until all are at *goal* or at the mean usage."""
    only = np.zeros(len(problem.capacity), np.bool_)
    only[list(brokers)] = True

    def to_them(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        if only[problem.owner[bundle]]:
            return np.zeros_like(only)
        return only.copy() if allowed is None else allowed(bundle, moves) & only

    goal = max(goal, mean_level(problem) * _FILLED)
    begin = highest(loads(problem, problem.owner), problem.capacity).min(initial=np.inf)
    search = SearchLimits(max_moves=limits.max_moves, begin=min(goal, float(begin)), goal=goal, effort=limits.effort)
    plan = planned(problem, search, to_them)
    ceiling = max(1.0, plan.certificate.reached)
    return _step(
        problem, plan.moves, limits, ceiling, FILL, brokers=tuple(brokers), allowed=to_them, max_moves=limits.max_moves
    )


def restart_steps(
    problem: BalanceProblem, groups: Sequence[Sequence[int]], limits: PlanLimits, closing: Closing | None = None
) -> tuple[RollingRestart, list[PlanStep]]:
    """The steps of a restart of *groups*: each empties one of them, and the last one fills what ended empty."""
    found = rolling_restart(problem, groups, limits.ceiling, closing)
    steps, now = list[PlanStep](), problem
    for step in found.steps:
        steps.append(emptied_step(now, step.brokers, Emptied(moves=step.moves, stuck=step.stuck), limits, closing))
        now = replace(now, owner=_moved(now.owner, step.moves))
    if found.steps:
        last = found.steps[-1].brokers
        before = float(highest(loads(problem, problem.owner), problem.capacity).max(initial=0.0))
        allowed = None if closing is None else closing((), now.owner)
        filling = fill_step(now, last, limits, before, allowed)
        steps += [filling] if filling.waves else []
    return found, steps


def _moved(owner: Ints, moves: Sequence[PlannedMove]) -> Ints:
    found = owner.copy()
    for move in moves:
        found[move.bundle] = move.destination
    return found


def _step(
    problem: BalanceProblem,
    moves: Sequence[PlannedMove],
    limits: PlanLimits,
    ceiling: float,
    task: StepTask,
    *,
    brokers: tuple[int, ...] = (),
    allowed: Allowed | None = None,
    max_moves: int | None = None,
) -> PlanStep:
    waves = waves_of(problem, moves, limits.waves, ceiling, allowed)
    ordered = tuple(move for wave in waves for move in wave)
    most = len(ordered) if max_moves is None else max_moves
    bound = emptying_bound(problem, brokers, ordered) if task == EMPTY else lower_bounds(problem, most)[0]
    certificate = certified(problem, ordered, most, bound).certificate
    return PlanStep(task=task, brokers=brokers, waves=waves, certificate=certificate)
