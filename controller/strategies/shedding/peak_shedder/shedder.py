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
from controller.model.load import Bools, ClusterView, Floats
from controller.model.memory import NoMemory
from controller.model.option import option
from controller.planning.bounds import lower_bounds, mean_level
from controller.planning.certify import certified
from controller.planning.checker import flaws
from controller.planning.from_view import Counted, StatedProblem, stated
from controller.planning.objective import highest, loads
from controller.planning.problem import Certificate, CertifiedPlan, PlannedMove
from controller.planning.rounds import PartLimits, part_for_a_round
from controller.planning.search import SearchLimits, searched
from controller.planning.words import certificate_told
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.common.resource_usage import ResourceWeights
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations

_BY: Final = "PeakShedder"
_CLUSTER: Final = "cluster"
#: A broker is so many errors of the estimate above the goal before it gives.
_ERRORS: Final = 2.0


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
        found = stated(view, self._stays(view), self.counted)
        if not found.problem.resources:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory
        return self._decided(view, found), memory

    @property
    def counted(self) -> Counted:
        """Which resources count, and how much: for all plans of the cluster."""
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
        load = loads(problem, problem.owner)
        before, begin = highest(load, problem.capacity), self._begin(found, load, goal)
        over: Bools = np.any(load / problem.capacity > begin, axis=1)
        gives = np.flatnonzero(over)
        asked = Destinations(view=view, rows=found.rows, filters=self.filters).allowed if self.filters else None
        bound = lower_bounds(problem, self.max_moves)[0]
        # The moves to the goal, as if there were no rounds.
        limits = SearchLimits(max_moves=self.max_moves, begin=begin, goal=goal, effort=self.effort)
        whole = searched(problem, limits, bound.level, asked) if len(gives) else ()
        plan = certified(problem, part_for_a_round(problem, whole, self._round, asked), self.max_moves, bound)
        wrong = flaws(problem, plan.moves, plan.certificate)
        after = highest(_after(found, () if wrong else plan.moves), problem.capacity)
        end = highest(_after(found, whole), problem.capacity)
        worth = self._worth(_gain(before, end, whole), plan, len(whole) >= self.max_moves, wrong)
        told = _Told(view, found, goal, load, before, after if worth is None else before)
        rest = len(whole) - len(plan.moves) if worth is None else 0
        unloads = tuple(told.unload(move) for move in plan.moves) if worth is None else ()
        shown = plan if worth is None else certified(problem, (), self.max_moves, bound)
        refused = [one for broker in gives.tolist() for one in movable(view, broker_own(view), broker, _BY)[1]]
        reason = Reason.OVERLOADED if unloads else Reason.BALANCED
        if worth is not None and len(gives):
            reason = refused[0].reason if refused and not plan.moves else worth.reason

        def tell() -> Iterator[Verdict]:
            yield told.cluster(
                shown.certificate, reason, f"; {rest} more moves later bring it to {end.max():.3g}" if rest else ""
            )
            yield from (told.broker(row, over=bool(over[row])) for row in range(len(before)))
            if len(gives):
                yield from refused
                yield from [] if worth is None else [worth]
                yield from too_large(view, found, goal, _BY)

        return UnloadDecision(unloads=unloads, verdicts=LazyVerdicts(tell), reason=reason)

    def _begin(self, found: StatedProblem, load: Floats, goal: float) -> Floats:
        """(R,) above which utilisation brokers give: what load does not explain is no reason to move any.

        An error is the root of a mean square: of 20 brokers whose usage is noise, one is above the mean by two of them.
        """
        capacity, names = found.problem.capacity, found.problem.resources
        error = np.array([found.fits[name].error if name in found.fits else 0.0 for name in names])
        mean = load.sum(axis=0) / capacity.sum(axis=0)
        begin: Floats = goal + np.maximum(self.min_gain_percent / 100, _ERRORS * error * mean)
        return begin

    @property
    def _round(self) -> PartLimits:
        return PartLimits(
            max_moves=self.max_moves,
            max_connections=float(self.max_connections) if self.max_connections else None,
            max_per_broker=self.max_moves_per_broker,
        )

    def _stays(self, view: ClusterView) -> Bools:
        """(bundles,) those that are not planned to move: also those with more connections than a round may have."""
        stays = view.recently_unloaded | broker_own(view)
        if self.max_connections:
            stays = stays | (view.bundles.producers + view.bundles.consumers > self.max_connections)
        return stays

    def _worth(self, gain: float, plan: CertifiedPlan, used_up: bool, wrong: list[str]) -> Verdict | None:
        """Why *plan* is not carried out; None where it is.  *gain*: of the whole plan, which it is a part of."""
        if wrong:
            detail = f"nothing moves, the checker refuses the plan: {'; '.join(wrong)}"
            return Verdict(subject=_CLUSTER, reason=Reason.EXCLUDED, by=_BY, detail=detail)
        if plan.moves and (gain >= self.min_gain_percent / 100 or (used_up and gain > 0)):
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


def _gain(before: Floats, after: Floats, moves: Sequence[PlannedMove]) -> float:
    """By how much the usage of a broker that gives falls, also below which those that it gives to end; the most."""
    ends: dict[int, float] = {}
    for move in moves:
        ends[move.source] = max(float(after[[move.source, move.destination]].max()), ends.get(move.source, 0.0))
    return max((float(before[source]) - end for source, end in ends.items()), default=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Puts a plan into verdicts and unloads."""

    view: ClusterView
    found: StatedProblem
    goal: float
    #: (n, R) of the brokers, before the plan.
    load: Floats
    before: Floats
    after: Floats

    def cluster(self, certificate: Certificate, reason: Reason, later: str) -> Verdict:
        """The certificate of this round, and what following rounds are to do *later*."""
        return Verdict(
            subject=_CLUSTER,
            reason=reason,
            observed=certificate.reached,
            limit=certificate.bound,
            unit="usage",
            by=_BY,
            detail=certificate_told(certificate, self.found.problem.resources) + later + self._errors(),
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
            usage = self.load[row] / problem.capacity[row]
            detail = f"by {problem.resources[int(usage.argmax())]}; the plan brings it to {self.after[row]:.3g}"
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
            in_order=True,
        )
