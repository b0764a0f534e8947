"""The columns of a summary: what they say of a view, also of one that is too large for them."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from controller.aggregate import summarized
from controller.aggregate.summarized import ViewSummary, hottest_topics
from controller.model.load import ClusterView, TopicDetail
from controller.model.summary import NO_PLACE, decoded_rates
from tests.cluster import broker, broker_table, bundle_table, cluster_view, view

GB = 1e9


def of_bundles(*names: str, load: Any = None, owner: Any = None) -> ClusterView:
    """A view of two brokers with bundles *names*, sorted."""
    count = len(names)
    return cluster_view(
        broker_table(["a", "b"], usage=np.full((2, 5), 50.0), limit=np.full((2, 5), 100.0)),
        bundle_table(
            names,
            np.zeros(count, np.int64) if owner is None else np.array(owner),
            load=np.zeros((count, 4)) if load is None else np.array(load, np.float64),
        ),
    )


def cut(namespace: str, parts: int) -> list[str]:
    bounds = [each * (1 << 32) // parts for each in range(parts)] + [(1 << 32) - 1]
    return [f"{namespace}/0x{low:08x}_0x{high:08x}" for low, high in pairwise(bounds)]


def ranges_of(cluster: ClusterView) -> Any:
    summary = ViewSummary(cluster)
    summary.brokers()
    return summary.ranges()


def test_a_broker_is_told_with_its_usage_in_percent_and_its_clients() -> None:
    brokers = ViewSummary(view(broker("hot", usage=0.9, big=60), broker("cold", usage=0.1))).brokers()
    assert brokers.names == ("cold", "hot")
    assert brokers.usage[:, 0].tolist() == pytest.approx([10.0, 90.0])
    assert brokers.has_data.all()


def test_a_broker_without_data_is_listed_without_figures() -> None:
    cluster = view(broker("a", usage=0.9, big=60), broker("b", usage=0.1)).without_data({"a"})
    brokers = ViewSummary(cluster).brokers()
    assert (brokers.names, brokers.has_data.tolist()) == (("a", "b"), [False, True])
    assert np.isnan(brokers.usage[0]).all()


@pytest.mark.parametrize(
    ("usage", "limit"),
    [(np.nan, 100.0), (-1.0, 100.0), (50.0, 0.0), (50.0, -1.0), (0.0, -1.0), (np.inf, 1.0), (1e15, 1e-30)],
)
def test_a_usage_that_was_not_measured_or_is_absurd_is_no_number(usage: float, limit: float) -> None:
    cluster = cluster_view(
        broker_table(["a"], usage=np.full((1, 5), usage), limit=np.full((1, 5), limit)),
        bundle_table((), np.zeros(0, np.int64)),
    )
    assert np.isnan(ViewSummary(cluster).brokers().usage).all()


def test_every_bundle_has_a_range_of_its_own_while_there_is_room() -> None:
    names = sorted([*cut("t/a", 4), *cut("t/b", 2)])
    ranges = ranges_of(of_bundles(*names, load=[[each] * 4 for each in range(6)], owner=[0, 1, 0, 1, 0, 1]))
    assert ranges.namespaces == ("t/a", "t/b")
    assert ranges.namespace.tolist() == [0, 0, 0, 0, 1, 1]
    assert ranges.lower.tolist() == [0, 1 << 30, 2 << 30, 3 << 30, 0, 1 << 31]
    assert ranges.owner.tolist() == [0, 1, 0, 1, 0, 1]
    assert decoded_rates()[ranges.rate].tolist() == pytest.approx([0, 2, 4, 6, 8, 10], rel=0.13)


def test_neighbours_are_folded_to_the_busiest_of_them_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarized, "MOST_RANGES", 8)
    names = cut("t/a", 16)
    load = np.zeros((16, 4))
    load[5] = GB
    ranges = ranges_of(of_bundles(*names, load=load, owner=[int(each == 5) for each in range(16)]))
    assert len(ranges.lower) == 8
    assert ranges.bundles.tolist() == [2] * 8
    assert ranges.owner.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert int(np.argmax(ranges.throughput)) == 2
    assert (int(ranges.lower[2]), int(ranges.upper[2])) == (4 << 28, 6 << 28)


def test_a_split_changes_no_other_folded_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarized, "MOST_RANGES", 8)
    before = ranges_of(of_bundles(*cut("t/a", 16)))
    names = cut("t/a", 16)
    names[:1] = ["t/a/0x00000000_0x08000000", "t/a/0x08000000_0x10000000"]
    after = ranges_of(of_bundles(*names))
    assert after.lower.tolist() == before.lower.tolist()
    assert after.bundles.tolist() == [3, *[2] * 7]


def test_namespaces_beyond_the_limit_are_one_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarized, "MOST_RANGES", 8)
    names = [f"t/ns-{each}/0x00000000_0xffffffff" for each in range(9)]
    load = np.array([[each] * 4 for each in range(9)]) * 1e6
    ranges = ranges_of(of_bundles(*names, load=load))
    assert ranges.namespaces == ("t/ns-6", "t/ns-7", "t/ns-8", "")
    assert ranges.bundles.tolist() == [1, 1, 1, 6]


def test_a_cluster_without_bundles_has_no_ranges() -> None:
    assert len(ranges_of(of_bundles()).lower) == 0


def test_named_bundles_come_before_the_busiest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarized, "MOST_BUNDLES", 3)
    names = cut("t/a", 16)
    load = np.array([[each] * 4 for each in range(16)], np.float64)
    summary = ViewSummary(of_bundles(*names, load=load))
    summary.brokers()
    bundles = summary.bundles({names[0], "t/gone/0x00000000_0xffffffff"})
    assert set(bundles.names) == {names[0], names[15], names[14]}


def topics_of(*bundles: list[tuple[int, float, float]]) -> TopicDetail:
    """The topics of *bundles*: place, msg/s and bytes/s, all of it in."""
    topics = [topic for bundle in bundles for topic in bundle]
    return TopicDetail.of(
        np.array([len(bundle) for bundle in bundles], np.int64),
        np.array([place for place, _, _ in topics], np.int64),
        np.array([[rate, 0.0, throughput, 0.0] for _, rate, throughput in topics]).reshape(-1, 4),
    )


def test_the_hottest_topics_have_the_largest_shares_of_messages_or_bytes() -> None:
    place, load = hottest_topics(topics_of([(5, 1, 1), (7, 60, 20), (9, 39, 79)], [], [(3, 2, 2)]))
    assert place.tolist() == [[9, 7], [NO_PLACE, NO_PLACE], [3, NO_PLACE]]
    assert load[0].tolist() == [[39, 79], [60, 20]]
    assert load[2].tolist() == [[2, 2], [0, 0]]


def test_topics_at_one_place_count_as_one() -> None:
    place, load = hottest_topics(topics_of([(8, 30, 0), (5, 40, 0), (8, 30, 0)]))
    assert (place.tolist(), load[0, :, 0].tolist()) == ([[8, 5]], [60, 40])


def test_of_equal_shares_the_lower_place_is_first_whatever_their_order() -> None:
    one, _ = hottest_topics(topics_of([(9, 1, 1), (4, 1, 1), (0xFFFFFFFF, 1, 1)]))
    other, _ = hottest_topics(topics_of([(0xFFFFFFFF, 1, 1), (9, 1, 1), (4, 1, 1)]))
    assert one.tolist() == other.tolist() == [[4, 9]]


def test_topics_without_load_are_not_hot() -> None:
    place, _ = hottest_topics(topics_of([(4, 0, 0), (5, 0, 0)], [(6, 0, 0), (7, 0, 3)]))
    assert place.tolist() == [[NO_PLACE, NO_PLACE], [7, NO_PLACE]]


@pytest.mark.parametrize(
    ("other", "hot"),
    [
        ((0, 0), [7, 9]),
        ((50, 20), [7, NO_PLACE]),  # one of the others may be hotter than the second
        ((61, 61), [NO_PLACE, NO_PLACE]),
        ((0, 80), [NO_PLACE, NO_PLACE]),  # in bytes alone
    ],
)
def test_no_topic_is_called_hot_where_one_that_is_not_known_may_be_hotter(
    other: tuple[float, float], hot: list[int]
) -> None:
    place, _ = hottest_topics(topics_of([(7, 60, 20), (9, 39, 20)]), np.array([other], np.float64))
    assert place.tolist() == [hot]


def test_a_segment_is_not_the_hottest_of_a_bundle_for_being_the_only_one_that_is_known() -> None:
    """Of a bundle that is far from a split its segments alone come one by one."""
    cluster = of_bundles(*cut("a/b", 1), load=[[100, 0, 1000, 0]])
    table = replace(cluster.bundles, detail=topics_of([(7, 10, 100)]), topics=np.array([2]))
    summary = ViewSummary(replace(cluster, bundles=table))
    summary.brokers()
    assert summary.bundles(set()).hot_place.tolist() == [[NO_PLACE] * 2]
    summary = ViewSummary(replace(cluster, bundles=replace(table, topics=np.array([1]))))
    summary.brokers()
    assert summary.bundles(set()).hot_place.tolist() == [[7, NO_PLACE]]


def test_a_bundle_whose_topics_are_not_known_has_no_hot_topics() -> None:
    summary = ViewSummary(of_bundles(*cut("acme/test", 4)))
    summary.brokers()
    assert (summary.bundles(set()).hot_place == NO_PLACE).all()
