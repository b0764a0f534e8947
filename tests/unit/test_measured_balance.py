"""``scripts/measure balance``: the clusters, the closed loop, and what is told."""

import numpy as np
import pytest

from controller.model.load import CPU
from tests.measure import balance
from tests.measure.balance import STRATEGIES, carried_out, cluster, evenness

pytestmark = pytest.mark.slow


def test_a_cluster_has_the_mean_usage_and_the_capacities_that_it_is_to_have() -> None:
    view = cluster(6, 60, uneven=True, seed=1)
    usage, limit = view.brokers.usage[:, CPU], view.brokers.limit[:, CPU]
    assert usage.sum() / limit.sum() == pytest.approx(0.35)
    assert set(limit.tolist()) == {100.0, 200.0}
    assert evenness(view) > 1.2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_makes_an_uneven_cluster_no_more_uneven_and_keeps_its_load(strategy: str) -> None:
    before = cluster(5, 64, uneven=False, seed=3)
    after, moves, *_ = carried_out(before, STRATEGIES[strategy])
    assert evenness(after) <= evenness(before)
    assert moves >= np.count_nonzero(after.bundles.broker != before.bundles.broker)
    assert after.brokers.usage.sum() == pytest.approx(before.brokers.usage.sum())


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
