"""Which brokers serve the segments of scalable topics, and how uneven."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from controller.aggregate.scalable_topics import NO_CUT, ScalableTopics, may_serve, unevenness
from controller.model.load import ClusterView, TopicDetail
from controller.model.names import topic_hash
from controller.model.policies import BrokerAddresses, IsolationPolicy, Policies
from controller.model.segment_code import segment_code
from tests.cluster import MB
from tests.segments import segment, segmented


def halves(hot: float, cold: float = 0.0, *, apart: bool = False) -> ClusterView:
    """A topic of two segments with so many MB/s in, on one broker or *apart*."""
    brokers = {"a:8080": {segment("orders", 0, 0x7FFF): hot}, "b:8080": {}, "c:8080": {}}
    brokers["b:8080" if apart else "a:8080"][segment("orders", 0x8000, 0xFFFF, 1)] = cold
    return segmented(brokers)


@pytest.mark.parametrize(("apart", "factor", "serving"), [(False, 3.0, 1), (True, 1.5, 2)])
def test_a_topic_is_as_uneven_as_its_busiest_broker_over_the_mean_of_all_that_may_serve_it(
    apart: bool, factor: float, serving: int
) -> None:
    view = halves(5, 5, apart=apart)
    topics = ScalableTopics.of(view.bundles)
    assert len(topics) == 1
    assert topics.place.tolist() == [topic_hash("topic://tenant/ns/orders")]
    assert unevenness(topics, may_serve(view, topics)).tolist() == pytest.approx([factor])
    assert topics.peaks()[2].tolist() == [serving]


def test_brokers_that_an_isolation_policy_keeps_off_do_not_count() -> None:
    view = halves(5, 5, apart=True)
    policy = IsolationPolicy(namespaces=("tenant/ns",), primary=("a", "b"))
    view = replace(view, policies=Policies(isolation=(policy,)))
    topics = ScalableTopics.of(view.bundles)
    assert may_serve(view, topics).tolist() == [2]
    assert unevenness(topics, may_serve(view, topics)).tolist() == pytest.approx([1.0])


def test_segments_of_two_topics_are_told_apart_and_sorted_by_their_keys() -> None:
    view = segmented(
        {
            "a:8080": {segment("x", 0x8000, 0xFFFF, 2): 1, segment("y", 0, 0xFFFF): 4},
            "b:8080": {segment("x", 0, 0x7FFF, 1): 2},
        }
    )
    topics = ScalableTopics.of(view.bundles)
    by_place = {topic_hash(f"topic://tenant/ns/{name}"): name for name in "xy"}
    found = {
        by_place[place]: (topics.first[lo:hi].tolist(), (topics.traffic[lo:hi] / MB).tolist())
        for place, lo, hi in zip(topics.place.tolist(), topics.starts[:-1], topics.starts[1:], strict=True)
    }
    assert found == {"x": ([0, 0x8000], [2.0, 1.0]), "y": ([0], [4.0])}


@pytest.mark.parametrize(
    ("hot", "cold", "cut"),
    [
        (9, 1, 0x471C),  # 5 of 10 lie below 5/9 of the first half
        (1, 9, 0xB8E3),
        (3, 1, 0x5555),
        (2, 1, NO_CUT),  # even enough
        (0, 0, NO_CUT),
    ],
)
def test_a_cut_is_advised_where_the_middle_left_one_half_hot(hot: float, cold: float, cut: int) -> None:
    assert ScalableTopics.of(halves(hot, cold).bundles).advised_cuts().tolist() == ([cut] if hot + cold else [])


def test_no_cut_is_advised_within_one_key() -> None:
    view = segmented({"a:8080": {segment("x", 7, 7): 9, segment("x", 8, 8, 1): 0.1}})
    assert ScalableTopics.of(view.bundles).advised_cuts().tolist() == [NO_CUT]


@pytest.mark.parametrize("sealed", [(0, 0xFFFF), (0, 0x7FFF)], ids=["split in two", "renewed with the same keys"])
def test_a_sealed_segment_that_its_bundle_still_lists_is_no_part_of_its_topic(sealed: tuple[int, int]) -> None:
    """A bundle near a split lists all of its topics, also those without load."""
    view = halves(9, 1)
    detail = view.bundles.detail
    with_sealed = TopicDetail.of(
        np.array([1, 2]),
        np.append(detail.position, 7),
        np.vstack([detail.load, np.zeros(4)]),
        np.append(detail.segment, segment_code(segment("orders", *sealed, 5))),
    )
    topics = ScalableTopics.of(replace(view.bundles, detail=with_sealed))
    assert (topics.first.tolist(), topics.last.tolist()) == ([0, 0x8000], [0x7FFF, 0xFFFF])
    assert topics.advised_cuts().tolist() == [0x471C]


def test_brokers_are_matched_once_for_each_policy_and_not_for_each_namespace() -> None:
    names = [f"tenant/n{n:03d}" for n in range(300)]
    view = segmented({"a:8080": {}, "b:8080": {segment("t", 0, 0xFFFF, namespace=name): 1 for name in names}})
    bundles = replace(view.bundles, namespaces=tuple(names), namespace=np.arange(len(names)))
    policy = IsolationPolicy(namespaces=("tenant/n00.",), primary=("a",))
    view = replace(view, bundles=bundles, policies=Policies(isolation=(policy,)))
    topics = ScalableTopics.of(bundles)
    with mock.patch.object(BrokerAddresses, "of", wraps=BrokerAddresses.of) as matched:
        assert may_serve(view, topics).tolist() == [1] * len(names)
    assert matched.call_count == 1


def test_a_hundred_thousand_segments_of_one_topic_are_columns() -> None:
    n = 100_000
    detail = TopicDetail.of(np.array([n, 0]), np.zeros(n, np.int64), np.ones((n, 4)), np.arange(1, n + 1) << 32 >> 32)
    view = halves(1, 1, apart=True)
    topics = ScalableTopics.of(replace(view.bundles, detail=detail))
    assert int(np.diff(topics.starts).sum()) == n
    assert topics.advised_cuts().tolist() == [NO_CUT] * len(topics)
