from dataclasses import replace

import numpy as np

from controller.model.load import ClusterView
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from tests.cluster import broker, bundle, view

PLACEMENT = LeastLongTermMessageRate(overloaded_percent=85)


def acceptable(cluster: ClusterView, *candidates: str) -> list[str]:
    rows = np.array(sorted(cluster.brokers.code_of[name] for name in candidates or cluster.brokers.names), np.int64)
    found, _ = PLACEMENT.acceptable(cluster, 0, rows, PLACEMENT.initial_memory())
    return [cluster.brokers.names[row] for row in found.tolist()]


def test_a_rate_that_is_no_number_never_wins_and_where_none_is_all_are_acceptable() -> None:
    known = view(broker("b1"), broker("b2", y=bundle(msg_rate=5)), broker("b3"))
    cluster = replace(known, brokers=replace(known.brokers, preallocated_rate=np.array([np.nan, 0, np.nan])))
    assert acceptable(cluster) == ["b2"]
    assert acceptable(cluster, "b1", "b3") == ["b1", "b3"]
