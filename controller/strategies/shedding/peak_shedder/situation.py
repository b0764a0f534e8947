"""How full the brokers are in a round, which of them are to give bundles, and whether they are to do so now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from controller.model.decision import CLUSTER, Reason, UsageOutlook, Verdict
from controller.model.load import Bools, ClusterView, Floats
from controller.planning.from_view import MappedProblem, reported
from controller.planning.objective import highest, load_after, loads
from controller.planning.problem import PlannedMove
from controller.planning.solving.bounds import mean_level
from controller.strategies.shedding.peak_shedder import patience
from controller.strategies.shedding.peak_shedder.filling import PoolUsage
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.shedding.peak_shedder.options import PeakOptions
from controller.strategies.shedding.peak_shedder.pools import Pools
from controller.strategies.shedding.peak_shedder.promises import BrokersNow
from controller.strategies.shedding.peak_shedder.segments import is_of_topic
from controller.strategies.shedding.peak_shedder.told import BY

#: A broker is so many errors of the estimate above the goal before it gives.
_ERRORS: Final = 2.0
#: An urgent move brings its broker so many points below the urgent usage, or to the goal of now; and it is made where
#: the broker is so many points above that, and falls by as many.
_URGENT_FALL: Final = 0.02
#: Above this usage a broker gives also where what load explains of its usage is uncertain.
_SURELY_HOT: Final = 0.95
#: A plan is for so many hours.
_HOURS_EVEN: Final = 2.0
_MINUTE_MS: Final = 60_000


class SeenOfLoad(NamedTuple):
    """What the history of the load says of it as a whole."""

    #: Of the forecast of the next minute, as a share of the load.
    error: float = 0.0
    #: The share of it that is on other bundles an hour later.
    shifting: float = 0.0


class PlanStart(NamedTuple):
    """What a plan of this round is to do; utilisations."""

    #: A broker that is above the first (n, R) in a resource gives bundles until it is at the second (n,).
    begin: Floats
    goal: Floats
    #: (n,) nothing moves in a pool where no usage falls by this.
    min_gain: Floats
    #: Whether only the load of now counts.
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """The brokers and their bundles in a round; all utilisations are shares of the capacity."""

    view: ClusterView
    found: MappedProblem
    options: PeakOptions
    pools: Pools
    #: What an ordinary plan does, and one for brokers above the urgent usage.
    ordinary: PlanStart
    urgent: PlanStart
    #: Mean utilisation of the scarcest resource, now or later, and of that of now.
    mean: float
    mean_now: float
    #: (n, R) of the brokers, and (n,) the utilisation of each one's fullest resource, now or later.
    load: Floats
    before: Floats
    #: (n,) whether each broker is to give bundles because of an ordinary plan, and because its usage now is urgent.
    above: Bools
    pressed: Bools
    #: (n,) utilisation to which the brokers of a pool give what idle ones lack; NaN in pools where none is idle.
    filling: Floats
    #: So far a destination may be above what was promised.
    tolerated: float
    #: Of the forecast of the next minute, as a share of the load.
    error: float

    @property
    def over(self) -> Bools:
        """(n,) whether each broker is to give bundles."""
        over: Bools = self.above | self.pressed
        return over

    @property
    def cluster(self) -> BrokersNow:
        """The brokers as they are now, without times to come."""
        now, problem = slice(0, self.found.now), self.found.problem
        full = highest(self.load[:, now], problem.capacity[:, now])
        return BrokersNow(view=self.view, full=full, mean=self.mean_now)

    @property
    def begin(self) -> Floats:
        """(n, R) above which a broker gives bundles, by an ordinary plan or an urgent one; of now."""
        # An urgent round looks at no times to come, and those are the last resources.
        begin, now = self.ordinary.begin[:, : self.load.shape[1]].copy(), slice(0, self.found.now)
        begin[:, now] = np.minimum(begin[:, now], self.urgent.begin)
        return begin

    @property
    def outlook(self) -> UsageOutlook:
        """The lowest usage of now above which a broker gives, what it is brought to, and the usages foreseen."""
        now = self.found.now
        # (n,) of each broker; the lowest one counts.
        limits = [(each.begin[:, :now].min(axis=1, initial=np.inf), each.goal) for each in (self.ordinary, self.urgent)]
        limit, goal = min((float(of.min()), float(goals[of.argmin()])) for of, goals in limits)
        # The peak of a scalable topic is no usage of a broker.
        resources = self.found.problem.resources
        later_columns = [row for row in range(now, len(resources)) if not is_of_topic(resources[row])]
        later = (self.load / self.found.problem.capacity)[:, later_columns]
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

    def ends_of(self, moves: Sequence[PlannedMove]) -> Floats:
        """(n,) the utilisation of each broker's fullest resource after *moves*."""
        problem = self.found.problem
        return highest(load_after(problem, moves), problem.capacity)

    @property
    def idle(self) -> bool:
        """Whether a broker is far below the mean of its pool, and gets what it lacks first."""
        return bool(np.isfinite(self.filling).any())

    @property
    def over_names(self) -> tuple[str, ...]:
        """The brokers that are to give bundles, and the cluster if one is idle."""
        names = tuple(self.view.brokers.names[row] for row in np.flatnonzero(self.over))
        return (*names, patience.IDLE_BROKER) if self.idle else names

    def start(self, memory: PeakHistory) -> PlanStart | Verdict | None:
        """What to plan now; why not now; or None if there is nothing to plan."""
        if not self.over_names:
            return None
        at, hold, minutes = self.view.as_of_ms, self.options.hold, self.options.settle_minutes
        roster = patience.unsettled_ms(memory, at, minutes)
        wait = max(roster, patience.unproven_ms(memory, at, minutes))
        held = any(patience.held(memory, name, hold) for name in self.over_names)
        ordinary = self.above | np.isfinite(self.filling)
        if not wait and ordinary.any() and (held or (self.pressed & ordinary).any()):
            return self._with_filling()
        if self.pressed.any():
            return self.urgent
        if not held:
            detail = (
                f"a broker gives bundles once it was above its limit in {hold} of the last {patience.HOLD_OF} rounds"
            )
            return Verdict(subject=CLUSTER, reason=Reason.HIT_COUNT, by=BY, detail=detail)
        urgent = float(self.urgent.begin.min())
        who = f"only brokers above {urgent:.3g} give bundles" if np.isfinite(urgent) else "no broker gives bundles"
        why = (
            f"brokers came or went {(at - memory.changed_ms) / _MINUTE_MS:.3g} min ago; others may follow"
            if wait == roster
            else f"load jumped {(at - memory.jumped_ms) / _MINUTE_MS:.3g} min ago; it may go back"
        )
        detail = f"{why}: for {wait / _MINUTE_MS:.3g} min {who}"
        return Verdict(subject=CLUSTER, reason=Reason.COOL_DOWN, by=BY, detail=detail)

    def _with_filling(self) -> PlanStart:
        """The ordinary plan; in pools with an idle broker, the fullest brokers give what it lacks."""
        if not self.idle:
            return self.ordinary
        begin, goal, min_gain, _ = self.ordinary
        fills = np.isfinite(self.filling)
        level = np.where(self.pools.holds(self.pressed), np.minimum(self.filling, self.urgent.goal), self.filling)
        # In a large pool an idle broker takes little from each of the others, so no usage has to fall by much.
        return PlanStart(
            np.where(fills[:, None], level[:, None], begin),
            np.where(fills, level, goal),
            np.where(fills, 0.0, min_gain),
        )


def situation_of(
    view: ClusterView,
    found: MappedProblem,
    pools: Pools,
    options: PeakOptions,
    memory: PeakHistory,
    *,
    seen: SeenOfLoad,
    stayed: Collection[str],
) -> Situation:
    """The situation of *found*, the problem of *view*.

    *seen*: of the load as a whole.  *stayed*: brokers of the last round;
    those that came since then are in no hurry.
    """
    problem = found.problem
    load = loads(problem, problem.owner)
    share, means = load / problem.capacity, pools.means(load, problem.capacity)
    fit, now = _fit_errors(found), slice(0, found.now)
    away = patience.just_away(memory, view)
    # What a broker that is back does not get at once is no reason for the others to give; less so, the more are back.
    others = pools.means(load, problem.capacity, 1 - away * (1 - away.mean()))
    ordinary = _ordinary(found, np.maximum(means, others), fit, seen, options)
    urgent = _urgent(means[:, now], fit[now], options, seen.shifting)
    above: Bools = np.any(share > ordinary.begin, axis=1)
    pressed = _pressed(view, found, share[:, now], urgent)
    if memory.changed_ms == view.as_of_ms:
        # What a broker uses in its first round, while it starts and its clients connect, is no measure.
        pressed &= np.array([name in stayed for name in view.brokers.names], np.bool_)
    cluster_means = load.sum(axis=0) / problem.capacity.sum(axis=0)
    return Situation(
        view=view,
        found=found,
        options=options,
        pools=pools,
        ordinary=ordinary,
        urgent=urgent,
        mean=mean_level(problem),
        mean_now=float(cluster_means[now].max(initial=0.0)),
        load=load,
        before=highest(load, problem.capacity),
        above=above,
        pressed=pressed,
        filling=_filling(found, pools, share, means, fit, away, options.min_gain, ~above),
        tolerated=max(options.min_gain, float((_ERRORS * fit * cluster_means)[now].max(initial=0.0))),
        error=seen.error,
    )


def pressed_now(view: ClusterView, found: MappedProblem, pools: Pools, options: PeakOptions) -> Bools:
    """(n,) whether the usage of each broker is above the urgent one; *found*: without times to come."""
    problem = found.problem
    load = loads(problem, problem.owner)
    urgent = _urgent(pools.means(load, problem.capacity), _fit_errors(found), options, 0.0)
    return _pressed(view, found, load / problem.capacity, urgent)


def _pressed(view: ClusterView, found: MappedProblem, share: Floats, urgent: PlanStart) -> Bools:
    """(n,) which brokers are above the *urgent* usage; *share*: (n, R) utilisations of now."""
    # What is followed lags behind load that comes and goes: the broker's own report has to say so, too.
    pressed: Bools = np.any(np.minimum(share, reported(view, found)) > urgent.begin, axis=1)
    return pressed


def _fit_errors(found: MappedProblem) -> Floats:
    """(R,) the error of the estimate of each resource's usage by load."""
    return np.array([found.fits[name].error if name in found.fits else 0.0 for name in found.problem.resources])


def _filling(
    found: MappedProblem,
    pools: Pools,
    share: Floats,
    means: Floats,
    fit: Floats,
    away: Floats,
    min_gain: float,
    calm: Bools,
) -> Floats:
    """(n,) to which utilisation the fullest brokers of a pool give, where all are *calm* (n,) and one is idle."""
    filling = np.full(len(share), np.nan)
    if not found.now:
        return filling
    capacity = found.problem.capacity
    for rows in pools.with_any(calm):
        mean = means[rows[0]]
        times = [int(mean[: found.now].argmax()), *range(found.now, len(mean))]
        at = np.ix_(rows, times)
        usage = PoolUsage(share[at], capacity[at], mean[times], _ERRORS * fit[times])
        level = usage.level_to_fill(away[rows], min_gain) if calm[rows].all() else None
        filling[rows] = np.nan if level is None else level
    return filling


def _ordinary(found: MappedProblem, means: Floats, fit: Floats, seen: SeenOfLoad, options: PeakOptions) -> PlanStart:
    """The plan for brokers above the goal, which is near the mean usage of their pool, *means* (n, R)."""
    later = np.array(found.minutes, np.bool_)
    # What load does not explain is no reason to move any.  An error is the root of a mean square: of 20 brokers whose
    # usage is noise, one is above the mean by two of them.
    unknown = (_ERRORS * fit + np.where(later, seen.error, 0.0)) * means
    # What is on other bundles an hour later makes an even cluster uneven by as much: no plan has to be more even.
    goal = means.max(axis=1) * (1 + options.goal_percent / 100 + _HOURS_EVEN * seen.shifting)
    # Another hour is less certain than now: where it counts, twice as much has to be gained.
    least = options.min_gain * np.where(later, 2.0, 1.0)
    return PlanStart(goal[:, None] + np.maximum(least, unknown), goal, np.full(len(goal), options.min_gain))


def _urgent(means: Floats, fit: Floats, options: PeakOptions, shifting: float) -> PlanStart:
    """The plan for brokers above the urgent usage: by what is so now, whatever is foreseen.

    *means*: (n, R) of now; *fit*: (R,) the error of its estimate.
    """
    usage, even = options.urgent_percent / 100, means.max(axis=1) * (1 + options.goal_percent / 100)
    # A peak that ends by itself is none to move for: what is gained has to be more than what goes elsewhere.
    fall = np.maximum(_URGENT_FALL, _HOURS_EVEN * shifting * means.max(axis=1))
    if usage <= 0:
        return PlanStart(np.full_like(means, np.inf), even, fall, urgent=True)
    goal = np.maximum(even, usage - _URGENT_FALL)
    # However uncertain it is what a bundle takes: a broker that is full is worse off with more.
    unsure = np.minimum(even[:, None] + _ERRORS * fit * means, _SURELY_HOT)
    begin = np.maximum(np.maximum(usage, goal + fall)[:, None], unsure)
    return PlanStart(begin, goal, fall, urgent=True)
