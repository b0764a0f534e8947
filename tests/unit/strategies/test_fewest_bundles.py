from controller.strategies.filters.fewest_bundles import FewestBundles
from tests.cluster import broker, view
from tests.filters import accepted_brokers, sent

CLUSTER = view(
    broker("x", **{"acme/a/0": 1.0, "acme/a/1": 1.0, "acme/b/0": 1.0}),
    broker("y", **{"acme/a/2": 1.0, "pulsar/system/0": 1.0}),
    broker("z", **{"acme/a/3": 1.0}),
)


def test_brokers_with_the_fewest_bundles_of_the_namespace_are_kept() -> None:
    assert accepted_brokers(FewestBundles(), CLUSTER, "acme/a/0") == ["y", "z"]
    assert accepted_brokers(FewestBundles(), CLUSTER, "acme/a/0", of=("x", "y")) == ["y"]
    assert accepted_brokers(FewestBundles(), CLUSTER, "acme/b/0") == ["y", "z"]
    assert accepted_brokers(FewestBundles(), CLUSTER, "acme/a/0", of=()) == []


def test_a_bundle_on_its_way_counts_unless_it_has_arrived() -> None:
    assert accepted_brokers(FewestBundles(), sent(CLUSTER, "acme/a/0", "y"), "acme/a/1") == ["z"]
    assert accepted_brokers(FewestBundles(), sent(CLUSTER, "acme/b/0", "y"), "acme/a/1") == ["y", "z"]
    assert accepted_brokers(FewestBundles(), sent(CLUSTER, "acme/a/2", "y"), "acme/a/1") == ["y", "z"]


def test_turned_off_it_spreads_only_the_system_namespace() -> None:
    off = FewestBundles(enabled=False)
    assert accepted_brokers(off, CLUSTER, "acme/a/0") == ["x", "y", "z"]
    assert accepted_brokers(off, CLUSTER, "pulsar/system/0") == ["x", "z"]
