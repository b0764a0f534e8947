"""Makes the steps of plans: moves, cut into waves, with their certificate."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from controller.model.load import Bools, Floats
from controller.planning.objective import ROUNDING, above, ceilings, highest, load_after, loads, owner_after, score
from controller.planning.plans.emptying import Emptied, emptied
from controller.planning.plans.emptying_bound import emptying_bound
from controller.planning.plans.filling_bound import filling_bound
from controller.planning.plans.plan import EMPTY, FILL, SPREAD, PlanStep, StepTask
from controller.planning.plans.restarting import RollingRestart, rolling_restart
from controller.planning.plans.waves import WaveLimits, waves_of
from controller.planning.problem import BalanceProblem, CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed, Closing, MoveSequence
from controller.planning.solving.bounds import LowerBound, lower_bounds, mean_level
from controller.planning.solving.certify import certified, planned
from controller.planning.solving.limits import SearchLimits

#: A plan has no more moves, unless fewer are asked for.
MAX_MOVES: Final = 10_000
#: A broker that is filled gets bundles until it is this near to the mean usage, as a share of it.
_FILLED: Final = 1.02
#: Goals that are tried where filters kept a plan from the one that was asked for.  First lower ones: so much of what
#: that one is above the mean.  Then higher ones, as multiples of the mean.
_TIGHTER: Final = (0.9, 0.75, 0.5, 0.0)
_LOOSER: Final = (1.05, 1.1, 1.2, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """What a plan may do, and how long it is looked for."""

    max_moves: int = MAX_MOVES
    waves: WaveLimits = field(default_factory=WaveLimits)
    #: No broker that gets bundles of emptied ones goes above this share of its capacity; at most 1.
    ceiling: float = 1.0
    #: Pairs of a bundle and a broker that the search looks at, about.
    effort: int = 1_000_000


def spread_step(problem: BalanceProblem, limits: PlanLimits, to: float, allowed: Allowed | None = None) -> PlanStep:
    """Lower the fullest brokers until the highest usage is *to* times the mean, or as low as the moves bring it.

    With filters, a search for one goal may end where a search for another one does not: the best one counts.
    """
    mean = mean_level(problem)
    best = _searched(problem, limits, mean * to, allowed)
    others = dict.fromkeys((*(1.0 + (to - 1.0) * share for share in _TIGHTER), *_LOOSER))
    others.pop(to, None)
    for other in others if allowed is not None else ():
        if best.certificate.reached <= mean * max(to, other) + ROUNDING:
            break
        tried = _searched(problem, limits, mean * other, allowed)
        best = min(best, tried, key=lambda plan: _rank(problem, plan.moves, mean * to))
    return _balanced(problem, best.moves, limits, SPREAD, allowed=allowed, max_moves=limits.max_moves)


def _searched(problem: BalanceProblem, limits: PlanLimits, goal: float, allowed: Allowed | None) -> CertifiedPlan:
    search = SearchLimits(max_moves=limits.max_moves, begin=goal, goal=goal, effort=limits.effort)
    return planned(problem, search, allowed)


def _rank(problem: BalanceProblem, moves: Sequence[PlannedMove], goal: float) -> tuple[float, float, float]:
    """How far above *goal* brokers end, then what the moves disturb."""
    after = highest(load_after(problem, moves), problem.capacity)
    return *above(after, goal), score(problem, moves).disturbance


def given_step(
    problem: BalanceProblem, moves: Sequence[PlannedMove], limits: PlanLimits, allowed: Allowed | None = None
) -> PlanStep:
    """Those of *moves* that capacity and filters allow one after the other."""
    return _balanced(problem, moves, limits, SPREAD, allowed=allowed)


def named_step(
    problem: BalanceProblem, moves: Sequence[PlannedMove], limits: PlanLimits, allowed: Allowed | None = None
) -> PlanStep:
    """Those of *moves* that capacity and filters allow; nothing comes to a broker that would be above its capacity.

    What a person names may be worse than the present: so it is no reason that another broker ends as full.
    """
    ceiling = np.ones(len(problem.capacity))
    sequence = MoveSequence(problem, moves, allowed).take_all(ceiling)
    return _step(problem, sequence, limits, ceiling, SPREAD, allowed=allowed)


def empty_step(
    problem: BalanceProblem, brokers: Collection[int], limits: PlanLimits, closing: Closing | None = None
) -> PlanStep:
    """Every bundle leaves *brokers*; those that cannot are told."""
    emptied_brokers = emptied(problem, brokers, limits.ceiling, closing=closing)
    return emptied_step(problem, brokers, emptied_brokers, limits, closing)


def emptied_step(
    problem: BalanceProblem,
    brokers: Collection[int],
    result: Emptied,
    limits: PlanLimits,
    closing: Closing | None = None,
) -> PlanStep:
    """*result*, which empties *brokers*, as a step."""
    stuck = tuple(each.bundle for each in result.stuck)
    allowed = None if closing is None else closing(brokers, problem.owner)
    ceiling = np.full(len(problem.capacity), limits.ceiling)
    step = _step(problem, result.moves, limits, ceiling, EMPTY, brokers=tuple(brokers), allowed=allowed)
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
    filled = tuple(brokers)
    return _balanced(problem, plan.moves, limits, FILL, brokers=filled, allowed=to_them, max_moves=limits.max_moves)


def restart_steps(
    problem: BalanceProblem, groups: Sequence[Sequence[int]], limits: PlanLimits, closing: Closing | None = None
) -> tuple[RollingRestart, list[PlanStep]]:
    """The steps of a restart of *groups*: each empties one of them, and the last one fills what ended empty."""
    restart = rolling_restart(problem, groups, limits.ceiling, closing)
    steps, now = list[PlanStep](), problem
    for step in restart.steps:
        steps.append(emptied_step(now, step.brokers, Emptied(moves=step.moves, stuck=step.stuck), limits, closing))
        now = replace(now, owner=owner_after(now, step.moves))
    if restart.steps:
        last = restart.steps[-1].brokers
        before = float(highest(loads(problem, problem.owner), problem.capacity).max(initial=0.0))
        allowed = None if closing is None else closing((), now.owner)
        filling = fill_step(now, last, limits, before, allowed)
        steps += [filling] if filling.waves else []
    return restart, steps


def _balanced(
    problem: BalanceProblem,
    moves: Sequence[PlannedMove],
    limits: PlanLimits,
    task: StepTask,
    *,
    brokers: tuple[int, ...] = (),
    allowed: Allowed | None = None,
    max_moves: int | None = None,
) -> PlanStep:
    """Those of *moves* that are possible one after the other, as a step."""
    while True:
        ceiling = ceilings(problem, moves)
        sequence = MoveSequence(problem, moves, allowed).take_all(ceiling)
        if len(sequence) == len(moves):
            return _step(
                problem, sequence, limits, ceiling, task, brokers=brokers, allowed=allowed, max_moves=max_moves
            )
        # Without the others, brokers end elsewhere.
        moves = sequence


def _step(
    problem: BalanceProblem,
    moves: Sequence[PlannedMove],
    limits: PlanLimits,
    ceiling: Floats,
    task: StepTask,
    *,
    brokers: tuple[int, ...] = (),
    allowed: Allowed | None = None,
    max_moves: int | None = None,
) -> PlanStep:
    waves = waves_of(problem, moves, limits.waves, ceiling, allowed)
    ordered = tuple(move for wave in waves for move in wave)
    limit = len(ordered) if max_moves is None else max_moves
    bound = _bound(problem, task, brokers, ordered, limit)
    certificate = certified(problem, ordered, limit, bound).certificate
    return PlanStep(task=task, brokers=brokers, waves=waves, certificate=certificate)


def _bound(
    problem: BalanceProblem, task: StepTask, brokers: tuple[int, ...], moves: Sequence[PlannedMove], max_moves: int
) -> LowerBound:
    """A level that no step of this kind ends below."""
    if task == EMPTY:
        return emptying_bound(problem, brokers, moves)
    if task == FILL:
        return filling_bound(problem, brokers, max_moves)
    return lower_bounds(problem, max_moves)[0]
