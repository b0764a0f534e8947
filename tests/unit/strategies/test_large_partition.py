from dataclasses import replace

import numpy as np

from controller.model.load import ClusterView
from controller.model.strategy_memory import NoMemory
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.large_partition import LargePartition, WithPartitionAdvice
from tests.cluster import MB, broker, bundle, view
from tests.topics import with_topics

ADVISER = WithPartitionAdvice(policy=BundleSplitterTask(), large=LargePartition(max_mbytes=20))
PLAIN = view(broker("b", x=bundle(30), y=bundle(50), z=bundle(1)))


def advice(cluster: ClusterView, adviser: WithPartitionAdvice = ADVISER) -> list[str]:
    decision, _ = adviser.decide(cluster, NoMemory())
    return [str(verdict) for verdict in decision.verdicts]


def test_a_partition_above_the_limit_gets_the_advice_to_add_partitions() -> None:
    assert advice(with_topics(PLAIN, {"x": {7: 25, 9: 5}})) == [
        "x: LargePartition (25 vs 20 MB/s): add partitions to the topic at 0x00000007: no split can divide one"
    ]


def test_a_segment_above_the_limit_is_for_pulsar_to_split_since_a_scalable_topic_has_no_partitions() -> None:
    cluster = with_topics(PLAIN, {"x": {7: 25, 9: 21}})
    detail = replace(cluster.bundles.detail, segment=np.array([0xFFFF, 0]))
    assert advice(replace(cluster, bundles=replace(cluster.bundles, detail=detail))) == [
        "x: LargePartition (25 vs 20 MB/s): have Pulsar split the segment at 0x00000007: no split can divide one",
        "x: LargePartition (21 vs 20 MB/s): add partitions to the topic at 0x00000009: no split can divide one",
    ]


def test_the_limit_may_be_reached() -> None:
    assert advice(with_topics(PLAIN, {"x": {7: 20}})) == []


def test_both_directions_count_together() -> None:
    cluster = with_topics(PLAIN, {"x": {7: 11}})
    detail = replace(cluster.bundles.detail, load=np.array([[0.0, 0.0, 11 * MB, 11 * MB]]))
    cluster = replace(cluster, bundles=replace(cluster.bundles, detail=detail))
    assert "LargePartition (22 vs 20 MB/s)" in advice(cluster)[0]


def test_they_come_by_bundle_then_by_position_even_beside_bundles_without_detail() -> None:
    found = advice(with_topics(PLAIN, {"z": {1: 99}, "x": {9: 21, 3: 22}}))
    places = [("x", "0x00000003"), ("x", "0x00000009"), ("z", "0x00000001")]
    assert [text[0] for text in found] == [bundle for bundle, _ in places]
    assert all(place in text for text, (_, place) in zip(found, places, strict=True))


def test_the_decision_is_that_of_the_policy() -> None:
    cluster = with_topics(view(broker("b", x=bundle(200, topics=5000))), {"x": {7: 200}})
    decision, _ = ADVISER.decide(cluster, NoMemory())
    alone, _ = BundleSplitterTask().decide(cluster, NoMemory())
    assert decision.splits == alone.splits
    assert decision.verdicts[:-1] == alone.verdicts


def test_topic_detail_is_wanted_from_the_limit_of_a_partition_on() -> None:
    assert ADVISER.thresholds.throughput == 20 * MB
    assert ADVISER.thresholds[:3] == BundleSplitterTask().thresholds[:3]
    low = WithPartitionAdvice(policy=BundleSplitterTask(max_bandwidth_mbytes=5), large=LargePartition())
    assert low.thresholds.throughput == 5 * MB


def test_at_zero_there_is_no_advice() -> None:
    off = WithPartitionAdvice(policy=BundleSplitterTask(), large=LargePartition(max_mbytes=0))
    assert advice(with_topics(PLAIN, {"x": {7: 999}}), off) == []
    assert off.thresholds == BundleSplitterTask().thresholds


def test_a_view_without_any_detail_has_no_advice() -> None:
    assert len(PLAIN.bundles.detail.position) == 0
    assert advice(PLAIN) == []
