"""Plans from a seed, and the rules that they are made by."""

from collections.abc import Sequence

import numpy as np

from controller.planning.plans.plan import Plan, PlanKind, PlanStep
from controller.planning.plans.waves import WavePace
from controller.planning.problem import BalanceProblem
from tests.balance_problems import seeded


def plan_of(problem: BalanceProblem, steps: Sequence[PlanStep], kind: PlanKind = "drain", ceiling: float = 1.0) -> Plan:
    """*steps* for *problem*, with names for brokers and bundles."""
    n, m = len(problem.capacity), len(problem.owner)
    return Plan(
        cluster="demo",
        interval=1_700_000_040_000,
        kind=kind,
        asked="a test",
        period_ms=60_000,
        pace=WavePace(wave_seconds=120.0, connections_per_second=50.0, burst_seconds=60.0),
        ceiling=ceiling,
        brokers=tuple(f"broker-{i:03}:8080" for i in range(n)),
        bundles=tuple(f"acme/ns{i % 3}/0x{i:08x}_0x{i + 1:08x}" for i in range(m)),
        problem=problem,
        msg_rate=np.arange(m, dtype=np.float64),
        steps=tuple(steps),
    )


def some_problem(seed: int, mean: float = 0.5) -> BalanceProblem:
    """2 to 7 brokers with 4 to 43 bundles, one to three resources, equal or 1:2 capacities."""
    return seeded(2 + seed % 6, 4 + seed % 40, 1 + seed % 3, seed, uneven=seed % 2 == 0, mean=mean)
