"""The figures of a simulated or replayed run: balance, cost of the moves, and whether they helped.

docs/simulate.md defines each one.  All are of the true usage and of what happened, not of what brokers reported.  Of a
recording nobody knows the true usage: there the reported one stands for it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from controller.audit.moves import StraightPlan
from controller.model.load import Bools, Floats
from controller.offline.scenarios.simulate import SimulatedRun
from controller.settings.expectation import Expectation
from controller.settings.scenario_parts import Burst, HotTopics, Lag
from controller.simulator.carrying_out import SimulatedMove

#: How fast thrash counts as movement both ways grows: CockroachDB's exponent.
_BOTH_WAYS: Final = 0.8
#: The cluster is balanced after an event once it has been so for this long.
_SETTLED_INTERVALS: Final = 5
#: Minutes in which a second move of a bundle counts: Pulsar's default grace period.
_GRACE_MINUTES: Final = 30


class FigureTerms(Protocol):
    """What figures are measured by; a scenario is one."""

    @property
    def intervals(self) -> int:
        """How many there are."""
        ...

    @property
    def period_seconds(self) -> int:
        """Length of an interval."""
        ...

    @property
    def limit_percent(self) -> float:
        """A broker above this usage is over its limit."""
        ...

    @property
    def balanced_percent(self) -> float:
        """The cluster is balanced while every broker is within this many percent of the mean."""
        ...

    @property
    def bursts(self) -> tuple[Burst, ...]:
        """Events; none of a recording."""
        ...

    @property
    def hot_topics(self) -> tuple[HotTopics, ...]:
        """Events; none of a recording."""
        ...

    @property
    def lags(self) -> tuple[Lag, ...]:
        """Events; none of a recording."""
        ...


def max_over_mean(usage: Floats) -> Floats:
    """(intervals,) the highest usage over the mean of the brokers that are there; NaN without any, 1 without usage."""
    mean = _of_interval(np.nanmean, usage)
    with np.errstate(all="ignore"):
        return np.where(mean == 0, 1.0, _of_interval(np.nanmax, usage) / mean)


def intervals_to_balance(scenario: FigureTerms, run: SimulatedRun) -> Floats:
    """(events,) intervals from each event until the cluster is balanced and stays so for a while.

    Where it is not balanced before the next event, or the end, all intervals until then count.
    """
    with np.errstate(all="ignore"):
        off = np.abs(run.usage / _of_interval(np.nanmean, run.usage)[:, None] - 1)
    balanced = _of_interval(np.nanmax, off) <= scenario.balanced_percent / 100
    events = events_of(scenario, run)
    waits = []
    for begin, end in zip(events, [*events[1:], scenario.intervals], strict=True):
        waits.append(_first_settled(balanced[begin:end]))
    return np.array(waits, np.float64)


def events_of(scenario: FigureTerms, run: SimulatedRun) -> list[int]:
    """The intervals in which something happens: the start, brokers that come or go, bursts, hot topics, lags."""
    there = ~np.isnan(run.usage)
    events = {0, *(np.flatnonzero((there[1:] != there[:-1]).any(axis=1)) + 1).tolist()}
    for happening in (*scenario.bursts, *scenario.hot_topics, *scenario.lags):
        events |= {happening.at, happening.at + happening.intervals}
    return sorted(each for each in events if each < scenario.intervals)


def undone(moves: Sequence[SimulatedMove]) -> int:
    """How many moves took a bundle back to a broker that an earlier move had taken it from."""
    departures: dict[str, set[int]] = {}
    count = 0
    for move in moves:
        before = departures.setdefault(move.bundle, set())
        count += move.destination in before
        before.add(move.source)
    return count


def redundant(moves: Sequence[SimulatedMove]) -> int:
    """Moves less those of a plan that takes each bundle straight from its first broker to its last one."""
    plan = StraightPlan()
    for move in moves:
        plan.add(move.bundle, str(move.source), str(move.destination))
    return plan.not_needed


def moved_again(moves: Sequence[SimulatedMove], span: int) -> int:
    """Moves of a bundle at most *span* intervals after its move before."""
    last: dict[str, int] = {}
    count = 0
    for move in moves:
        before = last.get(move.bundle)
        count += before is not None and move.turn - before <= span
        last[move.bundle] = move.turn
    return count


def thrash(moves: Sequence[SimulatedMove], usage: Floats) -> float:
    """How much the load that moves bring to brokers and take from them goes back and forth.

    For each broker, all that moves brought less all that they took is a line over time; u and d are how far it rises
    and falls in all.  A broker counts a (u + d) + (1 - a) min(u, d), where a = (min(u, d) / max(u, d)) ** 0.8: nothing
    where it only rises or only falls.  All brokers together are divided by all of their ranges.
    CockroachDB: asim, thrashing (trend-discounted total variation).

    Only moves of the strategy count.  A broker that was away begins anew: with its bundles, all that moves had brought
    it was gone.  *usage*: (intervals, brokers) as in SimulatedRun, NaN where a broker is away.
    """
    away = np.isnan(usage)
    there: Bools = ~(away & ~away.all(axis=1, keepdims=True))  # all of them: nobody was asked in that interval
    departed = np.vstack([np.zeros((1, usage.shape[1]), np.int64), np.cumsum(there[:-1] & ~there[1:], axis=0)])
    # A line for each time that a broker is there, by the interval.
    lines: dict[tuple[int, int], dict[int, float]] = {}
    for move in moves:
        for broker, sign in ((move.source, -1), (move.destination, 1)):
            life = int(departed[min(move.turn, len(departed) - 1), broker])
            line = lines.setdefault((broker, life), {})
            line[move.turn] = line.get(move.turn, 0.0) + sign * move.usage
    total = ranges = 0.0
    for line in lines.values():
        each = np.array(list(line.values()))
        way = np.append(0.0, np.cumsum(each))
        up, down = float(each[each > 0].sum()), float(-each[each < 0].sum())
        less, more = min(up, down), max(up, down)
        both = (less / more) ** _BOTH_WAYS if more else 0.0
        total += both * (up + down) + (1 - both) * less
        ranges += float(way.max() - way.min())
    return total / ranges if ranges else 0.0


def value_of(expectation: Expectation, scenario: FigureTerms, run: SimulatedRun) -> float:
    """The figure that *expectation* is about, from its interval on."""
    after = expectation.after
    usage = run.usage[after:]
    moves = [move for move in run.moves if move.turn >= after]
    if expectation.namespace:
        moves = [move for move in moves if move.namespace == expectation.namespace]
    match expectation.figure:
        case "steady":
            return _unsteadiness(usage)
        case "moved twice in":
            return float(moved_again(moves, expectation.span))
        case "splits":
            prefix = f"{expectation.namespace}/" if expectation.namespace else ""
            return float(sum(at >= after and bundle.startswith(prefix) for at, bundle in run.splits))
        case "failed commands":
            return float(sum(at >= after for at, _ in run.failures))
        case "topic max/mean":
            return float(np.nanmax(run.topics[after:], initial=1.0))
        case "intervals to balance":
            events = np.array(events_of(scenario, run))
            waits = intervals_to_balance(scenario, run)[events >= after]
            return float(waits.mean()) if len(waits) else 0.0
        case figure if figure in _OF_USAGE:
            return _of_usage(figure, usage, scenario)
        case figure:
            return _of_moves(moves, scenario, run)[figure]


_OF_USAGE: Final = (
    "balance max/mean", "balance difference", "balance sd", "highest usage", "lowest usage", "time over limit",
)  # fmt: skip


def _of_usage(figure: str, usage: Floats, scenario: FigureTerms) -> float:
    """One of _OF_USAGE; the worst interval counts."""
    there = usage[~np.isnan(usage).all(axis=1)]
    if not len(there):
        return float("nan")
    match figure:
        case "balance max/mean":
            return float(max_over_mean(there).max())
        case "balance difference":
            return float((np.nanmax(there, axis=1) - np.nanmin(there, axis=1)).max())
        case "balance sd":
            return float(np.nanstd(there, axis=1).max())
        case "highest usage":
            return float(np.nanmax(there))
        case "lowest usage":
            return float(np.nanmin(there))
    return _share_over(there, scenario.limit_percent)


def _of_moves(moves: Sequence[SimulatedMove], scenario: FigureTerms, run: SimulatedRun) -> dict[str, float]:
    span = _GRACE_MINUTES * 60 // scenario.period_seconds
    return {
        "moves": float(len(moves)),
        "moves undone": float(undone(moves)),
        "moves redundant": float(redundant(moves)),
        "bundles moved twice": float(moved_again(moves, span)),
        "thrash": thrash(moves, run.usage),
        "connections disturbed": float(sum(move.connections for move in moves)),
        "messages disturbed": sum(move.messages for move in moves),
    }


def figures_of(scenario: FigureTerms, run: SimulatedRun) -> Mapping[str, float]:
    """The figures of the whole run, for comparisons; smaller is better.

    Figures of usage are means over time here, where an expectation is about the worst interval.
    """
    usage = run.usage[~np.isnan(run.usage).all(axis=1)]
    return {
        "balance max/mean": float(max_over_mean(usage).mean()),
        "balance sd": float(np.nanstd(usage, axis=1).mean()),
        "time over limit": _share_over(usage, scenario.limit_percent),
        "intervals to balance": float(intervals_to_balance(scenario, run).mean()),
        **_of_moves(run.moves, scenario, run),
        "splits": float(len(run.splits)),
        "failed commands": float(len(run.failures)),
    }


def _share_over(usage: Floats, limit_percent: float) -> float:
    """Percent of brokers and intervals above the limit."""
    there = ~np.isnan(usage)
    with np.errstate(invalid="ignore"):
        return 100 * float((usage > limit_percent).sum()) / max(1, int(there.sum()))


def _unsteadiness(usage: Floats) -> float:
    """How far any broker is from the mean of its own usage, in percent of it, at most."""
    there = usage[:, ~np.isnan(usage).all(axis=0)]
    mean = np.nanmean(there, axis=0)
    with np.errstate(all="ignore"):
        return 100 * float(np.nanmax(np.abs(there - mean) / mean, initial=0.0))


def _of_interval(reduce: "np.ufunc | object", usage: Floats) -> Floats:
    """(intervals,) *reduce* of the brokers that are there; NaN without any."""
    values = np.full(len(usage), np.nan)
    some = ~np.isnan(usage).all(axis=1)
    values[some] = reduce(usage[some], axis=1)  # type: ignore[operator]
    return values


def _first_settled(balanced: Bools) -> int:
    """The first place from which on *balanced* is true for a while, or to the end; its length if there is none."""
    streak = 0
    for place, is_balanced in enumerate(balanced.tolist()):
        streak = streak + 1 if is_balanced else 0
        if streak == _SETTLED_INTERVALS:
            return place + 1 - streak
    return len(balanced) - streak
