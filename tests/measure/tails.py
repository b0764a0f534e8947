"""How even PeakShedder makes many different clusters, in how many moves and intervals: the typical and the worst ones.

Every cluster is drawn from its seed: 3 to 300 brokers, equal or not, 4 to 40 bundles for each broker, and topics whose
rates follow Zipf's law.  The load is constant, and all moves are carried out before the next interval.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controller.bench.clusters import skewed
from controller.model.load import Floats
from controller.planning.solving.bounds import fewest_moves, lower_bounds, mean_level
from controller.settings.guardrails import GuardrailSettings, IntervalBudgetSettings, WindowBudgetSettings
from controller.settings.pairs import SHEDDER
from controller.settings.section import Section
from tests.measure.balance import GUARDRAILS, carried_out, cluster_of, evenness, problem_in, with_load

#: Exponents of the popularity of keys in 51 of 54 workloads that Twitter published (github.com/twitter/cache-trace,
#: stat/2020Mar.md, CC BY 4.0); of the others it is not known.
EXPONENTS: Final = (
    *(2.6774, 1.4908, 1.6414, 1.1004, 1.882, 1.0666, 1.7366, 1.6796, 0.0, 1.4891, 0.3048, 0.4565, 1.2959, 0.0242),
    *(1.7862, 2.1106, 2.0994, 0.735, 1.3699, 0.0521, 0.7624, 0.274, 1.3726, 0.9929, 0.6299, 1.065, 1.503, 1.2323),
    *(1.4259, 0.0, 0.0, 1.354, 1.1401, 0.0, 1.2169, 0.4251, 0.0, 0.0, 0.8551, 0.8542, 1.5974, 1.4084, 0.6372),
    *(2.0637, 0.8191, 1.5095, 1.2816, 1.9745, 1.2117, 1.2061, 1.611),
)
_FEWEST: Final = 3
LARGEST: Final = 300
_BUNDLES_OF_A_BROKER: Final = (4, 40)
_TOPICS_OF_A_BUNDLE: Final = 20
#: Of so many clusters one has brokers of other sizes: 1:2, or 1:4.
_CAPACITIES: Final = (1.0, 1.0, 2.0, 4.0)
#: github.com/cockroachdb/cockroach, pkg/kv/kvserver/asim, sma_vs_mma_rebalance_speed.
_NIMBLE_BROKERS: Final = 3
_NIMBLE_BUNDLES: Final = 200
_NIMBLE_LEVEL: Final = 1.15
_PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Percentiles over the clusters."""

    clusters: int
    percentile: int
    #: The highest usage over brokers, as a multiple of the mean usage: before, and when nothing moves any more.
    before: float
    after: float
    #: The same as a multiple of a proved bound: no plan ends lower.
    over_bound: float
    moves: float
    #: Moves above the fewest that any plan of the same level has, as a multiple of these.
    over_fewest: float
    #: Until the last move.
    intervals: float


def tails(clusters: int, conf: Mapping[str, str], *, largest: int = LARGEST) -> list[Tails]:
    """Percentiles over *clusters* seeded clusters of up to *largest* brokers, of PeakShedder with options *conf*."""
    measured = np.array([_measured(seed, conf, largest) for seed in range(clusters)])
    return [
        Tails(
            clusters=clusters,
            percentile=percentile,
            **dict(
                zip(
                    ("before", "after", "over_bound", "moves", "over_fewest", "intervals"),
                    np.percentile(measured, percentile, axis=0).tolist(),
                    strict=True,
                )
            ),
        )
        for percentile in _PERCENTILES
    ]


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
    for budgets, guardrails, most in (("default", GUARDRAILS, "50"), ("none", _NO_BUDGETS, "1000")):
        conf = {SHEDDER: "PeakShedder", "trimtabPeakShedderMaxMoves": most}
        end, moves, intervals = carried_out(view, conf, guardrails=guardrails)
        yield Nimble(
            budgets=budgets,
            before=evenness(view),
            after=evenness(end),
            moves=moves,
            fewest=fewest,
            intervals=intervals,
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


def _measured(seed: int, conf: Mapping[str, str], largest: int) -> tuple[float, float, float, float, float, float]:
    chance = np.random.default_rng(seed)
    brokers = int(np.exp(chance.uniform(*np.log((_FEWEST, largest)))))
    bundles = brokers * int(chance.integers(*_BUNDLES_OF_A_BROKER, endpoint=True))
    rate = _rates(chance, bundles, float(chance.choice(EXPONENTS)))
    limit = np.where(np.arange(brokers) % 2, 100.0 * chance.choice(_CAPACITIES), 100.0)
    view = cluster_of(skewed(brokers, bundles, seed=seed), rate, limit, chance)
    end, moves, intervals = carried_out(view, {SHEDDER: "PeakShedder", **conf})
    problem, reached = problem_in(view), evenness(end)
    lowest = max(1.0, lower_bounds(problem, None)[0].level / mean_level(problem))
    fewest = fewest_moves(problem, reached * mean_level(problem) * (1 + 1e-6))
    return evenness(view), reached, reached / lowest, moves, moves / fewest if fewest else 1.0, intervals


def _rates(chance: np.random.Generator, bundles: int, exponent: float) -> Floats:
    """(bundles,) the sums of the rates of topics, which hashes deal out to bundles."""
    topics = bundles * _TOPICS_OF_A_BUNDLE
    rate = np.arange(1, topics + 1, dtype=np.float64) ** -exponent
    dealt = np.bincount(chance.integers(0, bundles, topics), weights=rate, minlength=bundles).astype(np.float64)
    share: Floats = dealt / dealt.mean()
    return share
