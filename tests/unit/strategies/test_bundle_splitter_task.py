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


def test_nothing_is_split_in_a_namespace_of_unknown_size() -> None:
    cluster = view(broker("b", x=bundle(topics=200)), bundle_count={NAMESPACE: -1})
    assert split(cluster) == []
    assert "x: BundleCountUnknown" in verdicts(cluster)
