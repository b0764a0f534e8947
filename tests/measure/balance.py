"""Closed loop: how even each strategy makes a cluster, and how many moves it takes for that.

Seeded clusters under a constant load.  In every interval the whole cycle decides, with filters and the default budgets;
all unloads are carried out, and the next interval sees the result.  Beside each strategy of Pulsar, PeakShedder is
given that strategy's own end as its goal, under the filters of the same load manager.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.bench.clusters import skewed
from controller.bench.overload import snapshots_of
from controller.cycle import Policy, view_of
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    ClusterView,
    Floats,
)
from controller.model.memory import Memory
from controller.planning.from_view import Counted, map_problem
from controller.planning.objective import highest
from controller.planning.problem import BalanceProblem
from controller.planning.solving.bounds import fewest_moves, mean_level
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import EXTENSIBLE, LOAD_MANAGER, PLACEMENT, SHEDDER
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from tests.measure.exact import reachable

#: Brokers and bundles of the clusters; each with equal capacities, and with every second broker twice as large.
SIZES: Final = ((5, 64), (10, 200), (20, 500))
#: So many intervals of a minute, at most; a round without a move for so long is the end.
INTERVALS: Final = 90
_QUIET: Final = 12
#: Mean usage of the scarcest resource, and of the others: messages take CPU, bytes take bandwidth.
_MEAN_USAGE: Final[Mapping[int, float]] = {CPU: 0.35, BANDWIDTH_IN: 0.30, BANDWIDTH_OUT: 0.30}
#: Messages/s of a typical bundle, in and as many out; spread of rates and of message sizes over the bundles: standard
#: deviations of the logarithm.
_MEAN_RATE: Final = 300.0
_SPREAD: Final = 0.8
_MESSAGE_SPREAD: Final = 0.3
PERIOD_MS: Final = 60_000
#: The default budgets.
GUARDRAILS: Final = GuardrailSettings(brokers_balance_unknown="ignore")

_PEAK: Final = {SHEDDER: "PeakShedder"}
#: What is compared, by the name that the bench gives it.
STRATEGIES: Final[Mapping[str, Mapping[str, str]]] = {
    "ThresholdShedder, LeastLongTermMessageRate": {SHEDDER: "ThresholdShedder"},
    "ThresholdShedder, LeastResourceUsageWithWeight": {
        SHEDDER: "ThresholdShedder",
        PLACEMENT: "LeastResourceUsageWithWeight",
    },
    "UniformLoadShedder, LeastLongTermMessageRate": {SHEDDER: "UniformLoadShedder"},
    "AvgShedder": {SHEDDER: "AvgShedder", PLACEMENT: "AvgShedder"},
    "TransferShedder": {LOAD_MANAGER: EXTENSIBLE},
    "PeakShedder": _PEAK,
    "PeakShedder, goal 2 %": {
        **_PEAK,
        "trimtabPeakShedderGoalPercentage": "2",
        "trimtabPeakShedderMinGainPercentage": "0.2",
        "trimtabPeakShedderMaxMoves": "100",
        "trimtabPeakShedderMoveCost": "0",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """One strategy on clusters of one kind, means over them; levels are multiples of the mean usage."""

    #: equal, or 1:2: every second broker is twice as large.
    capacities: str
    strategy: str
    clusters: int
    #: The highest usage over brokers and resources; after: when nothing moves any more.
    before: float
    after: float
    moves: float
    #: That PeakShedder needs to get as far as this strategy, in the clusters where it does; None: in none.
    peak_shedder_moves: float | None
    #: Clusters in which PeakShedder does not get as far.
    not_reached: int
    #: That any strategy needs for that, at least.
    fewest_moves: float
    #: Clusters where PeakShedder gets as far with at most half of the moves; None: the strategy is PeakShedder.
    within_half: int | None
    #: Clusters where it does not, and it is proved that no plan does.
    half_impossible: int | None


def balance(seeds: int, *, exact_seconds: float = 0.0) -> Iterator[Balanced]:
    """Every strategy on *seeds* clusters of each size and kind.

    *exact_seconds*: so long HiGHS looks whether any plan of half the moves gets there, where PeakShedder does not and
    the fewest moves do not say; 0: it is not asked.
    """
    for uneven in (False, True):
        clusters = [cluster(*size, uneven=uneven, seed=seed) for size, seed in product(SIZES, range(1, seeds + 1))]
        for strategy, conf in STRATEGIES.items():
            yield _of(clusters, uneven, strategy, conf, exact_seconds)


def cluster(brokers: int, bundles: int, *, uneven: bool, seed: int) -> ClusterView:
    """A skewed cluster; *uneven*: every second broker has twice the capacity."""
    chance = np.random.default_rng(seed)
    rate = chance.lognormal(0.0, _SPREAD, bundles)
    limit = np.full(brokers, 100.0)
    if uneven:
        limit[1::2] *= 2
    return cluster_of(skewed(brokers, bundles, seed=seed), rate, limit, chance)


def cluster_of(view: ClusterView, rate: Floats, limit: Floats, chance: np.random.Generator) -> ClusterView:
    """*view* with bundles of *rate* (m,), as multiples of a typical one, and brokers of *limit* (n,)."""
    limits = np.repeat(limit[:, None], 5, axis=1)
    view = replace(view, brokers=replace(view.brokers, limit=limits))
    return with_load(view, rate, chance.lognormal(0.0, _MESSAGE_SPREAD, len(rate)))


def with_load(view: ClusterView, rate: Floats, size: Floats) -> ClusterView:
    """*view* with bundles of *rate* (m,) and messages of *size* (m,), as multiples of typical ones."""
    load = np.empty((len(rate), 4))
    load[:, RATE_IN] = load[:, RATE_OUT] = _MEAN_RATE * rate
    load[:, THROUGHPUT_IN] = load[:, THROUGHPUT_OUT] = load[:, RATE_IN] * 1024 * size
    return _with_usage(replace(view, bundles=replace(view.bundles, load=load, short_term=load, long_term=load)))


def problem_of(brokers: int, bundles: int, *, uneven: bool, seed: int) -> BalanceProblem:
    """The bench's cluster in numbers: every bundle may go anywhere."""
    return problem_in(cluster(brokers, bundles, uneven=uneven, seed=seed))


def evenness(view: ClusterView) -> float:
    """The highest usage over brokers and resources, as a multiple of the mean usage of the scarcest resource."""
    counted = list(_MEAN_USAGE)
    usage, limit = view.brokers.usage[:, counted], view.brokers.limit[:, counted]
    return float(highest(usage, limit).max() / (usage.sum(axis=0) / limit.sum(axis=0)).max())


class Ended(NamedTuple):
    """A cluster once nothing moves any more, and how many moves that took."""

    view: ClusterView
    moves: int
    #: Until the last move, and the CPU of the longest.
    intervals: int
    seconds: float


def carried_out(
    view: ClusterView,
    conf: Mapping[str, str],
    *,
    until: float = 1.0,
    guardrails: GuardrailSettings = GUARDRAILS,
    period_ms: int = PERIOD_MS,
) -> Ended:
    """*view* when the strategies of *conf* have done what they do within *guardrails*, or are at *until*."""
    policy = policy_of(conf, DecisionSettings(split=False), guardrails, 1, "bench", period_ms)
    memory, moves, quiet, last, longest = replace(policy.initial_memory(1), samples=100), 0, 0, 0, 0.0

    def seen(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> ClusterView:
        return replace(view_of(snapshots, memory, policy), policies=policies)

    policies = view.policies
    for nth in range(INTERVALS):
        snapshots = snapshots_of(view, view.as_of_ms + nth * period_ms)
        begin = time.process_time()
        entry = decide_interval(snapshots, memory, Controls(mode="active"), policy, seen)
        longest = max(longest, time.process_time() - begin)
        owner = view.bundles.broker.copy()
        for command in entry.decision.commands:
            owner[view.bundles.code_of[command.bundle]] = view.brokers.code_of[command.destination]
        moves += len(entry.decision.commands)
        quiet, last = (0, nth + 1) if entry.decision.commands else (quiet + 1, last)
        if quiet == _QUIET:
            break
        view = _with_usage(replace(view, bundles=replace(view.bundles, broker=owner)))
        # All commands were carried out before the next interval.
        memory = replace(entry.memory, in_flight={})
        if evenness(view) <= until:
            break
    return Ended(view, moves, last, longest)


def _of(
    clusters: Sequence[ClusterView], uneven: bool, strategy: str, conf: Mapping[str, str], exact_seconds: float
) -> Balanced:
    ends = [carried_out(view, conf) for view in clusters]
    compared = conf.get(SHEDDER) != "PeakShedder"
    to_there = [
        moves_to(view, evenness(end), conf) if compared else moves
        for view, (end, moves, *_) in zip(clusters, ends, strict=True)
    ]
    there = [moves for moves in to_there if moves is not None]
    halves = [
        _half(view, evenness(end), moves, ours, exact_seconds)
        for view, (end, moves, *_), ours in zip(clusters, ends, to_there, strict=True)
    ]
    return Balanced(
        capacities="1:2" if uneven else "equal",
        strategy=strategy,
        clusters=len(clusters),
        before=_mean([evenness(view) for view in clusters]),
        after=_mean([evenness(each.view) for each in ends]),
        moves=_mean([each.moves for each in ends]),
        peak_shedder_moves=_mean(there) if there else None,
        not_reached=len(to_there) - len(there),
        fewest_moves=_mean([_fewest(view, evenness(end)) for view, (end, *_) in zip(clusters, ends, strict=True)]),
        within_half=halves.count(True) if compared else None,
        half_impossible=halves.count(False) if compared else None,
    )


def _half(view: ClusterView, even: float, moves: int, ours: int | None, exact_seconds: float) -> bool | None:
    """Whether half of *moves* bring *view* to *even*: True where *ours* do, False where no plan can, None: unknown."""
    half = moves // 2
    if ours is not None and ours <= half:
        return True
    if _fewest(view, even) > half:
        return False
    # That there is a plan without filters does not say that there is one with them.
    impossible = exact_seconds > 0 and reachable(*_end(view, even, half), seconds=exact_seconds) is False
    return False if impossible else None


def moves_to(view: ClusterView, even: float, conf: Mapping[str, str] | None = None) -> int | None:
    """How many moves PeakShedder needs to bring *view* to *even*, in one round if it can; None: it does not.

    With the load manager of *conf*, so that the same filters hold.
    """
    manager = {name: value for name, value in (conf or {}).items() if name == LOAD_MANAGER}
    goal = {
        "trimtabPeakShedderGoalPercentage": f"{max(0.0, 100 * (even - 1)):.6f}",
        "trimtabPeakShedderMinGainPercentage": "0",
        "trimtabPeakShedderMaxMoves": "100",
        "trimtabPeakShedderMoveCost": "0",
    }
    target = even * (1 + 1e-6)
    end, moves, *_ = carried_out(view, {**_PEAK, **manager, **goal}, until=target)
    return moves if evenness(end) <= target else None


def _fewest(view: ClusterView, even: float) -> float:
    """The moves that bring *view* to *even*, at least."""
    problem, _, level = _end(view, even, 0)
    return fewest_moves(problem, level)


def _end(view: ClusterView, even: float, max_moves: int) -> tuple[BalanceProblem, int, float]:
    """The problem of *view*, the moves allowed, and *even* as a utilisation."""
    problem = problem_in(view)
    return problem, max_moves, even * mean_level(problem) * (1 + 1e-6)


def problem_in(view: ClusterView) -> BalanceProblem:
    """*view* in numbers: every bundle may go anywhere."""
    weights = {"cpu": 1.0, "bandwidth in": 1.0, "bandwidth out": 1.0}
    return map_problem(view, view.recently_unloaded, Counted(weights=weights)).problem


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _with_usage(view: ClusterView) -> ClusterView:
    """*view* with the usage and totals that follow from who owns which bundle."""
    bundles, n = view.bundles, len(view.brokers)
    columns = [np.bincount(bundles.broker, weights=column, minlength=n) for column in bundles.load.T]
    load: Floats = np.stack(columns, axis=1).astype(np.float64)
    driven = {
        CPU: load[:, RATE_IN] + load[:, RATE_OUT],
        BANDWIDTH_IN: load[:, THROUGHPUT_IN],
        BANDWIDTH_OUT: load[:, THROUGHPUT_OUT],
    }
    usage = np.zeros((n, 5))
    for resource, mean in _MEAN_USAGE.items():
        usage[:, resource] = driven[resource] / driven[resource].sum() * mean * view.brokers.limit[:, resource].sum()
    counts = np.bincount(bundles.broker, minlength=n)
    topics = np.bincount(bundles.broker, weights=bundles.topics, minlength=n).astype(np.int64)
    brokers = replace(view.brokers, usage=usage, load=load, long_term=load, bundle_count=counts, topic_count=topics)
    return replace(view, brokers=brokers)
