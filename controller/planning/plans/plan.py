"""A plan that a person can check and approve: steps of waves of moves, with the numbers that they were made from.

Only nouns, and what follows from them.  plan_steps.py makes the steps, plan_checker.py checks all of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal, TypeAlias

import numpy as np

from controller.model.load import Floats
from controller.planning.objective import highest, loads, owner_after
from controller.planning.plans.waves import Wave, WavePace
from controller.planning.problem import BalanceProblem, Certificate, PlannedMove
from controller.planning.shares import Fit

#: What a plan is for.
PlanKind: TypeAlias = Literal["balance", "drain", "join", "rolling_restart", "remove"]
BALANCE: Final = "balance"
DRAIN: Final = "drain"
JOIN: Final = "join"
RESTART: Final = "rolling_restart"
REMOVE: Final = "remove"
KINDS: Final = (BALANCE, DRAIN, JOIN, RESTART, REMOVE)
#: What a step does with its brokers: nothing to any one of them; all bundles leave them; they get bundles.
StepTask: TypeAlias = Literal["spread", "empty", "fill"]
SPREAD: Final = "spread"
EMPTY: Final = "empty"
FILL: Final = "fill"
TASKS: Final = (SPREAD, EMPTY, FILL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanStep:
    """Waves that are carried out together; between two steps of a plan a person acts (restarts a broker)."""

    task: StepTask
    #: Rows of the brokers that are emptied, or filled.
    brokers: tuple[int, ...] = ()
    waves: tuple[Wave, ...]
    certificate: Certificate
    #: Rows of the bundles that stay on a broker of an emptying step: no other broker may have them, or has room.
    stuck: tuple[int, ...] = ()

    @property
    def moves(self) -> tuple[PlannedMove, ...]:
        """The moves of all waves, in their order."""
        return tuple(chain.from_iterable(self.waves))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Steps, and the cluster that they are made for."""

    cluster: str
    #: T of the load, epoch ms.
    interval: int
    kind: PlanKind
    #: What was asked for, in words.
    asked: str
    #: Length of the cluster's intervals.
    period_ms: int
    pace: WavePace
    #: No broker that gets bundles of emptied ones goes above this share of its capacity, in any resource; at most 1.
    ceiling: float
    #: Resources whose usage stays with the brokers when bundles leave, by name.
    own: tuple[str, ...] = ()
    #: How resources follow the load, by name, so that a check later on sees changes of the load alone.  The plan's own
    #: moves make the brokers less even, and then another fit may be the likely one.
    fits: tuple[tuple[str, Fit], ...] = ()
    #: (n,) and (m,) names of the rows of ``problem``.
    brokers: tuple[str, ...]
    bundles: tuple[str, ...]
    problem: BalanceProblem
    #: (m,) messages/s in and out of each bundle.
    msg_rate: Floats
    steps: tuple[PlanStep, ...]

    def before(self, step: int) -> BalanceProblem:
        """The problem as it is when the steps before *step* (from 0) are done."""
        done = chain.from_iterable(each.moves for each in self.steps[:step])
        return replace(self.problem, owner=owner_after(self.problem, done))

    def emptied_by(self, step: int) -> tuple[str, ...]:
        """The names of the brokers that *step* (from 0) empties."""
        of_step = self.steps[step]
        return tuple(self.brokers[row] for row in of_step.brokers) if of_step.task == EMPTY else ()

    @property
    def moves(self) -> tuple[PlannedMove, ...]:
        """The moves of all steps."""
        return tuple(chain.from_iterable(step.moves for step in self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """How full a broker is before a plan and after it."""

    broker: str
    #: Share of the capacity of its fullest resource, and that resource.
    before: float
    resource: str
    after: float
    #: The highest on the way, with bundles that move counted on both of their brokers.
    highest: float
    #: Bundles that may move: before, and after.
    bundles_before: int
    bundles_after: int
    #: Their messages/s in and out.
    msg_rate_before: float
    msg_rate_after: float
    #: The part of ``before`` that no move takes away: the broker's own use, and bundles that must stay.
    fixed: float


def broker_changes(plan: Plan) -> list[BrokerChange]:
    """What *plan* does to each broker, in the order of the names."""
    problem = plan.problem
    load, capacity, n = loads(problem, problem.owner), problem.capacity, len(plan.brokers)
    end = plan.before(len(plan.steps)).owner
    before, after = highest(load, capacity), highest(loads(problem, end), capacity)
    peak = before.copy()
    for during in _loads_during(plan):
        peak = np.maximum(peak, highest(during, capacity))
    fullest = (load / capacity).argmax(axis=1) if problem.resources else np.zeros(n, np.int64)
    fixed = np.take_along_axis(problem.fixed / capacity, fullest[:, None], 1)[:, 0] if problem.resources else before
    bundles_before, bundles_after = np.bincount(problem.owner, minlength=n), np.bincount(end, minlength=n)
    rates = [np.bincount(owner, weights=plan.msg_rate, minlength=n) for owner in (problem.owner, end)]
    return [
        BrokerChange(
            broker=name,
            before=float(before[row]),
            resource=problem.resources[int(fullest[row])] if problem.resources else "",
            after=float(after[row]),
            highest=float(peak[row]),
            bundles_before=int(bundles_before[row]),
            bundles_after=int(bundles_after[row]),
            msg_rate_before=float(rates[0][row]),
            msg_rate_after=float(rates[1][row]),
            fixed=float(fixed[row]),
        )
        for row, name in enumerate(plan.brokers)
    ]


def _loads_during(plan: Plan) -> Iterator[Floats]:
    """(n, R) for each wave, what the brokers carry while its bundles count on both of their brokers."""
    load = loads(plan.problem, plan.problem.owner)
    for step in plan.steps:
        for wave in step.waves:
            for move in wave:
                load[move.destination] += plan.problem.size[move.bundle]
            yield load
            for move in wave:
                load[move.source] -= plan.problem.size[move.bundle]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbed:
    """Whose clients reconnect: one namespace."""

    namespace: str
    moves: int
    connections: float
    #: Messages/s in and out of the bundles that move.
    msg_rate: float


def disturbed(plan: Plan) -> list[Disturbed]:
    """The namespaces whose bundles move, those with the most connections first."""
    by_key: dict[str, list[float]] = {}
    for move in plan.moves:
        sums = by_key.setdefault(plan.bundles[move.bundle].rpartition("/")[0], [0, 0.0, 0.0])
        sums[0] += 1
        sums[1] += float(plan.problem.connections[move.bundle])
        sums[2] += float(plan.msg_rate[move.bundle])
    by_namespace = [
        Disturbed(namespace=name, moves=int(moves), connections=connections, msg_rate=rate)
        for name, (moves, connections, rate) in by_key.items()
    ]
    return sorted(by_namespace, key=lambda each: (-each.connections, each.namespace))
