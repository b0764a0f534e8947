"""Columns of bundles: which rows a broker owns, and how many bundles of each namespace."""

from controller.model.load import UNOWNED, BundleTable
from controller.strategies.view_builder import Broker, Bundle, cluster_view


def table() -> BundleTable:
    x = Bundle()
    return cluster_view(
        Broker("a", bundles={"one/a/0": x, "one/b/0": x, "one/b/1": x}),
        Broker("b", bundles={"one/b/2": x, "one/c/0": x}),
        Broker("c"),
        unowned={"one/a/1": x, "one/d/0": x},
    ).bundles


def test_of_each_namespace_it_is_known_how_many_bundles_each_broker_owns() -> None:
    bundles, found = table(), table().ownership
    assert bundles.namespaces == ("one/a", "one/b", "one/c", "one/d")
    assert found.starts.tolist() == [0, 1, 3, 4, 4]
    assert (found.namespace.tolist(), found.broker.tolist()) == ([0, 1, 1, 2], [0, 0, 1, 1])
    assert found.bundles.tolist() == [1, 2, 1, 1]


def test_a_broker_owns_its_rows_in_the_order_of_their_names() -> None:
    bundles = table()
    assert [bundles.names[row] for row in bundles.of_broker(0)] == ["one/a/0", "one/b/0", "one/b/1"]
    assert [bundles.names[row] for row in bundles.of_broker(1)] == ["one/b/2", "one/c/0"]
    assert bundles.of_broker(2).tolist() == []


def test_of_brokers_that_sent_no_data_nothing_is_left_but_the_rows_of_their_bundles() -> None:
    given = cluster_view(
        Broker("a:80", cpu=0.1, bundles={"t/n/0x00000000_0x40000000": Bundle(topics=1)}),
        Broker("b:80", cpu=0.2, bundles={"t/n/0x40000000_0x80000000": Bundle(topics=2)}),
        Broker("c:80", cpu=0.3, bundles={"t/n/0x80000000_0xffffffff": Bundle(topics=3)}),
        missing=["bb:80"],
        on_their_way={"t/n/0x00000000_0x40000000": "b:80", "t/n/0x80000000_0xffffffff": "a:80"},
    )
    found = given.without_data({"b:80", "d:80"})
    assert (found.brokers.names, found.missing) == (("a:80", "c:80"), ("b:80", "bb:80"))
    assert found.brokers.usage[:, 0].tolist() == [10.0, 30.0]
    assert found.brokers.topic_count.tolist() == [1, 3]
    assert found.bundles.names == given.bundles.names
    assert found.bundles.broker.tolist() == [0, UNOWNED, 1]
    assert (found.preallocated.bundle.tolist(), found.preallocated.broker.tolist()) == ([2], [0])
