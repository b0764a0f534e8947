"""Compares strategies on the same scenarios with the same seeds: each figure with its interval, and who wins.

Runs of one seed have the same demand, so strategies are compared seed by seed.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from controller.model.decision import Decision
from controller.offline.scenarios.figures import figures_of
from controller.offline.scenarios.simulate import SimulatedRun, simulate, variant_of
from controller.settings.scenario import Scenario

#: Student's t for 95 %, two sides, by degrees of freedom from 1; further ones are that of the normal distribution.
_T95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL95: Final = 1.960
#: Figures closer than this, relatively, are equal: they differ by the order of additions alone.
_EQUAL: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOverSeeds:
    """One figure of one strategy."""

    #: One a seed.
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.values)

    @property
    def margin(self) -> float | None:
        """Half of the 95 % interval of the mean (Student's t); None with one seed."""
        n = len(self.values)
        if n == 1:
            return None
        t = _T95[n - 2] if n - 2 < len(_T95) else _NORMAL95
        return t * statistics.stdev(self.values) / math.sqrt(n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Two strategies on one figure, seed by seed; the smaller value wins."""

    figure: str
    first: str
    second: str
    first_wins: int
    second_wins: int
    equal: int

    @property
    def probability(self) -> float:
        """How probable so uneven a result is if both are equally good: the two-sided sign test, without equal seeds."""
        n, wins = self.first_wins + self.second_wins, max(self.first_wins, self.second_wins)
        if n == 0:
            return 1.0
        ways = sum(math.comb(n, k) for k in range(wins, n + 1))
        return min(1.0, float(2 * ways / (1 << n)))

    @property
    def winner(self) -> str:
        """Who wins more seeds; "" where neither does."""
        if self.first_wins == self.second_wins:
            return ""
        return self.first if self.first_wins > self.second_wins else self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Strategies on one scenario."""

    seeds: tuple[int, ...]
    #: Strategy -> figure -> its values.
    figures: Mapping[str, Mapping[str, FigureOverSeeds]]

    @property
    def duels(self) -> tuple[Duel, ...]:
        """Every pair of strategies on every figure."""
        first = next(iter(self.figures.values()))
        return tuple(self._duel(figure, *pair) for figure in first for pair in combinations(self.figures, 2))

    def _duel(self, figure: str, first: str, second: str) -> Duel:
        signs = [
            0 if math.isclose(one, other, rel_tol=_EQUAL, abs_tol=_EQUAL) else (-1 if one < other else 1)
            for one, other in zip(self.figures[first][figure].values, self.figures[second][figure].values, strict=True)
        ]
        return Duel(
            figure=figure,
            first=first,
            second=second,
            first_wins=signs.count(-1),
            second_wins=signs.count(1),
            equal=signs.count(0),
        )


def compare(
    scenario: Scenario,
    strategies: Mapping[str, dict[str, str]],
    seeds: int,
    done: Callable[[int], None] = lambda _: None,
    show: Callable[[str, SimulatedRun, Sequence[Decision]], None] | None = None,
) -> Comparison:
    """Run *scenario* with each of *strategies*, name -> options of broker.conf, and so many *seeds*.

    *done* takes the number of runs so far; *show*, of the first seed, each strategy's run and the decision of each
    interval.  Raises SettingsError where a strategy cannot be used.
    """
    numbers = tuple(range(scenario.seed, scenario.seed + seeds))
    # All at once, so that a wrong option of the last one is told before the first run.
    variants = {name: variant_of(scenario, strategy=conf) for name, conf in strategies.items()}
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in variants}
    runs: Sequence[tuple[str, int]] = [(name, seed) for seed in numbers for name in variants]
    for number, (name, seed) in enumerate(runs, start=1):
        decisions: list[Decision] = []
        is_shown = show is not None and seed == scenario.seed
        run = simulate(scenario, variants[name], seed, tell=decisions.append if is_shown else _forget)
        if show is not None and is_shown:
            show(name, run, decisions)
        figures[name].append(figures_of(scenario, run))
        done(number)
    return Comparison(
        seeds=numbers,
        figures={
            name: {figure: FigureOverSeeds(values=tuple(each[figure] for each in of)) for figure in of[0]}
            for name, of in figures.items()
        },
    )


def _forget(_: Decision) -> None:
    """What nobody asks for is not kept: a day of decisions takes much memory."""
