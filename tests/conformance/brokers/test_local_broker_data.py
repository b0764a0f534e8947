import numpy as np

from tests.conformance.brokers.local_broker_data import LocalBrokerData


def serving(data: LocalBrokerData, *bundles: str) -> LocalBrokerData:
    """*data* after an update in which every bundle has load (1, 2, 3, 4), 5 topics, 6 producers, 7 consumers."""
    n = len(bundles)
    load = np.tile([1.0, 2.0, 3.0, 4.0], (n, 1))
    return data.updated(bundles, load, *(np.full(n, count) for count in (5, 6, 7)))


def deltas(data: LocalBrokerData) -> tuple[set[str], set[str]]:
    return set(data.gains), set(data.losses)


def test_totals_are_of_the_last_update_only() -> None:
    data = serving(serving(LocalBrokerData(), "a", "b", "c"), "a", "b")
    assert data.load.tolist() == [2, 4, 6, 8]
    assert (data.topics, data.producers, data.consumers) == (10, 12, 14)
    assert data.bundles == {"a", "b"}


def test_gains_and_losses_add_up_until_a_report_is_written() -> None:
    data = serving(LocalBrokerData(), "a", "b")
    assert deltas(data) == ({"a", "b"}, set())
    data = serving(serving(data, "b", "c"), "c")
    assert deltas(data) == ({"a", "b", "c"}, {"a", "b"})
    assert deltas(data.without_deltas()) == (set(), set())
    assert deltas(serving(data.without_deltas(), "c", "d")) == ({"d"}, set())


def test_a_bundle_that_left_and_returned_is_lost_and_gained() -> None:
    data = serving(LocalBrokerData(), "a").without_deltas()
    assert deltas(serving(serving(data), "a")) == ({"a"}, {"a"})


def test_a_broker_without_bundles_has_no_load() -> None:
    data = serving(serving(LocalBrokerData(), "a"))
    assert data.load.tolist() == [0, 0, 0, 0]
    assert (data.topics, data.producers, data.consumers, data.bundles) == (0, 0, 0, frozenset())


def test_a_new_broker_has_no_load() -> None:
    assert LocalBrokerData().load.tolist() == [0.0, 0.0, 0.0, 0.0]
