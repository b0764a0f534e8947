"""``trimtab bench balance``: the clusters, the closed loop, and what is told."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from controller.bench import balance
from controller.bench.balance import SIZES, STRATEGIES, carried_out, cluster, evenness, moves_to, problem_of
from controller.bench.command import app
from controller.model.load import CPU
from controller.planning.solving.bounds import fewest_moves
from controller.wire.answers.bench import BalanceAnswer

pytestmark = pytest.mark.slow


def test_a_cluster_has_the_mean_usage_and_the_capacities_that_it_is_to_have() -> None:
    view = cluster(6, 60, uneven=True, seed=1)
    usage, limit = view.brokers.usage[:, CPU], view.brokers.limit[:, CPU]
    assert usage.sum() / limit.sum() == pytest.approx(0.35)
    assert set(limit.tolist()) == {100.0, 200.0}
    assert evenness(view) > 1.2


def test_the_same_seed_makes_the_same_cluster_and_another_one_another() -> None:
    first, again, other = (cluster(5, 64, uneven=False, seed=seed) for seed in (1, 1, 2))
    assert (first.brokers.usage == again.brokers.usage).all()
    assert not (first.brokers.usage == other.brokers.usage).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_makes_an_uneven_cluster_no_more_uneven_and_keeps_its_load(strategy: str) -> None:
    before = cluster(5, 64, uneven=False, seed=3)
    after, moves = carried_out(before, {**STRATEGIES[strategy], "trimtabPeakShedderEffort": "20000"})
    assert evenness(after) <= evenness(before)
    assert moves >= np.count_nonzero(after.bundles.broker != before.bundles.broker)
    assert after.brokers.usage.sum() == pytest.approx(before.brokers.usage.sum())


def test_a_loop_ends_where_it_is_even_enough() -> None:
    view = cluster(5, 64, uneven=False, seed=3)
    assert carried_out(view, STRATEGIES["PeakShedder"], until=evenness(view) + 1)[1] <= 20


@pytest.mark.parametrize("uneven", [False, True])
def test_peak_shedder_gets_as_far_with_no_more_moves_and_none_below_the_fewest(
    uneven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "SIZES", ((5, 64),))
    monkeypatch.setattr(balance, "STRATEGIES", dict(list(STRATEGIES.items())[:1]))
    found = [one for one in balance.balance(2) if (one.capacities == "1:2") is uneven]
    for one in found:
        assert one.peak_shedder_moves is not None
        assert one.fewest_moves <= one.peak_shedder_moves <= one.moves / 2
        assert (one.clusters, one.not_reached) == (2, 0)
        assert (one.within_half, one.half_impossible) == (2, 0)


def test_an_end_that_peak_shedder_does_not_reach_counts_as_not_reached() -> None:
    view = cluster(5, 64, uneven=False, seed=3)
    assert moves_to(view, evenness(view)) == 0
    assert moves_to(view, 0.5) is None


def test_peak_shedder_is_compared_under_the_filters_of_the_same_load_manager() -> None:
    # The modular load manager spreads the bundles of a namespace evenly, so more have to move until a large broker has
    # as much as the others.
    view, conf = cluster(*SIZES[1], uneven=True, seed=1), STRATEGIES["TransferShedder"]
    assert (moves_to(view, 1.3), moves_to(view, 1.3, conf)) == (32, 24)


def test_half_of_avg_shedders_moves_are_found_where_no_plan_has_fewer() -> None:
    # AvgShedder takes 53 moves to there, and so many bundles have to leave brokers that are fuller.
    view, end = cluster(*SIZES[2], uneven=False, seed=2), 1.1567822363182068
    assert fewest_moves(problem_of(*SIZES[2], uneven=False, seed=2), end * 0.35) == 26
    assert moves_to(view, end, STRATEGIES["AvgShedder"]) == 26


def test_half_of_the_moves_are_proved_to_be_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "SIZES", ((5, 64),))
    monkeypatch.setattr(balance, "STRATEGIES", {"AvgShedder": STRATEGIES["AvgShedder"]})
    # With the first seed one move is enough by the number of bundles that have to leave, and two are needed.
    _, one = balance.balance(1)
    assert (one.moves, one.fewest_moves, one.within_half, one.half_impossible) == (2.0, 1.0, 0, 0)
    pytest.importorskip("highspy")
    _, one = balance.balance(1, exact_seconds=60.0)
    assert (one.within_half, one.half_impossible) == (0, 1)


def test_it_is_told_as_a_table_and_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    one = BalanceAnswer(
        capacities="equal",
        strategy="ThresholdShedder",
        clusters=3,
        before=2.0,
        after=1.5,
        moves=12.0,
        peak_shedder_moves=5.0,
        not_reached=1,
        fewest_moves=4.5,
        within_half=1,
        half_impossible=2,
    )
    monkeypatch.setattr("controller.bench.command.balanced", lambda seeds, **_: [one] * seeds)
    table = CliRunner().invoke(app, ["balance", "--seeds", "1"])
    assert "ThresholdShedder" in table.stdout
    assert "4.5" in table.stdout
    lines = CliRunner().invoke(app, ["balance", "--seeds", "2", "--json"]).stdout.splitlines()
    assert [json.loads(line)["peak_shedder_moves"] for line in lines] == [5.0, 5.0]
