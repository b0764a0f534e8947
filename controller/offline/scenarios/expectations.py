"""Runs a scenario with several seeds, without its cure and with it, and says which expectations hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.offline.scenarios.figures import figures_of, value_of
from controller.offline.scenarios.simulate import SimulatedRun, Variant, simulate, variant_of
from controller.settings.expectation import Expectation
from controller.settings.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedExpectation:
    """An expectation, and its figure in each run."""

    expectation: Expectation
    #: It must hold with the cure, and must not hold without it; else it must hold in every run.
    of_cure: bool
    #: The figure, a number a seed; () without a cure.
    without_cure: tuple[float, ...]
    with_cure: tuple[float, ...]

    @property
    def held(self) -> bool:
        """Whether everything is as the scenario says."""
        if self.of_cure:
            return self.held_with == len(self.with_cure) and self.held_without == 0
        return self.held_without == len(self.without_cure) and self.held_with == len(self.with_cure)

    @property
    def held_without(self) -> int:
        """In how many runs without the cure it holds."""
        return sum(map(self.expectation.holds, self.without_cure))

    @property
    def held_with(self) -> int:
        """In how many runs with the cure it holds."""
        return sum(map(self.expectation.holds, self.with_cure))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedScenario:
    """A scenario that was run."""

    seeds: tuple[int, ...]
    expectations: tuple[JudgedExpectation, ...]
    #: Figure -> a number a seed, of the runs without the cure and with it; the latter is empty without a cure.
    without_cure: dict[str, tuple[float, ...]]
    with_cure: dict[str, tuple[float, ...]]

    @property
    def held(self) -> bool:
        """Whether all expectations held."""
        return all(each.held for each in self.expectations)


def judge(scenario: Scenario, seeds: int, done: Callable[[int], None] = lambda _: None) -> JudgedScenario:
    """Run *scenario* with so many *seeds*, from its own on; *done* takes the number of intervals simulated so far."""
    numbers = tuple(range(scenario.seed, scenario.seed + seeds))
    variants = [variant_of(scenario)]
    if scenario.cure is not None:
        variants.append(variant_of(scenario, cured=True))

    def run(variant: Variant, seed: int, runs_before: int) -> SimulatedRun:
        return simulate(scenario, variant, seed, lambda more: done(runs_before * scenario.intervals + more))

    runs = [
        [run(variant, seed, row * len(numbers) + nth) for nth, seed in enumerate(numbers)]
        for row, variant in enumerate(variants)
    ]
    without, with_cure = runs[0], runs[1] if scenario.cure is not None else []
    judged = [
        JudgedExpectation(
            expectation=each,
            of_cure=of_cure,
            without_cure=tuple(value_of(each, scenario, run) for run in without),
            with_cure=tuple(value_of(each, scenario, run) for run in with_cure),
        )
        for of_cure in (False, True)
        for each in scenario.expectations(cured=of_cure)
    ]
    return JudgedScenario(
        seeds=numbers,
        expectations=tuple(judged),
        without_cure=_figures(scenario, without),
        with_cure=_figures(scenario, with_cure),
    )


def _figures(scenario: Scenario, runs: Sequence[SimulatedRun]) -> dict[str, tuple[float, ...]]:
    by_run = [figures_of(scenario, run) for run in runs]
    return {name: tuple(each[name] for each in by_run) for name in (by_run[0] if by_run else ())}
