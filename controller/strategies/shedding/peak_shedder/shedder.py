"""Lower the highest usage of any broker and resource, with few moves, and prove how close that is to the best.

Usage is what brokers report; what a bundle takes of it is estimated (controller/planning/shares.py).  Brokers far above
the mean usage give bundles, until they are near it; every unload names its destination, which the filters allow.  The
verdict on the cluster is the certificate: the usage that is reached, the one that no plan of as many moves can be
below, and why.  docs/objective.md explains both.

Nothing is issued that the checker (controller/planning/checker.py) does not verify.  The placement is not asked: a
bundle goes where it is planned to go, or stays.

Pulsar has no such strategy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from controller.model.decision import LazyVerdicts, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView, Floats
from controller.model.memory import NoMemory
from controller.model.option import option
from controller.planning.bounds import mean_level
from controller.planning.certify import planned, without_moves
from controller.planning.checker import flaws
from controller.planning.from_view import Counted, StatedProblem, stated
from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem, Certificate, CertifiedPlan, PlannedMove
from controller.planning.search import SearchLimits
from controller.planning.words import certificate_told
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.common.resource_usage import ResourceWeights
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations

_BY: Final = "PeakShedder"
_CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakShedder(ResourceWeights):
    """See the module docstring."""

    max_moves: int = option(
        "trimtabPeakShedderMaxMoves", default=50, unit="bundles", meaning="so many bundles move in one round at most"
    )
    max_connections: int = option(
        "trimtabPeakShedderMaxConnections",
        default=0,
        meaning="so many producers and consumers reconnect in one round at most; 0: no limit",
    )
    max_moves_per_broker: int = option(
        "trimtabPeakShedderMaxMovesPerBroker",
        default=10,
        unit="bundles",
        meaning="so many bundles leave a broker in one round at most, and so many come to it",
    )
    goal_percent: float = option(
        "trimtabPeakShedderGoalPercentage",
        default=5.0,
        unit="%",
        meaning="a broker gives bundles until its usage is this near above the mean usage, as a share of the mean",
    )
    min_gain_percent: float = option(
        "trimtabPeakShedderMinGainPercentage",
        default=5.0,
        unit="points",
        meaning="a broker gives bundles only if its usage is this far above that goal; and nothing moves if no usage"
        " falls by as much, unless the moves of the round are used up",
    )
    broker_msg_rate: float = option(
        "trimtabPeakShedderBrokerMsgRate",
        default=0.0,
        unit="msg/s",
        meaning="messages in and out that a broker with the average CPU limit can carry; 0: they do not count",
    )
    broker_topics: int = option(
        "trimtabPeakShedderBrokerTopics",
        default=0,
        meaning="topics that a broker with the average CPU limit can carry; 0: they do not count",
    )
    broker_sessions: int = option(
        "trimtabPeakShedderBrokerSessions",
        default=0,
        meaning="producers and consumers that a broker with the average CPU limit can carry; 0: they do not count",
    )
    effort: int = option(
        "trimtabPeakShedderEffort",
        default=1_000_000,
        unit="pairs",
        meaning="how many pairs of a bundle and a broker are looked at, about, for a better plan than the first one",
    )
    #: Asked in this order for every bundle that is to move; no option.
    filters: tuple[Filter, ...] = field(default=(), metadata={"meaning": "what says where a bundle may go"})

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[UnloadDecision, NoMemory]:
        """Plan the moves of this round."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        found = stated(view, view.recently_unloaded | broker_own(view), self._counted)
        if not found.problem.resources:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory
        return self._decided(view, found), memory

    @property
    def _counted(self) -> Counted:
        return Counted(
            weights={
                "cpu": self.cpu_weight,
                "direct memory": self.direct_memory_weight,
                "bandwidth in": self.bandwidth_in_weight,
                "bandwidth out": self.bandwidth_out_weight,
            },
            msg_rate=self.broker_msg_rate,
            topics=float(self.broker_topics),
            sessions=float(self.broker_sessions),
        )

    def _decided(self, view: ClusterView, found: StatedProblem) -> UnloadDecision:
        problem = found.problem
        goal = mean_level(problem) * (1 + self.goal_percent / 100)
        begin = goal + self.min_gain_percent / 100
        before = highest(loads(problem, problem.owner), problem.capacity)
        gives = np.flatnonzero(before > begin)
        plan = self._plan(view, found, goal, begin) if len(gives) else without_moves(problem, self.max_moves)
        wrong = flaws(problem, plan.moves, plan.certificate)
        after = highest(_after(found, () if wrong else plan.moves), problem.capacity)
        worth = self._worth(before - after, plan, self._used_up(problem, plan), wrong)
        told = _Told(view, found, goal, before, after if worth is None else before)
        unloads = tuple(told.unload(move) for move in plan.moves) if worth is None else ()
        shown = plan.certificate if worth is None else without_moves(problem, self.max_moves).certificate
        refused = [one for broker in gives.tolist() for one in movable(view, broker_own(view), broker, _BY)[1]]
        reason = Reason.OVERLOADED if unloads else Reason.BALANCED
        if worth is not None and len(gives):
            reason = refused[0].reason if refused and not plan.moves else worth.reason

        def tell() -> Iterator[Verdict]:
            yield told.cluster(shown, reason)
            yield from (told.broker(row, over=before[row] > begin) for row in range(len(before)))
            if len(gives):
                yield from refused
                yield from [] if worth is None else [worth]
                yield from too_large(view, found, goal, _BY)

        return UnloadDecision(unloads=unloads, verdicts=LazyVerdicts(tell), reason=reason)

    def _plan(self, view: ClusterView, found: StatedProblem, goal: float, begin: float) -> CertifiedPlan:
        limits = SearchLimits(
            max_moves=self.max_moves,
            max_connections=float(self.max_connections) if self.max_connections else None,
            max_per_broker=self.max_moves_per_broker,
            begin=begin,
            goal=goal,
            effort=self.effort,
        )
        asked = Destinations(view=view, rows=found.rows, filters=self.filters)
        return planned(found.problem, limits, asked.allowed if self.filters else None)

    def _used_up(self, problem: BalanceProblem, plan: CertifiedPlan) -> bool:
        """Whether *plan* has as many moves as it may, or most of the connections: the next round goes on with it."""
        connections = sum(float(problem.connections[move.bundle]) for move in plan.moves)
        of_brokers = np.bincount([row for move in plan.moves for row in move[1:]], minlength=1)
        return (
            len(plan.moves) >= self.max_moves
            or int(of_brokers.max()) >= self.max_moves_per_broker
            or 0 < self.max_connections < 2 * connections
        )

    def _worth(self, fallen: Floats, plan: CertifiedPlan, used_up: bool, wrong: list[str]) -> Verdict | None:
        """Why *plan* is not carried out; None where it is.  *fallen*: (n,) by how much each broker's usage falls."""
        if wrong:
            detail = f"nothing moves, the checker refuses the plan: {'; '.join(wrong)}"
            return Verdict(subject=_CLUSTER, reason=Reason.EXCLUDED, by=_BY, detail=detail)
        sources = sorted({move.source for move in plan.moves})
        gain = max((float(fallen[row]) for row in sources), default=0.0)
        if plan.moves and (used_up or gain >= self.min_gain_percent / 100):
            return None
        detail = "no move that is allowed lowers a broker by enough"
        limit = self.min_gain_percent / 100
        return Verdict(
            subject=_CLUSTER,
            reason=Reason.BELOW_MINIMUM,
            observed=gain,
            limit=limit,
            unit="usage",
            by=_BY,
            detail=detail,
        )


def _after(found: StatedProblem, moves: Sequence[PlannedMove]) -> Floats:
    owner = found.problem.owner.copy()
    for move in moves:
        owner[move.bundle] = move.destination
    return loads(found.problem, owner)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Puts a plan into verdicts and unloads."""

    view: ClusterView
    found: StatedProblem
    goal: float
    before: Floats
    after: Floats

    def cluster(self, certificate: Certificate, reason: Reason) -> Verdict:
        """The certificate."""
        return Verdict(
            subject=_CLUSTER,
            reason=reason,
            observed=certificate.reached,
            limit=certificate.bound,
            unit="usage",
            by=_BY,
            detail=certificate_told(certificate, self.found.problem.resources) + self._errors(),
        )

    def _errors(self) -> str:
        """How well what bundles take of each reported resource is known."""
        told = [f"{name} {fit.error:.1%}" for name, fit in self.found.fits.items()]
        return f"; brokers' usage is explained by load with an error of: {', '.join(told)}" if told else ""

    def broker(self, row: int, *, over: bool) -> Verdict:
        """How full a broker is, in its fullest resource, and how full it will be."""
        problem = self.found.problem
        detail = ""
        if over or self.after[row] != self.before[row]:
            load = loads(problem, problem.owner)[row] / problem.capacity[row]
            detail = f"by {problem.resources[int(load.argmax())]}; the plan brings it to {self.after[row]:.3g}"
        return Verdict(
            subject=self.view.brokers.names[row],
            reason=Reason.OVERLOADED if over else Reason.BALANCED,
            observed=float(self.before[row]),
            limit=self.goal,
            unit="usage",
            by=_BY,
            detail=detail,
        )

    def unload(self, move: PlannedMove) -> Unload:
        """The unload of a move, which goes where it is planned to go or stays."""
        names = self.view.brokers.names
        return Unload(
            bundle=self.view.bundles.names[int(self.found.rows[move.bundle])],
            source=names[move.source],
            why=self.broker(move.source, over=True),
            destination=names[move.destination],
            final=True,
        )
