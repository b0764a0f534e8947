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


def test_the_lowest_long_term_rate_wins_whatever_the_throughput() -> None:
    cluster = view(
        broker("b1", usage=0.2, x=bundle(1, msg_rate=500)), broker("b2", usage=0.2, y=bundle(90, msg_rate=400))
    )
    assert acceptable(cluster) == ["b2"]


def test_equal_rates_are_equally_good() -> None:
    cluster = view(
        broker("b1", x=bundle(msg_rate=5)), broker("b2", y=bundle(msg_rate=7)), broker("b3", z=bundle(msg_rate=5))
    )
    assert acceptable(cluster) == ["b1", "b3"]


def test_bundles_on_their_way_to_a_broker_count_as_its_own() -> None:
    cluster = view(broker("b1", on_its_way=200, x=bundle(msg_rate=300)), broker("b2", y=bundle(msg_rate=400)))
    assert acceptable(cluster) == ["b2"]


def test_an_overloaded_broker_gets_nothing_while_another_one_can() -> None:
    cluster = view(broker("b1", usage=0.86, x=bundle(msg_rate=1)), broker("b2", usage=0.84, y=bundle(msg_rate=9999)))
    assert acceptable(cluster) == ["b2"]


def test_when_all_are_overloaded_all_are_acceptable() -> None:
    cluster = view(broker("b1", usage=0.9, x=bundle(msg_rate=1)), broker("b2", usage=0.95, y=bundle(msg_rate=9999)))
    assert acceptable(cluster) == ["b1", "b2"]


def test_a_broker_exactly_at_the_limit_is_not_overloaded() -> None:
    placement = LeastLongTermMessageRate(overloaded_percent=75)
    cluster = view(broker("b1", usage=0.75, x=bundle(msg_rate=1)), broker("b2", usage=0.1, y=bundle(msg_rate=2)))
    found, _ = placement.acceptable(cluster, 0, np.arange(2), placement.initial_memory())
    assert found.tolist() == [0]


def test_a_rate_that_is_no_number_never_wins_and_where_none_is_all_are_acceptable() -> None:
    known = view(broker("b1"), broker("b2", y=bundle(msg_rate=5)), broker("b3"))
    cluster = replace(known, brokers=replace(known.brokers, preallocated_rate=np.array([np.nan, 0, np.nan])))
    assert acceptable(cluster) == ["b2"]
    assert acceptable(cluster, "b1", "b3") == ["b1", "b3"]


def test_only_candidates_are_considered() -> None:
    cluster = view(
        broker("b1", x=bundle(msg_rate=1)), broker("b2", y=bundle(msg_rate=5)), broker("b3", z=bundle(msg_rate=9))
    )
    assert acceptable(cluster, "b2", "b3") == ["b2"]
    found, _ = PLACEMENT.acceptable(cluster, 0, np.zeros(0, np.int64), PLACEMENT.initial_memory())
    assert found.tolist() == []
