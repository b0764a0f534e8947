"""Plans from a seed, and the rules that they are made by."""

from collections.abc import Sequence
from random import Random

import numpy as np

from controller.model.load import Bools
from controller.planning.plans.plan import Plan, PlanKind, PlanStep
from controller.planning.plans.waves import WavePace
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed
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


def tight_problem(chance: Random) -> BalanceProblem:
    """Loads and capacities of few whole numbers: many are equal, and many brokers are full, exactly or by little."""
    n, m = chance.choice((1, 2, 2, 3, 3, 3, 4, 5, 5)), chance.choice((0, 1, 3, 6, 6, 9, 9, 14, 20))
    columns = chance.choice((1, 1, 2, 3, 4))

    def drawn(rows: int, values: Sequence[float]) -> list[list[float]]:
        return [[chance.choice(values) for _ in range(columns)] for _ in range(rows)]

    same = chance.random() < 0.5
    capacity = [[10.0] * columns] * n if same else drawn(n, (4.0, 8.0, 10.0, 20.0))
    connections = [float(chance.choice((0, 1, 2, 5, 10))) for _ in range(m)]
    return BalanceProblem(
        resources=("cpu", "direct memory", "bandwidth in", "bandwidth out")[:columns],
        capacity=np.array(capacity),
        fixed=np.array(drawn(n, (0.0, 0.0, 1.0, 2.0))),
        size=np.array(drawn(m, (0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 5.0))).reshape(m, columns),
        owner=np.array([min(chance.randrange(n), chance.randrange(n)) for _ in range(m)], np.int64),
        connections=np.array(connections),
        disturbance=np.array([each + chance.choice((10.0, 10.0, 11.0)) for each in connections]),
    )


def rules_of(chance: Random, n: int, asked: list[str]) -> Allowed | None:
    """What filters let a bundle do: anything, some brokers by its number, so many coming to a broker, or in turn.

    Each question to them is added to *asked*: where a search looks otherwise, it shows there even if it finds the same.
    """
    kind, most = chance.choice(("", "all", "number", "count", "turn", "first")), chance.choice((1, 2, 3))

    def allowed(bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        asked.append(f"{bundle}:{''.join(f'{move.bundle}>{move.destination}' for move in moves[-2:])}/{len(moves)}")
        match kind:
            case "number":
                return np.isin(np.arange(n), [(bundle + nth) % n for nth in range(most + 1)])
            case "count":
                return np.bincount([move.destination for move in moves], minlength=n) < most
            case "turn":
                return np.isin((np.arange(n) + bundle + len(moves)) % 4, most, invert=True)
            case "first":  # some bundles may go once others have gone
                return np.full(n, len(moves) >= bundle % (most + 1))
        return np.ones(n, np.bool_)

    return allowed if kind else None
