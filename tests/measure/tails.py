"""How even PeakShedder makes many different clusters, in how many moves and intervals: the typical and the worst ones.

Every cluster is drawn from its seed (tests/measure/workloads.py).  The load is constant, and all moves are carried out
before the next interval.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from controller.bench.clusters import skewed
from controller.model.errors import TrimtabError
from controller.model.load import Floats
from controller.planning.objective import highest, loads
from controller.planning.problem import BalanceProblem
from controller.planning.solving.bounds import fewest_moves, lower_bounds, mean_level
from controller.settings.guardrails import GuardrailSettings, IntervalBudgetSettings, WindowBudgetSettings
from controller.settings.pairs import SHEDDER
from controller.settings.section import Section
from controller.strategies.shedding.peak_shedder.pools import PoolProblem
from tests.measure.balance import GUARDRAILS, PERIOD_MS, carried_out, evenness, problem_in, with_load
from tests.measure.exact import fewest_to
from tests.measure.workloads import KINDS, LARGEST, drawn

#: The default of trimtabPeakShedderGoalPercentage, as a multiple of the mean usage.
_GOAL: Final = 1.05
#: Brokers times bundles of pools of which HiGHS is asked.
_SMALL: Final = 4_000
_ROUNDED: Final = 1 + 1e-6
#: github.com/cockroachdb/cockroach, pkg/kv/kvserver/asim, sma_vs_mma_rebalance_speed.
_NIMBLE_BROKERS: Final = 3
_NIMBLE_BUNDLES: Final = 200
_NIMBLE_LEVEL: Final = 1.15
_SHORT_PERIOD_MS: Final = 10_000
_PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One cluster, before and when nothing moves any more."""

    seed: int
    kind: str
    brokers: int
    bundles: int
    capacities: float
    #: The highest usage of a broker, as a multiple of the mean usage of its pool.
    before: float
    after: float
    #: The same as a multiple of a proved bound of the pool: no plan ends lower.
    over_bound: float
    moves: int
    #: That a plan has at least which brings every broker to where it ended, or to the goal; and the fewest of any such
    #: plan, where that is proved.
    fewest: float
    optimum: int | None
    #: Until the last move: an interval is a minute.
    intervals: int
    #: CPU of the longest interval.
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """A percentile over clusters."""

    clusters: int
    #: One of KINDS, or all.
    kind: str
    percentile: int
    before: float
    after: float
    over_bound: float
    moves: float
    #: Moves as a multiple of the fewest that are proved.
    over_fewest: float
    #: Moves as a multiple of the optimum, of so many clusters for which it is proved; None: of none.
    over_optimum: float | None
    closed: int
    intervals: float
    seconds: float


def measured(seed: int, conf: Mapping[str, str], *, largest: int = LARGEST, exact_seconds: float = 0.0) -> Measured:
    """The cluster of *seed*, balanced by PeakShedder with the options *conf*.

    *exact_seconds*: so long HiGHS looks for the fewest moves in a pool that is small enough; 0: it is not asked.
    """
    cluster = drawn(seed, largest=largest)
    view = cluster.view
    end = carried_out(view, {SHEDDER: "PeakShedder", **conf})
    problem, now = problem_in(view), problem_in(end.view)
    pools = [
        _compared(PoolProblem.of(problem, rows).problem, PoolProblem.of(now, rows).problem, exact_seconds)
        for rows in (np.flatnonzero(cluster.pools == pool) for pool in np.unique(cluster.pools))
    ]
    optima = [each.optimum for each in pools if each.optimum is not None]
    return Measured(
        seed=seed,
        kind=cluster.kind,
        brokers=len(view.brokers),
        bundles=len(view.bundles),
        capacities=cluster.capacities,
        before=max(each.before for each in pools),
        after=max(each.after for each in pools),
        over_bound=max(each.over_bound for each in pools),
        moves=end.moves,
        fewest=sum(each.fewest for each in pools),
        optimum=sum(optima) if len(optima) == len(pools) else None,
        intervals=end.intervals,
        seconds=end.seconds,
    )


class _Pool(NamedTuple):
    """Of one pool what ``Measured`` has of a cluster."""

    before: float
    after: float
    over_bound: float
    fewest: float
    optimum: int | None


def _compared(before: BalanceProblem, after: BalanceProblem, exact_seconds: float) -> _Pool:
    mean, reached = mean_level(before), _usages(after)
    # A plan that does as well brings every broker to where it ended, or to the goal.
    level = np.maximum(reached * _ROUNDED, _GOAL * mean)
    as_well = replace(before, capacity=before.capacity * level[:, None])
    fewest = fewest_moves(as_well, 1.0)
    moved = int(np.count_nonzero(before.owner != after.owner))
    optimum = moved if moved <= fewest else None
    if optimum is None and exact_seconds > 0 and len(before.owner) * len(level) <= _SMALL:
        optimum = fewest_to(as_well, 1.0, seconds=exact_seconds)
    return _Pool(
        before=float(_usages(before).max()) / mean,
        after=float(reached.max()) / mean,
        over_bound=float(reached.max()) / max(mean, lower_bounds(before, None)[0].level),
        fewest=fewest,
        optimum=optimum,
    )


def _usages(problem: BalanceProblem) -> Floats:
    """(n,) of each broker the utilisation of its fullest resource."""
    return highest(loads(problem, problem.owner), problem.capacity)


def measured_before(path: Path | None) -> dict[int, Measured]:
    """What *path* keeps, by seed; a line that was cut short by a stop is taken out."""
    if path is None or not path.exists():
        return {}
    try:
        kept, end, _ = path.read_text().rpartition("\n")
        found = [Measured(**json.loads(line)) for line in kept.splitlines()]
    except (ValueError, TypeError) as error:
        raise TrimtabError(f"{path} is no file of scripts/measure tails --into: {error}") from error
    path.write_text(kept + end)
    return {each.seed: each for each in found}


def keep(one: Measured, path: Path | None) -> None:
    """Add *one* to *path*."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(asdict(one)) + "\n")


def tails(clusters: Sequence[Measured]) -> Iterator[Tails]:
    """Percentiles over *clusters*, and over those of each kind."""
    for kind in ("all", *dict.fromkeys(KINDS)):
        of_kind = [each for each in clusters if kind in ("all", each.kind)]
        for percentile in _PERCENTILES if of_kind else ():
            yield _tail(of_kind, kind, percentile)


def _tail(clusters: Sequence[Measured], kind: str, percentile: int) -> Tails:
    def of(numbers: Sequence[float]) -> float:
        return round(float(np.percentile(numbers, percentile)), 4)

    closed = [_times(each.moves, each.optimum) for each in clusters if each.optimum is not None]
    return Tails(
        clusters=len(clusters),
        kind=kind,
        percentile=percentile,
        before=of([each.before for each in clusters]),
        after=of([each.after for each in clusters]),
        over_bound=of([each.over_bound for each in clusters]),
        moves=of([each.moves for each in clusters]),
        over_fewest=of([_times(each.moves, each.fewest) for each in clusters]),
        over_optimum=of(closed) if closed else None,
        closed=len(closed),
        intervals=of([each.intervals for each in clusters]),
        seconds=of([each.seconds for each in clusters]),
    )


def _times(moves: int, fewest: float) -> float:
    """Nothing moved where nothing has to: 1."""
    return moves / fewest if fewest else 1.0 + moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Nimble:
    """PeakShedder in CockroachDB's case of one broker that has nearly all bundles."""

    budgets: str
    #: The highest usage as a multiple of the mean, before and after; and the fewest moves to 1.15.
    before: float
    after: float
    moves: int
    fewest: float
    intervals: int
    #: Until the last move; without budgets an interval is 10 s.
    minutes: float


def nimbleness() -> Iterator[Nimble]:
    """Three brokers that own a bundle each, and 200 more on one of them, of the same load."""
    view = skewed(_NIMBLE_BROKERS, _NIMBLE_BROKERS + _NIMBLE_BUNDLES)
    owner = np.zeros(len(view.bundles), np.int64)
    owner[:_NIMBLE_BROKERS] = np.arange(_NIMBLE_BROKERS)
    view = with_load(
        replace(view, bundles=replace(view.bundles, broker=owner)), np.ones(len(owner)), np.ones(len(owner))
    )
    problem = problem_in(view)
    fewest = fewest_moves(problem, _NIMBLE_LEVEL * mean_level(problem))
    for budgets, guardrails, most, period_ms in (
        ("default", GUARDRAILS, "50", PERIOD_MS),
        ("none", _NO_BUDGETS, "1000", _SHORT_PERIOD_MS),
    ):
        conf = {SHEDDER: "PeakShedder", "trimtabPeakShedderMaxMoves": most}
        end, moves, intervals, _ = carried_out(view, conf, guardrails=guardrails, period_ms=period_ms)
        yield Nimble(
            budgets=budgets,
            before=evenness(view),
            after=evenness(end),
            moves=moves,
            fewest=fewest,
            intervals=intervals,
            minutes=intervals * period_ms / PERIOD_MS,
        )


def _unlimited(section: type[Section]) -> dict[str, str]:
    return dict.fromkeys((name for name in section.model_fields if name != "seconds"), "unlimited")


_NO_BUDGETS: Final = GuardrailSettings(
    brokers_balance_unknown="ignore",
    interval=IntervalBudgetSettings(**_unlimited(IntervalBudgetSettings)),
    window=WindowBudgetSettings(**_unlimited(WindowBudgetSettings)),
    in_flight="unlimited",
    in_flight_per_broker="unlimited",
    unproven_bundles="unlimited",
    freeze_share=1.0,
)
