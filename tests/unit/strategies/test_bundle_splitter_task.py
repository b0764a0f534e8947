import pytest

from controller.model.load import ClusterView
from controller.model.strategy_memory import NoMemory
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from tests.cluster import NAMESPACE, Bundle, broker, bundle, view

SPLITTER = BundleSplitterTask(
    max_topics=100, max_sessions=50, max_msg_rate=1000, max_bandwidth_mbytes=100, max_bundles=8
)


def split(cluster: ClusterView, splitter: BundleSplitterTask = SPLITTER) -> list[str]:
    return [one.bundle for one in splitter.decide(cluster, NoMemory())[0].splits]


def verdicts(cluster: ClusterView) -> list[str]:
    return [str(verdict) for verdict in SPLITTER.decide(cluster, NoMemory())[0].verdicts]


@pytest.mark.parametrize(
    ("full", "over", "why"),
    [
        (bundle(topics=100), bundle(topics=101), "x: Topics (101 vs 100 topics)"),
        (bundle(producers=20, consumers=30), bundle(producers=20, consumers=31), "x: Sessions (51 vs 50 sessions)"),
        (bundle(msg_rate=1000), bundle(msg_rate=1001), "x: MsgRate (1001 vs 1000 msg/s)"),
        (bundle(100, msg_rate=1), bundle(101, msg_rate=1), "x: Bandwidth (101 vs 100 MB/s)"),
    ],
)
def test_a_limit_must_be_passed_and_the_verdict_names_it(full: Bundle, over: Bundle, why: str) -> None:
    assert split(view(broker("b", x=full))) == []
    assert verdicts(view(broker("b", x=full))) == []
    assert split(view(broker("b", x=over))) == ["x"]
    assert verdicts(view(broker("b", x=over))) == [why]


def test_a_split_names_its_broker_and_the_first_limit_passed() -> None:
    [one] = SPLITTER.decide(view(broker("a"), broker("b", x=bundle(500, topics=200, msg_rate=9999))), NoMemory())[
        0
    ].splits
    assert (one.broker, str(one.why)) == ("b", "x: Topics (200 vs 100 topics)")


def test_a_bundle_with_one_topic_cannot_be_split() -> None:
    cluster = view(broker("b", x=bundle(msg_rate=5000, topics=1), y=bundle(msg_rate=5000, topics=2)))
    assert split(cluster) == ["y"]
    assert "x: TooFewTopics (1 vs 2 topics)" in verdicts(cluster)


@pytest.mark.parametrize("off", [0, -1])
def test_the_session_limit_can_be_switched_off(off: int) -> None:
    cluster = view(broker("b", x=bundle(producers=1000)))
    assert split(cluster) == ["x"]
    assert split(cluster, BundleSplitterTask(max_sessions=off)) == []


def test_a_namespace_gets_no_more_bundles_than_it_may_have() -> None:
    over = bundle(topics=200)
    cluster = view(broker("b1", w=over, y=over), broker("b2", x=over), bundle_count={NAMESPACE: 6})
    assert split(cluster) == ["w", "x"]
    assert "y: NamespaceFull (8 vs 8 bundles)" in verdicts(cluster)


def test_nothing_is_split_in_a_namespace_of_unknown_size() -> None:
    cluster = view(broker("b", x=bundle(topics=200)), bundle_count={NAMESPACE: -1})
    assert split(cluster) == []
    assert "x: BundleCountUnknown" in verdicts(cluster)


@pytest.mark.parametrize(("limit", "is_split"), [(2047, False), (2048, True), (4096, True), (4097, False)])
def test_bandwidth_limits_overflow_as_in_pulsar(limit: int, *, is_split: bool) -> None:
    splitter = BundleSplitterTask(max_bandwidth_mbytes=limit)
    cluster = view(broker("b", x=bundle(0.5)))
    assert split(cluster, splitter) == (["x"] if is_split else [])


def test_an_empty_cluster_has_nothing_to_split() -> None:
    assert split(view()) == []


def test_one_session_is_a_limit_and_none_is_no_limit() -> None:
    cluster = view(broker("b", x=bundle(producers=2)))
    assert [split(cluster, BundleSplitterTask(max_sessions=most)) for most in (2, 1, 0)] == [[], ["x"], []]
