"""A scalable topic in the modelled cluster: brokers split and merge its segments, and records follow."""

from typing import Any

import numpy as np
import pytest

from controller.model.load import Floats
from controller.model.segment_code import key_ranges_of
from controller.settings.scenario_parts import ModelledNamespace, TurnNumber
from controller.simulator.segments import ModelledTopic
from controller.strategies.common.auto_scale import AutoScale
from tests.scenarios import scenario, world

MINUTE_MS = 60_000


def messages(*rates: float) -> Floats:
    """(parts, 4) so many msg/s in, and nothing else."""
    load = np.zeros((len(rates), 4))
    load[:, 0] = rates
    return load


def topic(segments: int = 1, **options: Any) -> ModelledTopic:
    """A topic of eight parts."""
    scale = AutoScale(split_msg_rate_in=100, merge_msg_rate_in=10, **options)
    return ModelledTopic("t/n/topic", 8, segments, scale)


def ranges(of: ModelledTopic) -> list[str]:
    return [name.removeprefix("segment://t/n/topic/") for name in dict.fromkeys(of.names())]


def test_the_hottest_segment_is_split_in_the_middle_and_once_a_minute() -> None:
    one = topic(2)
    load = messages(30, 30, 30, 30, 90, 90, 1, 1)
    assert one.scale_to(load, 0)
    assert ranges(one) == ["0000-7fff-0", "8000-bfff-2", "c000-ffff-3"]
    assert not one.scale_to(load, MINUTE_MS - 1)
    assert one.scale_to(load, MINUTE_MS)
    assert ranges(one) == ["0000-7fff-0", "8000-9fff-4", "a000-bfff-5", "c000-ffff-3"]


def test_two_neighbours_are_merged_once_they_were_idle_for_a_while() -> None:
    one = topic(4)
    idle, busy = messages(*[20] * 4, 1, 1, 1, 1), messages(*[20] * 8)
    for minute, load in enumerate((idle, idle, busy, idle, idle, idle, idle, idle)):
        assert not one.scale_to(load, minute * MINUTE_MS)
    assert one.scale_to(idle, 8 * MINUTE_MS)
    assert ranges(one) == ["0000-3fff-0", "4000-7fff-1", "8000-ffff-4"]


@pytest.mark.parametrize(("options", "load"), [({"max_segments": 1}, 50), ({"enabled": False}, 50), ({}, 12)])
def test_nothing_is_split_beyond_the_most_segments_or_where_brokers_are_not_to(
    options: dict[str, Any], load: float
) -> None:
    one = topic(**options)
    assert not one.scale_to(messages(*[load] * 8), 0)
    assert ranges(one) == ["0000-ffff-0"]


def test_one_busy_part_is_as_fine_as_it_gets() -> None:
    one = topic(split_cooldown_seconds=0)
    load = messages(0, 500, 0, 0, 0, 0, 0, 0)
    for minute in range(5):
        one.scale_to(load, minute * MINUTE_MS)
    assert [name.rpartition("-")[0] for name in ranges(one)] == ["0000-1fff", "2000-3fff", "4000-7fff", "8000-ffff"]


def test_snapshots_have_each_segment_once_with_the_load_of_its_keys_in_the_bundle_of_its_name() -> None:
    of = scenario(
        namespaces=[
            {"name": "acme/clicks", "bundles": 8, "topics": 16, "segments": 2, "zipf": 1, "share": 4},
            {"name": "acme/logs", "bundles": 4, "topics": 40},
        ],
        load={"msg_rate": 60_000},
    )
    cluster = world(of)
    for turn in range(4):
        snapshot, _ = cluster.live(TurnNumber(turn))
        segments = snapshot.detail_segment != 0
        first, last = key_ranges_of(np.sort(snapshot.detail_segment[segments]))
        assert first.tolist() == [0, *(last[:-1] + 1).tolist()]
        assert last[-1] == 0xFFFF
        of_topic = snapshot.load[[name.startswith("acme/clicks/") for name in snapshot.names]].sum(axis=0)
        assert snapshot.detail_load[segments].sum(axis=0) == pytest.approx(of_topic, rel=1e-3)
        assert snapshot.topics.sum() == 40 + len(first)
    assert len(first) > 2, "splits have happened"
    assert cluster.topic_unevenness() >= 1.0


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"topics": 12, "segments": 4}, "topics = 12"),
        ({"topics": 8, "segments": 3}, "segments = 3"),
        ({"topics": 4, "segments": 8}, "up to 4"),
        ({"topics": 1 << 17, "segments": 2}, "up to 65536"),
        ({"topics": 8, "segments": 2, "partitions": 4}, "no partitions"),
    ],
)
def test_a_scenario_that_cannot_divide_the_keys_says_what_is_allowed(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ModelledNamespace(name="acme/x", bundles=4, **changed)
