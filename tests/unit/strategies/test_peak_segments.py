"""PeakShedder keeps segments of one scalable topic apart, and leaves those alone that brokers split or merge next."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.aggregate.scalable_topics import ScalableTopics, may_serve, unevenness
from controller.model.decision import Unload
from controller.model.load import ClusterView
from controller.model.names import topic_hash
from controller.model.policies import IsolationPolicy, Policies
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.shedding.peak_shedder import PeakShedder
from tests.segments import segment, segmented

MINUTE_MS = 60_000
#: A topic counts where its busiest broker has 10 % of a broker's mean traffic above an even spread.
APART: dict[str, Any] = {"segment_percent": 10.0}


def quarters(*loads: float, topic: str = "orders", start: int = 0) -> dict[str, float]:
    """Four segments of equal width with so many MB/s in."""
    return {segment(topic, n << 14, (n + 1 << 14) - 1, n): load for n, load in enumerate(loads, start) if load}


def unloads(view: ClusterView, **options: Any) -> tuple[Unload, ...]:
    """What is unloaded in the first round in which anything is, of ten."""
    shedder = PeakShedder(**options)
    memory = shedder.initial_memory()
    for turn in range(10):
        decision, memory = shedder.decide(replace(view, as_of_ms=view.as_of_ms + turn * MINUTE_MS), memory)
        if decision.unloads:
            return decision.unloads
    return ()


def crowded() -> ClusterView:
    """All of a topic on one broker, and as much of others on each of the other two."""
    others = {segment(name, 0, 0xFFFF): 2.0 for name in "uvwx"}
    more = {segment(name, 0, 0xFFFF): 2.0 for name in "abcd"}
    return segmented({"a:8080": quarters(2, 2, 2, 2), "b:8080": others, "c:8080": more})


def test_segments_are_kept_apart_only_where_the_option_is_on() -> None:
    assert unloads(crowded()) == ()
    moved = unloads(crowded(), **APART)
    topic = set(crowded().bundles.names[:4])
    assert {each.source for each in moved if each.bundle in topic} == {"a:8080"}
    assert {each.destination for each in moved if each.bundle in topic} <= {"b:8080", "c:8080"}
    assert len([each for each in moved if each.bundle in topic]) in (1, 2)


def test_a_topic_that_is_small_beside_what_brokers_carry_is_left_where_it_is() -> None:
    large = {f"x{n}": {segment(f"large{n}", 0, 0xFFFF): 100.0} for n in range(3)}
    view = segmented(
        {
            "a:8080": large["x0"] | quarters(0.5, 0.5, 0.5, 0.5),
            "b:8080": large["x1"] | {segment("o", 0, 0xFFFF): 2.0},
            "c:8080": large["x2"] | {segment("p", 0, 0xFFFF): 2.0},
        }
    )
    assert unloads(view, **APART) == ()


def test_one_large_segment_is_no_reason_to_move_what_no_move_spreads() -> None:
    view = segmented(
        {
            "a:8080": quarters(8),
            "b:8080": {segment("o", 0, 0xFFFF): 8.0},
            "c:8080": {segment("p", 0, 0xFFFF): 8.0},
        }
    )
    assert unloads(view, **APART) == ()


@pytest.mark.parametrize(
    ("scale", "moves"),
    [
        (AutoScale(split_msg_rate_in=1.9), False),  # each is above
        (AutoScale(split_msg_rate_in=1.9, max_segments=4), True),  # as many as there may be
        (AutoScale(split_msg_rate_in=1.9, enabled=False), True),
        (AutoScale(split_msg_rate_in=2.1), True),
    ],
)
def test_what_brokers_will_split_is_not_moved(scale: AutoScale, moves: bool) -> None:
    # Messages have 1 MB: so many MB/s are so many messages.
    scale = replace(scale, merge_msg_rate_in=0.0)
    topic = set(crowded().bundles.names[:4])
    assert any(each.bundle in topic for each in unloads(crowded(), auto_scale=scale, **APART)) == moves


def test_a_bundle_whose_segment_was_just_split_is_not_moved_for_the_load_that_it_had() -> None:
    view = segmented(
        {"a:8080": quarters(4, 4, 2, 2), "b:8080": quarters(2, topic="o"), "c:8080": quarters(2, topic="p")}
    )
    gone = view.bundles.load.copy()
    gone[:2] = 0.0  # the averages go on
    view = replace(view, bundles=replace(view.bundles, load=gone))
    sealed = set(view.bundles.names[:2])
    by_messages: dict[str, Any] = {"broker_msg_rate": 16.0, "cpu_weight": 0.0}
    assert sealed & {each.bundle for each in unloads(view, **by_messages)}
    assert not sealed & {each.bundle for each in unloads(view, **by_messages, **APART)}


def test_the_pair_that_brokers_merge_next_is_not_moved_and_the_others_are() -> None:
    others = {segment(name, 0, 0xFFFF): 2.0 for name in "uvwx"}
    more = {segment(name, 0, 0xFFFF): 2.0 for name in "abcd"}
    view = segmented({"a:8080": quarters(2, 2.5, 3, 0.5), "b:8080": others, "c:8080": more})
    merged = set(view.bundles.names[2:4])
    cold: dict[str, Any] = {
        "merge_msg_rate_in": 3.5,
        "merge_bytes_in": 1e7,
        "merge_msg_rate_out": 1.0,
        "merge_bytes_out": 1.0,
    }
    moved = unloads(view, auto_scale=AutoScale(**cold), **APART)
    assert moved
    assert not merged & {each.bundle for each in moved}


@pytest.mark.parametrize(
    ("said", "moves"),
    [
        ({"splitMsgRateInThreshold": 1.9, "mergeMsgRateInThreshold": 0.0}, False),
        ({"splitMsgRateInThreshold": 1.9, "mergeMsgRateInThreshold": 0.0, "enabled": False}, True),
        ({"splitMsgRateInThreshold": 1.9, "mergeMsgRateInThreshold": 0.0, "maxSegments": 4}, True),
        # Brokers refuse to split above what they would merge below, and do neither.
        ({"splitMsgRateInThreshold": 1.9}, True),
    ],
)
def test_the_policy_of_a_namespace_says_what_its_brokers_will_split(said: dict[str, Any], moves: bool) -> None:
    topic, quiet = set(crowded().bundles.names[:4]), AutoScale(merge_msg_rate_in=0.0)
    view = replace(crowded(), policies=Policies(auto_scale={"tenant/ns": said}))
    assert any(each.bundle in topic for each in unloads(crowded(), auto_scale=quiet, **APART))
    default = AutoScale(merge_msg_rate_in=0.0) if "mergeMsgRateInThreshold" in said else AutoScale()
    assert any(each.bundle in topic for each in unloads(view, auto_scale=default, **APART)) == moves


def test_the_policy_of_another_namespace_says_nothing_of_this_one() -> None:
    view = replace(crowded(), policies=Policies(auto_scale={"tenant/other": {"splitMsgRateInThreshold": 1.9}}))
    assert unloads(view, **APART) == unloads(crowded(), **APART)


def test_the_certificate_names_the_topic_where_it_is_the_scarcest() -> None:
    shedder = PeakShedder(**APART)
    memory = shedder.initial_memory()
    for turn in range(10):
        view = replace(crowded(), as_of_ms=crowded().as_of_ms + turn * MINUTE_MS)
        decision, memory = shedder.decide(view, memory)
        if decision.unloads:
            break
    assert any("scalable topic tenant/ns 0x" in verdict.detail for verdict in decision.verdicts)


def _rounds(view: ClusterView, rounds: int, **options: Any) -> tuple[ClusterView, list[Unload]]:
    """The view after so many rounds, each of whose unloads are carried out, and all unloads."""
    shedder = PeakShedder(**options)
    memory, moved = shedder.initial_memory(), list[Unload]()
    for _ in range(rounds):
        decision, memory = shedder.decide(view, memory)
        broker = view.bundles.broker.copy()
        for each in decision.unloads:
            broker[view.bundles.code_of[each.bundle]] = view.brokers.code_of[each.destination]
        moved += decision.unloads
        columns = [np.bincount(broker, column, len(view.brokers)).astype(np.float64) for column in view.bundles.load.T]
        view = replace(
            view,
            as_of_ms=view.as_of_ms + MINUTE_MS,
            brokers=replace(view.brokers, load=np.stack(columns, axis=1)),
            bundles=replace(view.bundles, broker=broker),
        )
    return view, moved


def test_a_topic_that_is_spread_stays_so_and_nothing_moves_back_and_forth() -> None:
    """As tikv/pd 3013, where one scheduler undid what another had spread."""
    after, moved = _rounds(crowded(), 30, **APART)
    topics = ScalableTopics.of(after.bundles)
    place = topic_hash("topic://tenant/ns/orders")
    assert unevenness(topics, may_serve(after, topics))[topics.place == place].tolist() == pytest.approx([1.5])
    names = [each.bundle for each in moved]
    assert len(names) == len(set(names)) <= 6


def test_a_topic_that_a_policy_keeps_on_some_brokers_is_spread_among_those() -> None:
    """As tikv/pd 8023, where a table was bound to a zone and was uneven in it."""
    others = {segment(name, 0, 0xFFFF): 2.0 for name in "uvwx"}
    more = {segment(name, 0, 0xFFFF, 1): 8.0 for name in "z"}
    view = segmented({"a:8080": quarters(2, 2, 2, 2), "b:8080": others, "c:8080": {}, "d:8080": {}} | {"e:8080": more})
    policy = IsolationPolicy(namespaces=("tenant/ns",), primary=("a", "b"))
    view = replace(view, policies=Policies(isolation=(policy,)))
    after, moved = _rounds(view, 10, filters=(IsolationPolicies(),), **APART)
    topics = ScalableTopics.of(after.bundles)
    own = topics.place == topic_hash("topic://tenant/ns/orders")
    assert moved
    assert {each.destination for each in moved} <= {"a:8080", "b:8080"}
    assert unevenness(topics, may_serve(after, topics))[own].tolist() == pytest.approx([1.0])
