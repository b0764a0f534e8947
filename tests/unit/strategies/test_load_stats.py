"""Average and deviation of the brokers' load, in numbers worked out by hand.  Pulsar: TransferShedder.LoadStats."""

import numpy as np

from controller.model.decision import Reason
from controller.strategies.shedding.transfer_shedder.load_stats import BrokerLoads, LoadStats


def stats(*load: float, target_std: float) -> LoadStats:
    """Of brokers with this *load*, in ascending order; none of them counts as full."""
    even = np.ones(len(load))
    loads = BrokerLoads(
        names=tuple(f"b-{nth}" for nth in range(len(load))),
        load=np.array(load),
        throughput_ema=even,
        throughput=even,
        updated_at_ms=np.zeros(len(load), dtype=np.int64),
    )
    counted = np.ones(len(load), dtype=np.bool_)
    return LoadStats(loads, counted, np.arange(len(load)), target_std=target_std, overloaded=2.0)


def test_a_deviation_that_is_the_target_is_even_and_one_above_it_is_not() -> None:
    # Squares: (0.0625 + 0.5625) / 2 - 0.25 = 0.0625.
    assert stats(0.25, 0.75, target_std=0.25).std == 0.25
    assert stats(0.25, 0.75, target_std=0.25).imbalance() is None
    found = stats(0.25, 0.75, target_std=0.2499).imbalance()
    assert found is not None
    assert (found.reason, found.observed, found.limit) == (Reason.OVERLOADED, 0.25, 0.2499)


def test_a_planned_move_changes_the_deviation_of_giver_and_taker() -> None:
    found = stats(0.25, 0.75, target_std=0.0)
    found.offload(1, 0, np.float64(0.125))
    # 0.375 and 0.625: (0.140625 + 0.390625) / 2 - 0.25 = 0.015625.
    assert found.std == 0.125
    assert found.sheddings == 1
    assert not found.has_pair, "the taker takes no more"
