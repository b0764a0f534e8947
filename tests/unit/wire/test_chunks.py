"""How a sweep is cut into chunks: sizes to the byte."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.chunks import (
    MAX_CHUNK_BYTES,
    SESSIONS,
    SweptBroker,
    arrow_chunks,
    bundle_of_topic,
    json_chunks,
    sweep_header,
)
from controller.wire.metrics import decode_metric
from controller.wire.sweep import ArrowSweep
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T

#: Lies between the other two, and has no topics.
MIDDLE = "tenant/ns/0x80000000_0x90000000"


def swept(bundles: dict[str, int], *, name: int = 28) -> SweptBroker:
    """A broker with *bundles*, each with so many topics whose names have *name* letters."""
    n, sizes = sum(bundles.values()), list(bundles.values())
    header = sweep_header(
        cluster=CLUSTER, broker="b:1", interval=T, sweep_id="s", last_update=T, usage=[(1, 100)] * 5,
        rates=(1, 2, 3, 4), bundles=len(bundles), topics=n, producers=5, consumers=6,
    )  # fmt: skip
    return SweptBroker(
        header=header,
        bundles=list(bundles),
        total_load=np.arange(4 * len(bundles), dtype=np.float64).reshape(-1, 4) + 0.5,
        total_counts=np.arange(3 * len(bundles)).reshape(-1, 3),
        starts=np.cumsum([0, *sizes]),
        topics=[f"{i:0{name}d}" for i in range(n)],
        load=np.arange(4 * n, dtype=np.float64).reshape(-1, 4) + 0.25,
        counts=np.arange(2 * n).reshape(-1, 2),
    )


def as_json(sweep: SweptBroker, **limits: int) -> list[dict[str, Any]]:
    values = list(json_chunks(sweep, **limits))
    assert {key for key, _ in values} == {"b:1"}
    return [json.loads(value) for _, value in values]


def listed(sweep: SweptBroker, max_bytes: int) -> list[list[tuple[str, int]]]:
    """Of each chunk its bundles, and how many topics they have in it."""
    chunks = as_json(sweep, max_bytes=max_bytes)
    assert [(each["chunk"], each["chunks"]) for each in chunks] == [(i, len(chunks)) for i in range(len(chunks))]
    return [[(stats["bundle"], len(stats["topic"])) for stats in each["bundleStats"]] for each in chunks]


def arrow_rows(sweep: SweptBroker, room: int) -> list[ArrowSweep]:
    """The Arrow chunks where rows may take *room* bytes."""
    frame = len(sweep.header.model_dump_json(by_alias=True)) + 2 * 6 + 8192
    chunks = [
        decode_metric(value, cluster=CLUSTER, period_ms=PERIOD)
        for _, value in arrow_chunks(sweep, max_bytes=frame + room)
    ]
    assert [(each.chunk, each.chunks) for each in chunks] == [  # type: ignore[union-attr]
        (i, len(chunks)) for i in range(len(chunks))
    ]
    return chunks  # type: ignore[return-value]


def test_a_chunk_is_smaller_than_kafkas_default_message() -> None:
    assert MAX_CHUNK_BYTES == 900_000


def test_a_bundle_is_written_with_its_totals_and_its_topics_columns() -> None:
    [chunk] = as_json(swept({LEFT: 1, RIGHT: 2}))
    assert chunk["bundleStats"] == [
        {
            "bundle": LEFT,
            "totals": dict(zip((*RATES, *SESSIONS), (0.5, 1.5, 2.5, 3.5, 0, 1, 2), strict=True)),
            **dict(zip((*RATES, *COUNTS), ([0.25], [1.25], [2.25], [3.25], [0], [1]), strict=True)),
            "topic": [f"{0:028d}"],
        },
        {
            "bundle": RIGHT,
            "totals": dict(zip((*RATES, *SESSIONS), (4.5, 5.5, 6.5, 7.5, 3, 4, 5), strict=True)),
            "msgRateIn": [4.25, 8.25],
            "msgRateOut": [5.25, 9.25],
            "msgThroughputIn": [6.25, 10.25],
            "msgThroughputOut": [7.25, 11.25],
            "producerCount": [2, 4],
            "consumerCount": [3, 5],
            "topic": [f"{1:028d}", f"{2:028d}"],
        },
    ]
    assert (chunk["chunk"], chunk["chunks"], chunk["numBundles"], chunk["numTopics"]) == (0, 1, 2, 3)


def text_sizes(sweep: SweptBroker) -> list[int]:
    """How long each bundle is as JSON."""
    [chunk] = as_json(sweep)
    return [len(json.dumps(stats, separators=(",", ":"))) for stats in chunk["bundleStats"]]


def json_frame(sweep: SweptBroker) -> int:
    """A chunk without its bundles, where its two numbers have seven digits."""
    return len(sweep.header.model_dump_json(by_alias=True)) + 2 * 6 + len(',"bundleStats":[') + 1


def test_bundles_share_a_chunk_while_they_fit_with_room_for_numbers_of_seven_digits() -> None:
    sweep = swept({LEFT: 1, MIDDLE: 1, RIGHT: 1, "tenant/zz/0x00000000_0xffffffff": 1})
    names = [(name, 1) for name in sweep.bundles]
    sizes, frame = text_sizes(sweep), json_frame(sweep)
    # A comma stands behind each bundle.
    all_four = frame + sum(sizes) + 4
    assert listed(sweep, all_four) == [names]
    assert listed(sweep, all_four - 1) == [names[:3], names[3:]]
    last_two = frame + sum(sizes[2:]) + 2
    assert sum(sizes[:2]) < sum(sizes[2:])
    assert listed(sweep, last_two) == [names[:2], names[2:]]
    assert listed(sweep, last_two - 1) == [names[:2], names[2:3], names[3:]]


def test_a_bundle_too_large_for_a_chunk_is_halved_until_it_fits_each_part_in_a_chunk_of_its_own() -> None:
    sweep = swept({LEFT: 8, RIGHT: 1})
    frame, [eight] = json_frame(sweep), text_sizes(swept({LEFT: 8}))
    assert listed(sweep, frame + eight) == [[(LEFT, 8)], [(RIGHT, 1)]]
    assert listed(sweep, frame + eight - 1) == [[(LEFT, 4)], [(LEFT, 4)], [(RIGHT, 1)]]
    assert [part for [part] in listed(sweep, frame + 1)] == [(LEFT, 1)] * 8 + [(RIGHT, 1)]
    [seven] = text_sizes(swept({LEFT: 7}))
    assert listed(swept({LEFT: 7}), frame + seven - 1) == [[(LEFT, 3)], [(LEFT, 4)]]


def test_no_chunk_names_a_bundle_twice_where_small_parts_of_it_would_share_one() -> None:
    sweep = swept({LEFT: 8})
    sweep = replace(sweep, topics=["a", "b", "c", "d", "e", "f", "g" * 2000, "h" * 2000])
    chunks = listed(sweep, json_frame(sweep) + 3000)
    assert chunks == [[(LEFT, 4)], [(LEFT, 2)], [(LEFT, 1)], [(LEFT, 1)]]


def test_the_topics_of_a_divided_bundle_come_once_and_in_their_order() -> None:
    sweep = swept({LEFT: 5})
    chunks = as_json(sweep, max_bytes=1)
    assert [topic for chunk in chunks for topic in chunk["bundleStats"][0]["topic"]] == sweep.topics
    assert [rate for chunk in chunks for rate in chunk["bundleStats"][0]["msgRateOut"]] == sweep.load[:, 1].tolist()


def test_arrow_rows_take_72_bytes_and_their_name_and_a_bundle_its_name_and_4() -> None:
    # 35 bytes for the name of the first bundle, then 100 for a topic.
    sweep = swept({LEFT: 30})
    assert len(LEFT) == 31
    assert [each.batch.num_rows for each in arrow_rows(sweep, 936)] == [9, 9, 9, 3]
    # What ends with the room begins the next chunk.
    assert [each.batch.num_rows for each in arrow_rows(sweep, 935)] == [8, 10, 9, 3]
    assert [each.batch.num_rows for each in arrow_rows(sweep, 100)] == [1] * 30, "a chunk has a row at least"
    assert [each.batch.num_rows for each in arrow_rows(swept({LEFT: 30}, name=128), 2036)] == [10, 10, 10]
    assert [each.batch.num_rows for each in arrow_rows(swept({LEFT: 30}, name=128), 2035)] == [9, 11, 10]


def test_an_arrow_chunk_names_the_bundles_of_its_topics_and_those_between() -> None:
    sweep = swept({LEFT: 3, MIDDLE: 0, RIGHT: 3, "tenant/z/0x00000000_0xffffffff": 0})
    # 135, 235, 335, then 505 with the two names, 605, 705.
    first, second = arrow_rows(sweep, 506)
    assert (first.bundles, second.bundles) == ([LEFT, MIDDLE, RIGHT], [RIGHT, "tenant/z/0x00000000_0xffffffff"])
    assert first.batch.column("bundle").to_pylist() == [LEFT] * 3 + [RIGHT]
    assert second.batch.column("bundle").to_pylist() == [RIGHT] * 2
    first, second = arrow_rows(sweep, 505)
    assert (first.bundles, second.bundles) == ([LEFT], [RIGHT, "tenant/z/0x00000000_0xffffffff"])
    assert [each.batch.column("topic").to_pylist() for each in (first, second)] == [sweep.topics[:3], sweep.topics[3:]]
    assert second.batch.column("msgRateIn").to_pylist() == sweep.load[3:, 0].tolist()
    assert second.batch.column("consumerCount").to_pylist() == sweep.counts[3:, 1].tolist()


@pytest.mark.parametrize("bundles", [{}, {LEFT: 0, RIGHT: 0}])
def test_a_broker_without_topics_has_one_arrow_chunk_with_all_its_bundles(bundles: dict[str, int]) -> None:
    [chunk] = arrow_rows(swept(bundles), 1_000)
    assert (chunk.bundles, chunk.batch.num_rows) == (list(bundles), 0)


def test_each_topic_has_the_row_of_its_bundle() -> None:
    assert bundle_of_topic(np.array([0, 2, 2, 5])).tolist() == [0, 0, 2, 2, 2]


def test_a_header_is_the_first_chunk_of_one() -> None:
    header = swept({LEFT: 2}).header
    assert (header.chunk, header.chunks) == (0, 1)
    assert (header.num_bundles, header.num_topics, header.num_producers, header.num_consumers) == (1, 2, 5, 6)
    assert (header.msg_rate_in, header.msg_rate_out) == (1, 2)
    assert (header.msg_throughput_in, header.msg_throughput_out) == (3, 4)
    assert (header.cpu.usage, header.bandwidth_out.limit) == (1, 100)
