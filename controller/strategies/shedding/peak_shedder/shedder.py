"""Lower the highest usage of any broker and resource, with few moves, and prove how close that is to the best.

Usage is what brokers report; what a bundle takes of it is estimated (controller/planning/shares.py).  Brokers far above
the mean usage give bundles, until they are near it; every unload names its destination, which the filters allow.  The
verdict on the cluster is the certificate: the usage that is reached, the one that no plan of as many moves can be
below, and why.  docs/objective.md explains both.

Brokers that filters divide are pools: each has its own mean and its own plan.  A plan has to hold later as well: by
the trend of each bundle's load, and at the fullest hours of the next day, where yesterday foretold today.  It is
carried out where a broker was above its limit in several rounds, where no brokers come and go and no load has jumped,
and where the gain is worth the disturbance.  What each move promised is looked at two rounds later.

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
from controller.planning.from_view import FOLLOWING, map_problem
from controller.planning.objective import load_after
from controller.planning.problem import CertifiedPlan, PlannedMove
from controller.planning.sequence import Allowed
from controller.planning.solving.bounds import lower_bounds, plain_bound
from controller.planning.solving.certify import certified
from controller.planning.solving.limits import SearchLimits
from controller.planning.solving.rounds import part_for_a_round
from controller.planning.solving.search import searched
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.destinations import Destinations
from controller.strategies.shedding.peak_shedder.memory import PeakHistory, Rest
from controller.strategies.shedding.peak_shedder.options import PeakOptions
from controller.strategies.shedding.peak_shedder.patience import (
    after_plan,
    after_rest,
    is_resting,
    unsettled_ms,
    with_roster,
    with_round,
)
from controller.strategies.shedding.peak_shedder.pools import PoolProblem, pools_of
from controller.strategies.shedding.peak_shedder.promises import promised, verified
from controller.strategies.shedding.peak_shedder.segments import about_to_change, with_topics
from controller.strategies.shedding.peak_shedder.situation import (
    PlanStart,
    SeenOfLoad,
    Situation,
    pressed_now,
    situation_of,
)
from controller.strategies.shedding.peak_shedder.told import BY, RoundTold
from controller.strategies.shedding.peak_shedder.worth import AHEAD_MINUTES, gain_of, gained_minutes, share_disturbed

_NONE_ALLOWED: Final = "no move that is allowed lowers a broker by enough"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakShedder(PeakOptions):
    """See the module docstring."""

    #: Asked in this order for every bundle that is to move; no option.
    filters: tuple[Filter, ...] = field(default=(), metadata={"meaning": "what says where a bundle may go"})
    auto_scale: AutoScale = field(
        default=AutoScale(), metadata={"meaning": "when brokers split and merge segments of scalable topics"}
    )
    urgent_only: bool = field(default=False, metadata={"meaning": "only brokers above the urgent usage give"})

    def initial_memory(self) -> PeakHistory:
        """Nothing is known of the load."""
        return PeakHistory()

    def decide(self, view: ClusterView, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """Plan the moves of this round."""
        if not len(view.brokers):
            return UnloadDecision(reason=Reason.NO_BROKERS), memory
        stayed = memory.brokers
        memory = with_roster(replace(memory, broken=()), view)
        history = followed(view, BundleHistory.read(memory, view.bundles.names))
        # While brokers come and go, clients are gone for a while and come back.
        settled = not unsettled_ms(memory, view.as_of_ms, self.settle_minutes)
        memory = replace(history.written(memory), jumped_ms=history.jumped_ms if settled else memory.jumped_ms)
        ahead = foreseen(view, history, minutes=AHEAD_MINUTES)
        # The careless fit: a hot broker is not left alone because a constant explains its usage as well as load does.
        found = map_problem(view, self._stays(view), self.counted, ahead, following=FOLLOWING)
        if not found.problem.resources:
            return UnloadDecision(reason=Reason.NO_LOAD_DATA), memory
        pools = pools_of(view, found.rows, self.filters)
        found = with_topics(view, found, pools, ahead.load, percent=self.segment_percent)
        seen = SeenOfLoad(error_of(history), max(0.0, history.shifting))
        now = situation_of(view, found, pools, self, memory, seen=seen, stayed=stayed)
        memory = with_round(verified(memory, now.cluster, now.tolerated), now.over_names)
        start = now.start(memory)
        if self.urgent_only:
            start = now.urgent if now.pressed.any() else None
        if isinstance(start, PlanStart) and not is_resting(memory, *_hardship(now)):
            decision, memory = self._planned(now, start, memory)
            return replace(decision, outlook=now.outlook), memory
        if isinstance(start, PlanStart):
            detail = f"the last plans were not worth it; the next one is made in {memory.rest.left} rounds"
            start = Verdict(subject=CLUSTER, reason=Reason.BELOW_MINIMUM, by=BY, detail=detail)
        memory = replace(memory, rest=Rest()) if start is None else after_rest(memory)
        bound = plain_bound(found.problem)
        plan = _Plan(now, now.ordinary, certified(found.problem, (), self.max_moves, bound), refused=start)
        return replace(self._decision(plan, memory), outlook=now.outlook), memory

    def _planned(self, now: Situation, start: PlanStart, memory: PeakHistory) -> tuple[UnloadDecision, PeakHistory]:
        """The decision of a round in which a plan is made."""
        asked = Destinations(view=now.view, rows=now.found.rows, filters=self.filters).allowed if self.filters else None
        plan = self._plan(now, start, asked)
        if not start.urgent and now.pressed.any() and not any(now.pressed[move.source] for move in plan.moves):
            # What an ordinary plan does not mend, because of what is foreseen, cannot wait.
            urgent = self._plan(now, now.urgent, asked)
            plan = plan if urgent.refused is not None else urgent
        memory = after_plan(memory, *_hardship(now), moved=plan.refused is None)
        if plan.refused is None:
            names = now.view.bundles.names
            made = [(names[int(now.found.rows[move.bundle])], move) for move in plan.moves]
            ends = plan.now.without_later().ends_of(plan.moves)
            memory = promised(memory, now.cluster, made, ends, plan.certified.certificate.gap)
        return self._decision(plan, memory), memory

    def _plan(self, now: Situation, start: PlanStart, asked: Allowed | None) -> "_Plan":
        """The part of the plan that *start* asks for which this round carries out, or why it carries out nothing."""
        now = now.without_later() if start.urgent else now
        problem = now.found.problem
        bound = lower_bounds(problem, self.max_moves)[0]
        whole, refused = self._whole(now, start, asked)
        plan = certified(problem, part_for_a_round(problem, whole, self.round, asked), self.max_moves, bound)
        wrong = flaws(problem, plan.moves, plan.certificate)
        if wrong:
            detail = f"nothing moves, the checker refuses the plan: {'; '.join(wrong)}"
            refused = Verdict(subject=CLUSTER, reason=Reason.EXCLUDED, by=BY, detail=detail)
        elif plan.moves:
            refused = None
        elif refused is None:
            refused = _too_little(0.0, float(start.min_gain.min()), "usage", _NONE_ALLOWED)
        if refused is not None:
            stays = certified(problem, (), self.max_moves, bound)
            return _Plan(now, start, stays, refused=refused, found_none=not whole)
        rest, end = len(whole) - len(plan.moves), float(now.ends_of(whole).max())
        later = f"; {rest} more moves later bring it to {end:.3g}" if rest else ""
        return _Plan(now, start, plan, later=later, whole=whole)

    def _whole(
        self, now: Situation, start: PlanStart, asked: Allowed | None
    ) -> tuple[tuple[PlannedMove, ...], Verdict | None]:
        """The moves to the goal, as if there were no rounds, of each pool where they are worth it; else why not."""
        problem, moves, refused = now.found.problem, tuple[PlannedMove, ...](), None
        gives = np.any(now.load / problem.capacity > start.begin, axis=1)
        pools = sorted(now.pools.with_any(gives), key=lambda rows: -float(now.before[rows].max()))
        for rows in pools:
            pool = PoolProblem.of(problem, rows)
            limits = SearchLimits(
                max_moves=self.max_moves - len(moves),
                begin=start.begin[rows],
                goal=float(start.goal[rows[0]]),
                effort=self.effort,
            )
            level = lower_bounds(pool.problem, limits.max_moves)[0].level
            allowed = asked if len(rows) == len(now.before) else pool.allowed(asked, moves)
            found = pool.back(searched(pool.problem, limits, level, allowed))
            why = self._refused(now, found, float(start.min_gain[rows[0]]))
            if why is None:
                moves = (*moves, *found)
            refused = refused or why
        return moves, refused

    def _refused(self, now: Situation, moves: tuple[PlannedMove, ...], min_gain: float) -> Verdict | None:
        """Why *moves*, the plan of a pool, are not worth it; None where they are."""
        problem = now.found.problem
        gain = gain_of(now.before, now.ends_of(moves), moves)
        if not moves or gain <= 0 or (gain < min_gain and len(moves) < self.max_moves):
            return _too_little(gain, min_gain, "usage", _NONE_ALLOWED)
        gained = gained_minutes(now.found, now.load, load_after(problem, moves), moves)
        cost = 100.0 * share_disturbed(problem, moves) * self.move_cost
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
            min_gain=self.min_gain,
            load=now.load,
            before=now.before,
            after=after,
            memory=memory,
            error=now.error,
            plan=plan.whole or plan.moves,
            urgent=urgent,
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
            yield from too_large(view, now.found, float(now.ordinary.goal.min()), BY) if len(gives) else ()

        unloads = tuple(told.unload(move) for move in plan.moves)
        return UnloadDecision(unloads=unloads, verdicts=LazyVerdicts(tell), reason=reason)

    def hurries(self, view: ClusterView) -> bool:
        """Whether a broker is above the urgent usage."""
        found = map_problem(view, self._stays(view), self.counted, following=FOLLOWING)
        pools = pools_of(view, found.rows, self.filters)
        return found.problem.capacity.size > 0 and bool(pressed_now(view, found, pools, self).any())

    def relieving(self) -> "PeakShedder":
        """The same shedder, of which only brokers above the urgent usage give."""
        return replace(self, urgent_only=True)

    def _stays(self, view: ClusterView) -> Bools:
        """(bundles,) those that are not planned to move: also those with more connections than a round may have."""
        stays = view.recently_unloaded | broker_own(view)
        if self.max_connections:
            stays = stays | (view.bundles.producers + view.bundles.consumers > self.max_connections)
        return stays | about_to_change(view, self.auto_scale) if self.segment_percent > 0 else stays


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

    @property
    def moves(self) -> Sequence[PlannedMove]:
        """The moves of this round."""
        return self.certified.moves


def _hardship(now: Situation) -> tuple[float, int, int]:
    """What a rest ends by: see ``is_resting``."""
    return float(now.before.max(initial=0.0)) - now.mean, int(now.over.sum()), len(now.found.rows)


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
