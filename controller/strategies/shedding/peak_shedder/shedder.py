"""Lower the highest usage of any broker and resource, with few moves, and prove how close that is to the best.

Usage is what brokers report; what a bundle takes of it is estimated (controller/planning/shares.py).  Brokers far above
the mean usage give bundles, until they are near it; every unload names its destination, which the filters allow.  The
verdict on the cluster is the certificate: the usage that is reached, the one that no plan of as many moves can be
below, and why.  docs/objective.md explains both.

A plan has to hold later as well: by the trend of each bundle's load, and at the fullest hours of the next day, as far
as the last days show them.  It is carried out where a broker was above its limit in several rounds, where no brokers
come and go and no load has jumped, and where the gain is worth the disturbance.  What each move promised is looked at
two rounds later.

Nothing is issued that the checker (controller/planning/checking/checker.py) does not verify.  The placement is not
asked: a bundle goes where it is planned to go, or stays.

Pulsar has no such strategy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from controller.model.decision import CLUSTER, LazyVerdicts, Reason, UnloadDecision, Verdict
from controller.model.load import Bools, ClusterView
from controller.planning.checking.checker import flaws
from controller.planning.foresight.bundle_history import BundleHistory
from controller.planning.foresight.foresee import error_of, followed, foreseen
from controller.planning.from_view import map_problem
from controller.planning.objective import load_after
from controller.planning.problem import CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.bounds import LowerBound, lower_bounds, plain_bound
from controller.planning.solving.certify import certified
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.rounds import part_for_a_round
from controller.planning.solving.search import searched
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.options import PeakOptions
from controller.strategies.shedding.peak_shedder.patience import (
    after_plan,
    after_rest,
    is_resting,
    unproven_ms,
    unsettled_ms,
    with_help,
    with_relief,
    with_roster,
    with_round,
    with_splits,
)
from controller.strategies.shedding.peak_shedder.promises import promised, verified
from controller.strategies.shedding.peak_shedder.rest_of_plan import continued, end_of, leads_as_far, with_rest
from controller.strategies.shedding.peak_shedder.situation import (
    PlanStart,
    SeenOfLoad,
    Situation,
    pressed_now,
    situation_of,
)
from controller.strategies.shedding.peak_shedder.sparing import searched_sparing
from controller.strategies.shedding.peak_shedder.told import BY, RoundTold
from controller.strategies.shedding.peak_shedder.undoing import still_to_undo, undoing, without
from controller.strategies.shedding.peak_shedder.worth import gain_of, gained_minutes, share_disturbed

#: So many levels are tried, each half way between the highest one that is enough and the lowest one that is not.
_TRIED_LEVELS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakShedder(PeakOptions):
    """See the module docstring."""

    #: Asked in this order for every bundle that is to move; no option.
    filters: tuple[Filter, ...] = field(default=(), metadata={"meaning": "what says where a bundle may go"})
    urgent_only: bool = field(default=False, metadata={"meaning": "only brokers above the urgent usage give"})

    def initial_memory(self) -> PeakHistory:
        """Nothing is known of the load."""
        return PeakHistory()

    def decide(self, view: ClusterView, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """Plan the moves of this round."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        stayed = memory.brokers
        memory = with_splits(with_roster(replace(memory, broken=()), view), view)
        history = followed(view, BundleHistory.read(memory, view.bundles.names))
        # While brokers come and go, clients are gone for a while and come back.
        settled = not unsettled_ms(memory, view.as_of_ms, self.settle_minutes)
        memory = replace(history.written(memory), jumped_ms=history.jumped_ms if settled else memory.jumped_ms)
        ahead = foreseen(view, history, minutes=self.forecast_minutes, by_day=self.day_profile)
        found = map_problem(view, self._stays(view), self.counted, ahead)
        if not found.problem.resources:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory
        varies = self.load_settle_minutes > 0 and history.varies()
        seen = SeenOfLoad(error_of(history), varies, day_known=history.day() is not None)
        now = situation_of(view, found, self, memory, seen, stayed)
        memory = still_to_undo(now, verified(memory, now.cluster, now.tolerated))
        memory = with_round(memory, now.over_names, self.hold_of)
        start = now.start(memory)
        if self.urgent_only:
            start = now.urgent if now.pressed.any() else None
        resting = is_resting(memory, float(now.before.max(initial=0.0))) and not now.pressed.any()
        if isinstance(start, PlanStart) and not resting:
            decision, memory = self._planned(now, start, memory)
            return replace(decision, outlook=now.outlook), memory
        if isinstance(start, PlanStart):
            detail = f"the last plans were not worth it; the next one is made in {memory.rest} rounds"
            start = Verdict(subject=CLUSTER, reason=Reason.BELOW_MINIMUM, by=BY, detail=detail)
        if start is None:
            memory = without(now, memory, ())
        bound = plain_bound(found.problem)
        plan = _Plan(now, now.ordinary, certified(found.problem, (), self.max_moves, bound), refused=start)
        return replace(self._decision(plan, memory), outlook=now.outlook), after_rest(memory)

    def _planned(self, now: Situation, start: PlanStart, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """The decision of a round in which a plan is made."""
        asked = Destinations(view=now.view, rows=now.found.rows, filters=self.filters).allowed if self.filters else None
        plan = self._plan(now, start, memory, asked)
        if not start.urgent and now.pressed.any() and not any(now.pressed[move.source] for move in plan.moves):
            # What an ordinary plan does not mend, because of what is foreseen or was learnt, cannot wait.
            urgent = self._plan(now, now.urgent, memory, asked)
            plan = plan if urgent.refused is not None else urgent
        if plan.refused is not None and self.undo and not plan.start.urgent:
            plan = self._undone(plan, memory, asked)
        memory = without(plan.now, memory, plan.moves if plan.undoes else ())
        memory = with_rest(memory, plan.now, plan.whole, plan.moves)
        memory = after_plan(memory, float(now.before.max(initial=0.0)), moved=plan.refused is None)
        if plan.refused is None:
            if plan.start.urgent:
                memory = self._after_urgent(now, plan.moves, memory)
            names, gap = now.view.bundles.names, plan.certified.certificate.gap
            made = [] if plan.undoes else [(names[int(now.found.rows[move.bundle])], move) for move in plan.moves]
            ends = plan.now.without_later().ends_of(plan.moves)
            memory = promised(memory, now.cluster, made, ends, memory.proven.gap if plan.undoes else gap)
        return self._decision(plan, memory), memory

    def _after_urgent(self, now: Situation, moves: Sequence[PlannedMove], memory: PeakHistory) -> PeakHistory:
        """*memory* with the brokers that *moves*, which are urgent, concern."""
        at, names = now.view.as_of_ms, now.view.brokers.names
        memory = with_help(memory, at, {names[move.destination] for move in moves})
        if not unproven_ms(memory, at, self.load_settle_minutes):
            return memory
        return with_relief(memory, at, {names[move.source] for move in moves})

    def _plan(self, now: Situation, start: PlanStart, memory: PeakHistory, asked: Allowed | None) -> "_Plan":
        """What this round carries out of the plan that *start* asks for."""
        now = now.without_later() if start.urgent else now
        problem = now.found.problem
        bound = lower_bounds(problem, self.max_moves)[0]
        whole = () if start.urgent else continued(now, memory, asked)
        if not leads_as_far(now, memory, whole):
            # The moves to the goal, as if there were no rounds.
            found = self._searched(now, start, bound, asked)
            whole = min(found, whole, key=lambda moves: end_of(now, moves))
        return self._part(now, start, whole, bound, asked)

    def _searched(
        self, now: Situation, start: PlanStart, bound: LowerBound, asked: Allowed | None
    ) -> tuple[PlannedMove, ...]:
        """The moves that *start* asks for; where idle brokers came back, no more than it takes.

        Bundles are no liquid: the brokers that give end below the level, each by a part of a bundle.
        """
        limits = SearchLimits(max_moves=self.max_moves, begin=start.begin, goal=start.goal, effort=self.effort)
        moves = searched_sparing(now.found.problem, limits, bound.level, asked)
        low, high, lacking = start.goal, start.most, start.lacking
        if lacking is None or low >= high or not lacking.suffices(now.shares_after(moves)):
            return moves
        for _ in range(_TRIED_LEVELS):
            level = (low + high) / 2
            limits = replace(limits, begin=np.full_like(start.begin, level), goal=level)
            fewer = searched(now.found.problem, limits, bound.level, asked)
            if lacking.suffices(now.shares_after(fewer)):
                low, moves = level, fewer
            else:
                high = level
        return moves

    def _undone(self, plan: "_Plan", memory: PeakHistory, asked: Allowed | None) -> "_Plan":
        """The move back that is carried out in place of *plan*, which was refused; *plan* where there is none."""
        problem = plan.now.found.problem
        back = undoing(plan.now, memory, asked)
        found = certified(problem, back, self.max_moves, lower_bounds(problem, self.max_moves)[0])
        if not back or flaws(problem, back, found.certificate):
            return plan
        return _Plan(plan.now, plan.start, found, undoes=True)

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
            return _Plan(now, start, stays, refused=refused, found_none=not plan.moves)
        rest, end = len(whole) - len(plan.moves), float(now.ends_of(whole).max())
        later = f"; {rest} more moves later bring it to {end:.3g}" if rest else ""
        return _Plan(now, start, plan, later=later, whole=() if start.urgent else whole)

    def _refused(
        self, now: Situation, start: PlanStart, whole: tuple[PlannedMove, ...], plan: CertifiedPlan
    ) -> Verdict | None:
        """Why *plan*, a part of the *whole* one, is not carried out; None where it is."""
        problem, wrong = now.found.problem, flaws(now.found.problem, plan.moves, plan.certificate)
        if wrong:
            detail = f"nothing moves, the checker refuses the plan: {'; '.join(wrong)}"
            return Verdict(subject=CLUSTER, reason=Reason.EXCLUDED, by=BY, detail=detail)
        after = load_after(problem, whole)
        gain = gain_of(now.before, now.ends_of(whole), whole)
        if not plan.moves or gain <= 0 or (gain < start.min_gain and len(whole) < self.max_moves):
            detail = "no move that is allowed lowers a broker by enough"
            return _too_little(gain, start.min_gain, "usage", detail)
        gained = gained_minutes(now.found, now.load, after, whole)
        cost = 100.0 * share_disturbed(problem, whole) * self.move_cost
        if gained < cost:
            return _too_little(gained, cost, "point-minutes", "the moves disturb more than they gain, now and later")
        return None

    def _decision(self, plan: "_Plan", memory: PeakHistory) -> UnloadDecision:
        """The unloads of *plan*, with a verdict on all that was looked at."""
        now, refused, certificate = plan.now, plan.refused, plan.certified.certificate
        view, gives = now.view, np.flatnonzero(now.over)
        stay = [one for row in gives.tolist() for one in movable(view, broker_own(view), row, BY)[1]]
        after, urgent = now.ends_of(plan.moves), plan.start.urgent
        told = RoundTold(
            view=view,
            found=now.found,
            goal=plan.start.goal,
            begin=now.begin,
            load=now.load,
            before=now.before,
            after=after,
            memory=memory,
            error=now.seen.error,
            plan=plan.whole or plan.moves,
            undoes=plan.undoes,
            urgent=urgent,
            varies=now.seen.varies,
            relieved=now.relieved,
            spared=now.spared,
        )
        reason = Reason.OVERLOADED if plan.moves else Reason.BALANCED
        if refused is not None:
            reason = stay[0].reason if stay and plan.found_none else refused.reason
        elif not plan.moves and told.keeps_hot(now.over):
            reason = Reason.BELOW_MINIMUM

        def tell() -> Iterator[Verdict]:
            yield told.cluster(certificate, reason, plan.later)
            yield told.forecast(reason)
            yield from (told.broker(row, over=bool(now.over[row])) for row in range(len(now.before)))
            yield from stay
            yield from [] if refused is None else [refused]
            yield from too_large(view, now.found, now.ordinary.goal, BY) if len(gives) else ()

        unloads = tuple(told.unload(move) for move in plan.moves)
        return UnloadDecision(unloads=unloads, verdicts=LazyVerdicts(tell), reason=reason)

    def hurries(self, view: ClusterView) -> bool:
        """Whether a broker is above the urgent usage."""
        found = map_problem(view, self._stays(view), self.counted)
        return found.problem.capacity.size > 0 and bool(pressed_now(found, self).any())

    def relieving(self) -> "PeakShedder":
        """The same shedder, of which only brokers above the urgent usage give."""
        return replace(self, urgent_only=True)

    def _stays(self, view: ClusterView) -> Bools:
        """(bundles,) those that are not planned to move: also those with more connections than a round may have."""
        stays = view.recently_unloaded | broker_own(view)
        if self.max_connections:
            stays = stays | (view.bundles.producers + view.bundles.consumers > self.max_connections)
        return stays


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a round does, or why it does nothing."""

    now: Situation
    start: PlanStart
    certified: CertifiedPlan
    refused: Verdict | None = None
    #: What following rounds are to do, in words, and the plan that they go on with.
    later: str = ""
    whole: tuple[PlannedMove, ...] = ()
    #: Whether no move was found at all.
    found_none: bool = False
    #: Whether its move takes back one of an earlier round.
    undoes: bool = False

    @property
    def moves(self) -> Sequence[PlannedMove]:
        """The moves of this round."""
        return self.certified.moves


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
