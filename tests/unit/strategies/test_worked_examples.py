"""Numbers worked out in articles about Pulsar's load manager, in their own figures."""

import numpy as np
import pytest

from controller.aggregate.state.averages import advance
from controller.model.decision import Reason
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.cluster import broker, broker_table, bundle_table, view

GB = 1024


def test_a_score_of_80_and_a_usage_of_50_percent_make_77() -> None:
    shedder = ThresholdShedder(history_fraction=0.9)
    _, memory = shedder.decide(view(broker("a", usage=0.5, x=1)), UsageHistory(usage={"a": 0.80}))
    assert memory.usage["a"] == pytest.approx(0.77)


def test_ten_brokers_at_80_percent_and_one_at_5_are_left_as_they_are() -> None:
    full = [broker(f"b{i}", usage=0.80, **{f"x{i}": 970, f"y{i}": 30}) for i in range(10)]
    cluster = view(*full, broker("restarted", usage=0.05, z=1))
    shedder = ThresholdShedder(threshold_percent=10)
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    assert decision.unloads == ()
    # (80 x 10 + 5) / 11 = 73.18, so a broker is overloaded from 83.18 % on.
    assert decision.verdicts[0].observed == pytest.approx(0.80)
    assert decision.verdicts[0].limit == pytest.approx(0.8318, abs=5e-5)


def test_with_lower_boundary_shedding_one_of_the_ten_gives() -> None:
    full = [broker(f"b{i}", usage=0.80, **{f"x{i}": 970, f"y{i}": 30}) for i in range(10)]
    cluster = view(*full, broker("restarted", usage=0.05, z=1))
    shedder = ThresholdShedder(threshold_percent=10, lower_boundary=True)
    decision, _ = shedder.decide(cluster, shedder.initial_memory())
    assert (decision.reason, [one.bundle for one in decision.unloads]) == (Reason.UNDERLOADED, ["x0"])


def test_of_10_gb_at_80_percent_with_an_average_of_60_go_1_5_gb() -> None:
    # (0.8 - 0.6 - 0.1 + 0.05) x 10 GB/s
    for bundle_mbytes, enough in ((0.4 * GB, 4), (0.625 * GB, 3)):
        bundles = {f"b{i:03}": bundle_mbytes for i in range(round(10 * GB / bundle_mbytes))}
        cluster = view(broker("hot", usage=0.8, **bundles), broker("other", usage=0.4, z=1))
        shedder = ThresholdShedder(threshold_percent=10)
        decision, _ = shedder.decide(cluster, shedder.initial_memory())
        assert len(decision.unloads) == enough


def test_averages_of_1_2_3_4_5_over_three_samples() -> None:
    count, average = np.zeros(1, np.int64), np.zeros((1, 4))
    averages = []
    for sample in (1, 2, 3, 4, 5):
        count, average = advance(count, average, np.full((1, 4), float(sample)), max_samples=3)
        averages.append(float(average[0, 0]))
    assert averages == pytest.approx([1, 3 / 2, 2, 8 / 3, 31 / 9])
    assert count.tolist() == [3]


def test_a_bundle_of_10_mb_in_and_20_out_counts_as_30() -> None:
    load = np.array([[0.0, 0.0, 10.0, 20.0]])
    assert bundle_table(["a"], np.zeros(1, np.int64), short_term=load).short_term_throughput.tolist() == [30]
    brokers = broker_table(["b"], usage=np.zeros((1, 5)), limit=np.zeros((1, 5)), load=load * 100)
    assert brokers.throughput.tolist() == [3000]
