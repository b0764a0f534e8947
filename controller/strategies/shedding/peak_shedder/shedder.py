"""Lower the highest usage of any broker and resource, with few moves, and prove how close that is to the best.

Usage is what brokers report; what a bundle takes of it is estimated (controller/planning/shares.py).  Brokers far above
the mean usage give bundles, until they are near it; every unload names its destination, which the filters allow.  The
verdict on the cluster is the certificate: the usage that is reached, the one that no plan of as many moves can be
below, and why.  docs/objective.md explains both.

A plan has to hold later as well: by the trend of each bundle's load, and at the fullest hours of the next day, as far
as the last days show them.  It is carried out where a broker was above its limit in several rounds, where no brokers
come and go, and where the gain is worth the disturbance.  What each move promised is looked at two rounds later.

Nothing is issued that the checker (controller/planning/checker.py) does not verify.  The placement is not asked: a
bundle goes where it is planned to go, or stays.

Pulsar has no such strategy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from controller.model.decision import LazyVerdicts, Reason, UnloadDecision, Verdict
from controller.model.load import Bools, ClusterView, Floats
from controller.model.peak_history import PeakHistory
from controller.planning.bounds import LowerBound, lower_bounds, plain_bound
from controller.planning.bundle_history import BundleHistory
from controller.planning.certify import certified
from controller.planning.checker import flaws
from controller.planning.foresee import error_of, followed, foreseen
from controller.planning.from_view import stated
from controller.planning.objective import highest
from controller.planning.problem import CertifiedPlan, PlannedMove
from controller.planning.rounds import part_for_a_round
from controller.planning.search import SearchLimits, searched
from controller.planning.sequence import Allowed
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations
from controller.strategies.shedding.peak_shedder.options import PeakOptions
from controller.strategies.shedding.peak_shedder.patience import (
    after_plan,
    after_rest,
    is_resting,
    with_roster,
    with_round,
)
from controller.strategies.shedding.peak_shedder.promises import promised, verified
from controller.strategies.shedding.peak_shedder.rest_of_plan import continued, end_of, leads_as_far, with_rest
from controller.strategies.shedding.peak_shedder.situation import PlanStart, Situation, situation_of
from controller.strategies.shedding.peak_shedder.told import BY, CLUSTER, RoundTold
from controller.strategies.shedding.peak_shedder.undoing import undoing, without
from controller.strategies.shedding.peak_shedder.worth import gain_of, gained_minutes, load_after, share_disturbed


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakShedder(PeakOptions):
    """See the module docstring."""

    #: Asked in this order for every bundle that is to move; no option.
    filters: tuple[Filter, ...] = field(default=(), metadata={"meaning": "what says where a bundle may go"})

    def initial_memory(self) -> PeakHistory:
        """Nothing is known of the load."""
        return PeakHistory()

    def decide(self, view: ClusterView, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """Plan the moves of this round."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        memory = with_roster(replace(memory, broken=()), view)
        history = followed(view, BundleHistory.read(memory, view.bundles.names))
        memory = history.written(memory)
        ahead = foreseen(view, history, minutes=self.forecast_minutes, by_day=self.day_profile)
        found = stated(view, self._stays(view), self.counted, ahead)
        if not found.problem.resources:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory
        now = situation_of(view, found, self, memory, error_of(history))
        memory = verified(memory, now.cluster, now.tolerated)
        memory = with_round(memory, now.over_names, self.hold_of)
        start = now.start(memory)
        if isinstance(start, PlanStart) and not is_resting(memory, float(now.before.max(initial=0.0))):
            return self._planned(now, start, memory)
        if isinstance(start, PlanStart):
            detail = f"the last plans were not worth it; the next one is made in {memory.rest} rounds"
            start = Verdict(subject=CLUSTER, reason=Reason.BELOW_MINIMUM, by=BY, detail=detail)
        bound, told = plain_bound(found.problem), self._told(now, now.ordinary.goal, now.before, memory)
        plan = _Plan(certified(found.problem, (), self.max_moves, bound), refused=start)
        return self._decision(now, told, plan), after_rest(memory)

    def _planned(self, now: Situation, start: PlanStart, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """The decision of a round in which a plan is made."""
        problem = now.found.problem
        asked = Destinations(view=now.view, rows=now.found.rows, filters=self.filters).allowed if self.filters else None
        bound = lower_bounds(problem, self.max_moves)[0]
        whole = continued(now, memory, asked)
        if not leads_as_far(now, memory, whole):
            # The moves to the goal, as if there were no rounds.
            limits = SearchLimits(max_moves=self.max_moves, begin=start.begin, goal=start.goal, effort=self.effort)
            whole = min(searched(problem, limits, bound.level, asked), whole, key=lambda moves: end_of(now, moves))
        plan = self._part(now, start, whole, bound, asked)
        back = undoing(now, memory, asked) if self.undo and plan.refused is not None else ()
        if back:
            plan = _Plan(certified(problem, back, self.max_moves, bound))
        memory = with_rest(without(now, memory, back), now, whole, plan.certified.moves)
        after = load_after(problem, plan.certified.moves)
        memory = after_plan(memory, float(now.before.max(initial=0.0)), moved=plan.refused is None)
        if plan.refused is None:
            names, full = now.view.bundles.names, slice(0, now.found.now)
            moves = [(names[int(now.found.rows[move.bundle])], move) for move in plan.certified.moves]
            ends = highest(after[:, full], problem.capacity[:, full])
            memory = promised(memory, now.cluster, moves, ends, plan.certified.certificate.gap)
        told = self._told(now, start.goal, highest(after, problem.capacity), memory)
        return self._decision(now, told, plan), memory

    def _part(
        self,
        now: Situation,
        start: PlanStart,
        whole: tuple[PlannedMove, ...],
        bound: LowerBound,
        asked: Allowed | None,
    ) -> "_Plan":
        """The part of the *whole* plan that this round carries out, or why it carries out nothing."""
        problem = now.found.problem
        plan = certified(problem, part_for_a_round(problem, whole, self.round, asked), self.max_moves, bound)
        refused = self._refused(now, start, whole, plan)
        if refused is not None:
            stays = certified(problem, (), self.max_moves, bound)
            return _Plan(stays, refused=refused, found_none=not plan.moves)
        rest = len(whole) - len(plan.moves)
        end = float(highest(load_after(problem, whole), problem.capacity).max())
        return _Plan(plan, later=f"; {rest} more moves later bring it to {end:.3g}" if rest else "")

    def _refused(
        self, now: Situation, start: PlanStart, whole: tuple[PlannedMove, ...], plan: CertifiedPlan
    ) -> Verdict | None:
        """Why *plan*, a part of the *whole* one, is not carried out; None where it is."""
        problem, wrong = now.found.problem, flaws(now.found.problem, plan.moves, plan.certificate)
        if wrong:
            detail = f"nothing moves, the checker refuses the plan: {'; '.join(wrong)}"
            return Verdict(subject=CLUSTER, reason=Reason.EXCLUDED, by=BY, detail=detail)
        after = load_after(problem, whole)
        gain = gain_of(now.before, highest(after, problem.capacity), whole)
        if not plan.moves or gain <= 0 or (gain < start.min_gain and len(whole) < self.max_moves):
            detail = "no move that is allowed lowers a broker by enough"
            return _too_little(gain, start.min_gain, "usage", detail)
        gained = gained_minutes(now.found, now.load, after, whole)
        cost = 100.0 * share_disturbed(problem, whole) * self.move_cost
        if gained < cost:
            return _too_little(gained, cost, "point-minutes", "the moves disturb more than they gain, now and later")
        return None

    def _decision(self, now: Situation, told: RoundTold, plan: "_Plan") -> UnloadDecision:
        """The unloads of *plan*, with a verdict on all that was looked at."""
        view, gives, refused = now.view, np.flatnonzero(now.over), plan.refused
        stay = [one for row in gives.tolist() for one in movable(view, broker_own(view), row, BY)[1]]
        reason = Reason.OVERLOADED if refused is None and plan.certified.moves else Reason.BALANCED
        if refused is not None:
            reason = stay[0].reason if stay and plan.found_none else refused.reason

        def tell() -> Iterator[Verdict]:
            yield told.cluster(plan.certified.certificate, reason, plan.later)
            yield told.forecast(reason)
            yield from (told.broker(row, over=bool(now.over[row])) for row in range(len(now.before)))
            yield from stay
            yield from [] if refused is None else [refused]
            yield from too_large(view, now.found, now.ordinary.goal, BY) if len(gives) else ()

        unloads = tuple(told.unload(move) for move in plan.certified.moves)
        return UnloadDecision(unloads=unloads, verdicts=LazyVerdicts(tell), reason=reason)

    def _told(self, now: Situation, goal: float, after: Floats, memory: PeakHistory) -> RoundTold:
        return RoundTold(now.view, now.found, goal, now.load, now.before, after, memory, now.error)

    def _stays(self, view: ClusterView) -> Bools:
        """(bundles,) those that are not planned to move: also those with more connections than a round may have."""
        stays = view.recently_unloaded | broker_own(view)
        if self.max_connections:
            stays = stays | (view.bundles.producers + view.bundles.consumers > self.max_connections)
        return stays


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a round does, or why it does nothing."""

    certified: CertifiedPlan
    refused: Verdict | None = None
    #: What following rounds are to do.
    later: str = ""
    #: Whether no move was found at all.
    found_none: bool = False


def _too_little(observed: float, limit: float, unit: str, detail: str) -> Verdict:
    return Verdict(
        subject=CLUSTER,
        reason=Reason.BELOW_MINIMUM,
        observed=observed,
        limit=limit,
        unit=unit,
        by=BY,
        detail=detail,
    )
