"""Comparing strategies seed by seed."""

import pytest

from controller.model.errors import SettingsError
from controller.offline.scenarios.compare import Comparison, FigureOverSeeds, compare
from controller.offline.scenarios.shipped import strategy_options
from tests.scenarios import scenario


def compared(**values: tuple[float, ...]) -> Comparison:
    n = len(next(iter(values.values())))
    return Comparison(
        seeds=tuple(range(n)), figures={name: {"moves": FigureOverSeeds(values=each)} for name, each in values.items()}
    )


def test_the_interval_of_a_mean_is_that_of_students_t() -> None:
    figure = FigureOverSeeds(values=(1, 2, 3, 4, 5))
    assert figure.mean == 3
    assert figure.margin == pytest.approx(1.9634, abs=1e-3)
    assert FigureOverSeeds(values=(7,)).margin is None
    assert FigureOverSeeds(values=(7,) * 50).margin == 0


def test_the_smaller_value_wins_a_seed_and_equal_ones_count_for_nobody() -> None:
    (duel,) = compared(a=(1, 1, 1, 5, 2), b=(2, 2, 2, 4, 2)).duels
    assert (duel.first_wins, duel.second_wins, duel.equal, duel.winner) == (3, 1, 1, "a")
    assert duel.probability == pytest.approx(10 / 16)


def test_ten_of_ten_seeds_are_hardly_chance_and_five_of_ten_are() -> None:
    (sure,) = compared(a=(2.0,) * 10, b=(1.0,) * 10).duels
    assert sure.winner == "b"
    assert sure.probability == pytest.approx(2 / 1024)
    (even,) = compared(a=(1, 2) * 5, b=(2, 1) * 5).duels
    assert (even.winner, even.probability) == ("", 1)
    (equal,) = compared(a=(1.0,), b=(1.0 + 1e-12,)).duels
    assert (equal.equal, equal.probability) == (1, 1)


def test_every_pair_meets_once_on_every_figure() -> None:
    duels = compared(a=(1,), b=(2,), c=(3,)).duels
    assert [(duel.first, duel.second) for duel in duels] == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.slow
def test_a_strategy_against_itself_is_equal_on_every_figure() -> None:
    of = scenario(brokers=[{"count": 1, "load": 3}, {"count": 2}], load={"drift_percent": 5}, intervals=15)
    same = compare(of, {name: strategy_options("ThresholdShedder") for name in ("one", "other")}, 2)
    assert {duel.equal for duel in same.duels} == {2}
    assert same.seeds == (1, 2)


@pytest.mark.slow
def test_strategies_are_compared_on_the_same_demand() -> None:
    of = scenario(
        brokers=[{"count": 1, "load": 3}, {"count": 2}],
        namespaces=[{"name": "acme/orders", "bundles": 30, "topics": 300}],
        load={"drift_percent": 5},
        hardware={"cpu_percent": 40},
        intervals=15,
    )
    done: list[int] = []
    found = compare(
        of, {name: strategy_options(name) for name in ("UniformLoadShedder", "OverloadShedder")}, 2, done.append
    )
    assert done == [1, 2, 3, 4]
    moves = {name: each["moves"].values for name, each in found.figures.items()}
    assert min(moves["UniformLoadShedder"]) > 0
    balance = {name: each["balance sd"].mean for name, each in found.figures.items()}
    assert balance["UniformLoadShedder"] < balance["OverloadShedder"]


def test_a_wrong_option_is_refused_before_the_first_run() -> None:
    options = {"a": strategy_options("ThresholdShedder"), "b": {"loadBalancerCPUResourceWeight": "much"}}
    with pytest.raises(SettingsError, match="loadBalancerCPUResourceWeight"):
        compare(scenario(), options, 1, lambda _: pytest.fail("a run began"))


@pytest.mark.parametrize("name", ["AvgShedder", "TransferShedder", "ThresholdShedder+RoundRobinBrokerSelector"])
def test_a_strategy_brings_the_settings_that_it_needs(name: str) -> None:
    compare(scenario(intervals=3), {name: strategy_options(name)}, 1)


def test_a_strategy_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(SettingsError, match="NoShedder: no such strategy; allowed: AvgShedder, "):
        strategy_options("NoShedder")
