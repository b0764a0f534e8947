"""How full the brokers are in a round, which of them are to give bundles, and whether they are to do so now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from controller.model.decision import CLUSTER, Reason, UsageOutlook, Verdict
from controller.model.load import Bools, ClusterView, Floats
from controller.planning.from_view import MappedProblem, reported
from controller.planning.objective import highest, load_after, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.solving.bounds import mean_level
from controller.strategies.shedding.peak_shedder import patience
from controller.strategies.shedding.peak_shedder.filling import CrowdedBrokers, FarBelow, Filling, filling_of
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.options import PeakOptions
from controller.strategies.shedding.peak_shedder.promises import MOST, BrokersNow
from controller.strategies.shedding.peak_shedder.told import BY

#: A broker is so many errors of the estimate above the goal before it gives.
_ERRORS: Final = 2.0
#: An urgent move brings its broker this far below the urgent usage, as a share of it, or to the goal of now; and it is
#: made where the broker is so many points above that.  Where load is elsewhere at other hours, the least gain counts.
_BELOW_URGENT: Final = 0.025
_URGENT_FALL: Final = 0.02
#: Of so many brokers one may have been back for less than a day and be far below the mean, and the others are compared
#: with their own mean.
_ONE_APART_OF: Final = 3
_MINUTE_MS: Final = 60_000


class PlanStart(NamedTuple):
    """What a plan of this round is to do."""

    #: Brokers above the first (R,) give bundles until they are at the second; utilisations.
    begin: Floats
    goal: float
    #: Nothing moves if no usage falls by this.
    min_gain: float
    #: Whether only the load of now counts, and no plan of earlier rounds goes on.
    urgent: bool = False
    #: What idle brokers lack that came back within a day.  The others get no further down than that takes, and end at
    #: this utilisation at most.
    lacking: Filling | None = None
    most: float = 0.0


class SeenOfLoad(NamedTuple):
    """What the history of the load says of it as a whole."""

    #: Of the forecast of the next minute, as a share of the load.
    error: float = 0.0
    #: Whether a tenth of it is on other bundles at another hour, and whether a whole day is known.
    varies: bool = False
    day_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """The brokers and their bundles in a round; all utilisations are shares of the capacity."""

    view: ClusterView
    found: MappedProblem
    options: PeakOptions
    #: What an ordinary plan does, and one for brokers above the urgent usage.
    ordinary: PlanStart
    urgent: PlanStart
    #: Mean utilisation of the scarcest resource, now or later, and of that of now.
    mean: float
    mean_now: float
    #: (n, R) of the brokers, and (n,) the utilisation of each one's fullest resource, now or later.
    load: Floats
    before: Floats
    #: (n,) whether each broker is to give bundles; whether because of an ordinary plan; and whether because its usage
    #: now is above the urgent one.
    over: Bools
    above: Bools
    pressed: Bools
    #: (n,) whether each broker would be above, if an urgent move had not relieved it after load jumped.
    relieved: Bools
    #: (n,) whether each broker would be idle, if it had not come back within the last day.
    spared: Bools
    #: Where brokers are far below the mean, and get what they lack before an ordinary plan is made; None: no broker is.
    filling: Filling | None
    #: So far a destination may be above what was promised.
    tolerated: float
    seen: SeenOfLoad

    @property
    def cluster(self) -> BrokersNow:
        """The brokers as they are now, without times to come."""
        now, problem = slice(0, self.found.now), self.found.problem
        full = highest(self.load[:, now], problem.capacity[:, now])
        return BrokersNow(view=self.view, full=full, mean=self.mean_now)

    @property
    def begin(self) -> Floats:
        """(R,) above which a broker gives bundles, by an ordinary plan or an urgent one; of now."""
        # An urgent round looks at no times to come, and those are the last resources.
        begin, now = self.ordinary.begin[: self.load.shape[1]].copy(), slice(0, self.found.now)
        begin[now] = np.minimum(begin[now], self.urgent.begin)
        return begin

    @property
    def outlook(self) -> UsageOutlook:
        """The lowest usage of now above which a broker gives, what it is brought to, and the usages foreseen."""
        now = self.found.now
        limit, goal = min((float(each.begin[:now].min()), each.goal) for each in (self.ordinary, self.urgent))
        later = (self.load / self.found.problem.capacity)[:, now:]
        has_goal = np.isfinite(limit)
        return UsageOutlook(
            limit=limit if has_goal else None,
            goal=min(goal, limit) if has_goal else None,
            forecast=dict(zip(self.view.brokers.names, later.max(axis=1).tolist(), strict=True)) if later.size else {},
        )

    def without_later(self) -> "Situation":
        """The same situation, in which no time to come counts."""
        now = slice(0, self.found.now)
        return replace(self, found=self.found.without_later(), load=self.load[:, now], before=self.cluster.full)

    def shares_after(self, moves: Sequence[PlannedMove]) -> Floats:
        """(n, R) the utilisation of each broker's resources after *moves*."""
        problem = self.found.problem
        return load_after(problem, moves) / problem.capacity

    def ends_of(self, moves: Sequence[PlannedMove]) -> Floats:
        """(n,) the utilisation of each broker's fullest resource after *moves*."""
        problem = self.found.problem
        return highest(load_after(problem, moves), problem.capacity)

    @property
    def idle(self) -> bool:
        """Whether a broker is far below the mean, and gets what it lacks before an ordinary plan is made."""
        return self.filling is not None

    @property
    def over_names(self) -> tuple[str, ...]:
        """The brokers that are to give bundles, and the cluster if one is idle."""
        names = tuple(self.view.brokers.names[row] for row in np.flatnonzero(self.over))
        return (*names, patience.IDLE_BROKER) if self.idle else names

    def start(self, memory: PeakHistory) -> PlanStart | Verdict | None:
        """What to plan now; why not now; or None if there is nothing to plan."""
        if not self.over_names:
            return None
        hold, of = self.options.hold, self.options.hold_of
        at = self.view.as_of_ms
        roster = patience.unsettled_ms(memory, at, self.options.settle_minutes)
        wait = max(roster, patience.unproven_ms(memory, at, self.options.load_settle_minutes))
        waits = wait > 0 or memory.splits > 0
        held = any(patience.held(memory, name, hold, of) for name in self.over_names)
        if not waits and (held or self.pressed.any()):
            if self.filling is not None:
                return self._idle_start(self.filling, memory)
            above = self.above if held else self.above & self.pressed
            return self._ordinary_start(memory) if above.any() else self.urgent
        if self.pressed.any():
            return self.urgent
        if not held:
            detail = f"a broker gives bundles once it was above its limit in {hold} of the last {of} rounds"
            return Verdict(subject=CLUSTER, reason=Reason.HIT_COUNT, by=BY, detail=detail)
        urgent = float(self.urgent.begin.min())
        who = f"only brokers above {urgent:.3g} give bundles" if np.isfinite(urgent) else "no broker gives bundles"
        if not wait:
            detail = f"bundles are split, and their parts go elsewhere: {who}"
            return Verdict(subject=CLUSTER, reason=Reason.COOL_DOWN, by=BY, detail=detail)
        why = (
            f"brokers came or went {(at - memory.changed_ms) / _MINUTE_MS:.3g} min ago; others may follow"
            if wait == roster
            else f"load jumped {(at - memory.jumped_ms) / _MINUTE_MS:.3g} min ago; it may go back"
        )
        detail = f"{why}: for {wait / _MINUTE_MS:.3g} min {who}"
        return Verdict(subject=CLUSTER, reason=Reason.COOL_DOWN, by=BY, detail=detail)

    def _ordinary_start(self, memory: PeakHistory) -> PlanStart:
        helpers = self._helpers(memory)
        return self.ordinary._replace(goal=helpers) if helpers > self.ordinary.goal else self.ordinary

    def _helpers(self, memory: PeakHistory) -> float:
        """The highest usage of the brokers that got bundles by urgent moves and are not above their limit."""
        names = patience.helpers(memory, self.view.as_of_ms)
        helped = _named(names, self.view) & ~self.above
        return float(self.before[helped].max(initial=0.0))

    def _idle_start(self, filling: Filling, memory: PeakHistory) -> PlanStart:
        # In a large cluster an idle broker takes little from each of the others, so no usage has to fall by much.
        least, most = filling.level, min(float(self.before.max()), float(self.ordinary.begin.min()))
        if self.pressed.any():
            least, most = min(least, self.urgent.goal), min(most, self.urgent.goal)
        goal = max(least, self._helpers(memory))
        begin = np.full_like(self.ordinary.begin, goal)
        return PlanStart(begin, goal, 0.0, lacking=filling if filling.sparing else None, most=most)


def situation_of(
    view: ClusterView,
    found: MappedProblem,
    options: PeakOptions,
    memory: PeakHistory,
    seen: SeenOfLoad,
    stayed: Collection[str],
) -> Situation:
    """The situation of *found*, the problem of *view*.

    *stayed*: brokers of the last round; those that came since then are in no hurry.
    """
    problem = found.problem
    load = loads(problem, problem.owner)
    share, means = load / problem.capacity, load.sum(axis=0) / problem.capacity.sum(axis=0)
    fit, now = _fit_errors(found), slice(0, found.now)
    # What load does not explain is no reason to move any.  An error is the root of a mean square: of 20 brokers whose
    # usage is noise, one is above the mean by two of them.
    unknown = (_ERRORS * fit + np.where(np.array(found.minutes, np.bool_), seen.error, 0.0)) * means
    far_below = FarBelow.of(found, share, means, fit, options)
    returned = _named(patience.returned(memory, view.as_of_ms), view)
    ordinary = _ordinary(found, _mean_for(problem, load, far_below.apart(returned)), unknown, options, memory, seen)
    urgent = _urgent(means[now], fit[now], options, varies=seen.varies)
    too_full: Bools = np.any(share > ordinary.begin, axis=1)
    relieved = too_full & _named(patience.relieved(memory, view.as_of_ms), view)
    above = too_full & ~relieved
    pressed = _pressed(view, found, share[:, now], urgent.begin, varies=seen.varies)
    if memory.changed_ms == view.as_of_ms:
        # What a broker uses in its first round, while it starts and its clients connect, is no measure.
        pressed &= _named(stayed, view)
    crowded = CrowdedBrokers(too_full, relieved, float(ordinary.begin.min()))
    return Situation(
        view=view,
        found=found,
        options=options,
        ordinary=ordinary,
        urgent=urgent,
        mean=mean_level(problem),
        mean_now=float(means[now].max(initial=0.0)),
        load=load,
        before=highest(load, problem.capacity),
        over=above | pressed,
        above=above,
        pressed=pressed,
        relieved=relieved & ~pressed,
        spared=far_below.spared(returned),
        filling=filling_of(far_below, returned, crowded) if _may_idle(view, memory, seen) else None,
        seen=seen,
        tolerated=max(options.min_gain, float((_ERRORS * fit * means)[now].max(initial=0.0))),
    )


def _pressed(view: ClusterView, found: MappedProblem, share: Floats, begin: Floats, *, varies: bool) -> Bools:
    """(n,) which brokers are above the urgent usage *begin*; *share*: (n, R) utilisations of now."""
    # What is followed lags behind load that comes and goes by the hour: then the report has to say so, too.
    pressing = np.minimum(share, reported(view, found)) if varies else share
    pressed: Bools = np.any(pressing > begin, axis=1)
    return pressed


def _may_idle(view: ClusterView, memory: PeakHistory, seen: SeenOfLoad) -> bool:
    # Who is idle at this hour may be full at one that is not known yet.  A broker that came is idle at all of them.
    return seen.day_known or not seen.varies or patience.came_or_went(memory, view.as_of_ms)


def _named(names: Collection[str], view: ClusterView) -> Bools:
    """(n,) whether each broker of *view* is one of *names*."""
    return np.array([name in names for name in view.brokers.names], np.bool_)


def pressed_now(found: MappedProblem, options: PeakOptions) -> Bools:
    """(n,) whether the usage of each broker is above the urgent one; *found*: without times to come."""
    problem = found.problem
    load = loads(problem, problem.owner)
    urgent = _urgent(load.sum(axis=0) / problem.capacity.sum(axis=0), _fit_errors(found), options, varies=False)
    over: Bools = np.any(load / problem.capacity > urgent.begin, axis=1)
    return over


def _fit_errors(found: MappedProblem) -> Floats:
    """(R,) the error of the estimate of each resource's usage by load."""
    return np.array([found.fits[name].error if name in found.fits else 0.0 for name in found.problem.resources])


def _mean_for(problem: BalanceProblem, load: Floats, apart: Bools) -> float:
    """The mean utilisation that the goal is near: without the brokers *apart* (n,), if that is more.

    What a broker that is back does not get is no reason for the others to give.  Where more than a third of the brokers
    are so, the others could be too far above the mean.  *load*: (n, R).
    """
    mean = mean_level(problem)
    if not apart.any() or _ONE_APART_OF * apart.sum() > len(apart):
        return mean
    return max(mean, float((load[~apart].sum(axis=0) / problem.capacity[~apart].sum(axis=0)).max()))


def _ordinary(
    found: MappedProblem, mean: float, unknown: Floats, options: PeakOptions, memory: PeakHistory, seen: SeenOfLoad
) -> PlanStart:
    """The plan for brokers above the goal, which is near the *mean* usage.

    *unknown*: (R,) so much of each resource's usage is no reason to move.
    """
    # Another hour is less certain than now: where it counts, twice as much has to be gained.
    goal = mean * (1 + options.goal_percent / 100) + (2 * options.min_gain if seen.varies else 0.0)
    least = options.min_gain * np.where(np.arange(len(unknown)) < found.now, 1.0, 2.0)
    begin = goal + np.maximum(least, unknown) + min(memory.proven.error, MOST)
    if seen.varies and not seen.day_known and options.urgent_percent > 0:
        # Being even now does not last, and what would last is not known yet: only what is in danger is a reason.
        begin = np.full_like(begin, np.inf)
    return PlanStart(begin, goal, options.min_gain)


def _urgent(means: Floats, fit: Floats, options: PeakOptions, *, varies: bool) -> PlanStart:
    """The plan for brokers above the urgent usage: by what is so now, whatever is foreseen and was learnt.

    *means*, *fit*: (R,) the mean utilisation of each resource of now, and the error of its estimate.  *varies*: whether
    load is elsewhere at other hours.
    """
    usage, even = options.urgent_percent / 100, float(means.max(initial=0.0)) * (1 + options.goal_percent / 100)
    if usage <= 0:
        return PlanStart(np.full_like(means, np.inf), even, 0.0, urgent=True)
    goal = max(even, usage * (1 - _BELOW_URGENT))
    # Peaks of the day end by themselves: a move against one has to gain as much as any other.
    fall = max(options.min_gain, _URGENT_FALL) if varies else _URGENT_FALL
    begin = np.maximum(max(usage, goal + fall), even + _ERRORS * fit * means)
    return PlanStart(begin, goal, 0.0, urgent=True)
