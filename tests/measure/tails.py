"""How even PeakShedder makes many different clusters, in how many moves and intervals: the typical and the worst ones.

Every cluster is drawn from its seed: 3 to 300 brokers, equal or not, 4 to 40 bundles for each broker, and topics whose
rates follow Zipf's law.  The load is constant, and all moves are carried out before the next interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.bench.clusters import skewed
from controller.model.load import Floats
from controller.planning.solving.bounds import fewest_moves, lower_bounds, mean_level
from controller.settings.pairs import SHEDDER
from tests.measure.balance import carried_out, cluster_of, evenness, problem_in

#: Exponents of the popularity of keys in 51 of 54 workloads that Twitter published (github.com/twitter/cache-trace,
#: stat/2020Mar.md, CC BY 4.0); of the others it is not known.
EXPONENTS: Final = (
    *(2.6774, 1.4908, 1.6414, 1.1004, 1.882, 1.0666, 1.7366, 1.6796, 0.0, 1.4891, 0.3048, 0.4565, 1.2959, 0.0242),
    *(1.7862, 2.1106, 2.0994, 0.735, 1.3699, 0.0521, 0.7624, 0.274, 1.3726, 0.9929, 0.6299, 1.065, 1.503, 1.2323),
    *(1.4259, 0.0, 0.0, 1.354, 1.1401, 0.0, 1.2169, 0.4251, 0.0, 0.0, 0.8551, 0.8542, 1.5974, 1.4084, 0.6372),
    *(2.0637, 0.8191, 1.5095, 1.2816, 1.9745, 1.2117, 1.2061, 1.611),
)
_BROKERS: Final = (3, 300)
_BUNDLES_OF_A_BROKER: Final = (4, 40)
_TOPICS_OF_A_BUNDLE: Final = 20
#: Of so many clusters one has brokers of other sizes: 1:2, or 1:4.
_CAPACITIES: Final = (1.0, 1.0, 2.0, 4.0)
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


def tails(clusters: int, conf: Mapping[str, str]) -> list[Tails]:
    """Percentiles over *clusters* seeded clusters, of PeakShedder with the options *conf*."""
    measured = np.array([_measured(seed, conf) for seed in range(clusters)])
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


def _measured(seed: int, conf: Mapping[str, str]) -> tuple[float, float, float, float, float, float]:
    chance = np.random.default_rng(seed)
    brokers = int(np.exp(chance.uniform(*np.log(_BROKERS))))
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
