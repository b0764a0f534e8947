"""The moves of a plan by name, and what they count against the budgets."""

from dataclasses import dataclass

from controller.model.memory import Issued
from controller.model.names import namespace_of
from controller.planning.plans.plan import Plan, PlanStep
from controller.planning.problem import PlannedMove


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMove:
    """One move of a plan, by name."""

    bundle: str
    source: str
    destination: str
    connections: float

    def issued(self, interval: int) -> Issued:
        """What it counts against the budgets where it is issued in *interval*, T, epoch ms."""
        return Issued(
            action="unload",
            namespace=namespace_of(self.bundle),
            source=self.source,
            destination=self.destination,
            connections=int(self.connections),
            interval=interval,
        )


def named_moves(plan: Plan, step: PlanStep) -> tuple[tuple[NamedMove, ...], ...]:
    """The waves of *step*, by name."""
    return tuple(tuple(_named(plan, move) for move in wave) for wave in step.waves)


def _named(plan: Plan, move: PlannedMove) -> NamedMove:
    return NamedMove(
        bundle=plan.bundles[move.bundle],
        source=plan.brokers[move.source],
        destination=plan.brokers[move.destination],
        connections=float(plan.problem.connections[move.bundle]),
    )
