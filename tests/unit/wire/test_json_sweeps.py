"""Sweeps as columns: the rows are those of decoded records, bit for bit; what is unusual is left to the decoder."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from controller.aggregate.columns.rows import METRICS, Rows
from controller.aggregate.shard.fold import DetailLimits
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records
from controller.wire import json_sweeps
from controller.wire.json_sweeps import JsonSweeps, RecordText, joined_rows
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_records
from controller.wire.split_json import split
from controller.wire.sweep_shape import shape_of
from tests.records import CLUSTER, PERIOD, T, broker_sweep, bundle_stats

DETAIL = DetailLimits(topics=8, sessions=1e9, msg_rate=1e4, throughput=1e18)
_ARRAYS = (
    "kind",
    "source",
    "partition",
    "offset",
    "interval",
    "chunk",
    "chunks",
    "last_update",
    "stats",
    "detail_size",
)


def sweeps() -> JsonSweeps:
    return JsonSweeps(cluster=CLUSTER, period_ms=PERIOD, max_bytes=1 << 20, detail=DETAIL)


def text(value: bytes, offset: int = 0, *, at: int | None = None) -> RecordText:
    return RecordText(METRICS, 2, offset, at, value)


def decoded(texts: list[RecordText]) -> Rows:
    located = [
        Located(
            source=each.source,
            partition=each.partition,
            offset=each.offset,
            record=decode_metric(
                each.whole, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=each.append_time_ms, max_bytes=1 << 20
            ),
        )
        for each in texts
    ]
    return rows_from_records(located, DETAIL)


def same(left: Rows, right: Rows) -> bool:
    """Whether both have the same rows, in whatever order."""
    orders = [np.lexsort((np.array(rows.bundle.tolist()), rows.kind, rows.offset)) for rows in (left, right)]
    pairs = list(zip((left, right), orders, strict=True))
    arrays = all(len({getattr(rows, name)[order].tobytes() for rows, order in pairs}) == 1 for name in _ARRAYS)
    names = all(
        len({tuple(getattr(rows, name).take(order).tolist()) for rows, order in pairs}) == 1
        for name in ("broker", "sweep", "bundle")
    )
    return arrays and names and said(left, orders[0]) == said(right, orders[1])


def said(rows: Rows, order: Any) -> list[object]:
    """What brokers say of themselves, and the topics of detail, in *order*."""
    starts = np.cumsum(rows.detail_size) - rows.detail_size
    return [
        (
            rows.numbers[i].tobytes() if i in rows.numbers else b"",
            rows.detail_position[starts[i] : starts[i] + rows.detail_size[i]].tobytes(),
            rows.detail_load[starts[i] : starts[i] + rows.detail_size[i]].tobytes(),
            rows.detail_segment[starts[i] : starts[i] + rows.detail_size[i]].tobytes(),
        )
        for i in order.tolist()
    ]


def of_cluster(intervals: int = 3) -> list[RecordText]:
    cluster = ModelledCluster(ClusterShape(bundles=24, topics=200), seed=1, name=CLUSTER)
    found: list[bytes] = []
    for number in range(intervals):
        cluster.advance()
        for sweep in cluster.sweeps(T + number * PERIOD):
            found += [value for _, value in json_records(sweep, max_bytes=4_000)]
    return [text(value, offset) for offset, value in enumerate(found)]


def test_the_sweeps_of_a_cluster_have_the_rows_of_decoded_ones() -> None:
    texts, reader = of_cluster(), sweeps()
    parts = [reader.rows(texts[start : start + 11]) for start in range(0, len(texts), 11)]
    assert not [other for _, others in parts for other in others]
    assert same(joined_rows([rows for rows, _ in parts]), decoded(texts))
    assert decoded(texts).detail_size.sum() > 0


def test_a_sweep_is_taken_if_it_fits_with_42_bytes_for_each_number() -> None:
    value = compact(broker_sweep(bundleStats=[bundle_stats(topics=1)])).encode()
    parts = split(value)
    assert parts is not None
    fits = len(parts.text) + 42 * len(parts.digits)
    for max_bytes, taken in ((fits, 1), (fits - 1, 0)):
        reader = JsonSweeps(cluster=CLUSTER, period_ms=PERIOD, max_bytes=max_bytes, detail=DETAIL)
        assert len(reader.rows([text(value)])[1]) == 1 - taken, max_bytes


def test_no_sweeps_at_all() -> None:
    rows, others = sweeps().rows([])
    assert (len(rows), others) == (0, [])


def changed(path: str, value: Any) -> dict[str, Any]:
    sweep = broker_sweep(bundleStats=[bundle_stats(topics=1)])
    *way, last = path.split(".")
    place: Any = sweep
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last if isinstance(place, dict) else int(last)] = value
    return sweep


PLACES = ["v", "cluster", "type", "broker", "interval", "sweepId", "chunk", "chunks", "lastUpdate", "cpu.usage",
          "memory.limit", "msgRateIn", "numTopics", "bundleStats", "bundleStats.0.bundle", "bundleStats.0.topic",
          "bundleStats.0.totals.msgRateIn", "bundleStats.0.totals.topics", "bundleStats.0.msgRateOut",
          "bundleStats.0.msgRateOut.0", "bundleStats.0.producerCount.0", "bundleStats.0.consumerCount.0",
          "bundleStats.0.topic.0", "unknown"]  # fmt: skip
VALUES: list[Any] = [
    *(0, 1, 2, 7, -1, 0.5, 1.0, 1e13, 1e300, 10**12, 10**12 + 1, 2**63 - 1, 2**63, 10**30, 123456789.123456789),
    *(None, True, "", "x", "\u2028", "a\\b", ",5,", "x" * 2000, [], [1], [1, 2], {}, T + PERIOD, T + 1),
]


@pytest.mark.parametrize("place", PLACES)
def test_with_anything_in_a_field_the_rows_are_the_decoders_or_it_is_left_to_it(
    place: str,
) -> None:
    reader = sweeps()
    reader.rows([text(json.dumps(broker_sweep(bundleStats=[bundle_stats(topics=1)])).encode())])
    for value in VALUES:
        for write in (compact, json.dumps):
            one = text(write(changed(place, value)).encode())
            rows, others = reader.rows([one])
            assert others == [one] or same(rows, decoded([one])), (place, value)


def compact(thing: Any) -> str:
    return json.dumps(thing, separators=(",", ":"))


def test_the_usual_sweep_is_not_left_to_the_decoder() -> None:
    assert not sweeps().rows([text(compact(broker_sweep()).encode())])[1]


@pytest.mark.parametrize("at", [T - PERIOD - 1, T - PERIOD, T - 30_001, T - 30_000, T - 1, T, T + PERIOD])
def test_times_ahead_of_the_append_time(at: int) -> None:
    one = text(compact(broker_sweep(lastUpdate=T + 30_000)).encode(), at=at)
    rows, others = sweeps().rows([one])
    assert others == [one] if at < T - PERIOD else same(rows, decoded([one]))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value.replace(b'"chunk":0', b'"chunk":0,"chunk":5'),
        lambda value: value.replace(b"10.5", b"1" * 2000),
        lambda value: value.replace(b"10.5", b"-0.0"),
        lambda value: value.replace(b"10.5", b"NaN"),
        lambda value: value.replace(b"10.5", b"1.05e1"),
        lambda value: value + b" ",
        lambda value: value + value,
        lambda value: value[:-1],
        lambda value: value.replace(b"topic-0", b"topic-\xff"),
        lambda value: value.replace(b"topic-0", b"topic,5,"),
        lambda value: value.replace(b"topic-0", b"topic\x00"),
        lambda value: value.replace(b'"sweepId":"', b'"sweepId":"\xff'),
        lambda value: value.replace(b'"broker"', b'"x":"\\"sweepId\\":\\"", "broker"'),
        lambda value: b'{"sweepId":"1","v":1,' + value[7:],
    ],
)
def test_spoilt_bytes(spoil: Callable[[bytes], bytes]) -> None:
    one = text(spoil(compact(broker_sweep()).encode()))
    rows, others = sweeps().rows([one])
    assert others == [one] or same(rows, decoded([one]))


def test_two_sweeps_of_one_text_and_another_id() -> None:
    texts = [text(compact(broker_sweep(sweepId=f"s{i}", interval=T + i * PERIOD)).encode(), i) for i in range(3)]
    rows, others = sweeps().rows(texts)
    assert not others
    assert same(rows, decoded(texts))


def test_it_remembers_no_more_shapes_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[bytes]()

    def counted(whole: bytes, cluster: str) -> Any:
        made.append(whole)
        return shape_of(whole, cluster)

    monkeypatch.setattr(json_sweeps, "shape_of", counted)
    monkeypatch.setattr(json_sweeps, "_MOST_SHAPES", 2)
    reader = sweeps()
    for broker in ("b:1", "b:2", "b:1", "b:3", "b:1", "b:2"):
        reader.rows([text(json.dumps(broker_sweep(broker), separators=(",", ":")).encode())])
    # The third took the place of b:2, which had been seen least lately.
    assert len(made) == 4


def test_a_single_quantity_of_a_broker_that_is_too_large_is_left_to_the_decoder() -> None:
    for resource in ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"):
        for part in ("usage", "limit"):
            one = {**broker_sweep(), resource: {"usage": 25.0, "limit": 100.0, part: 2e15}}
            assert len(sweeps().rows([text(compact(one).encode())])[1]) == 1, (resource, part)


def test_topics_are_kept_one_by_one_from_each_of_the_limits_on() -> None:
    totals = {
        "msgRateIn": 10.0, "msgRateOut": 20.0, "msgThroughputIn": 1000.0, "msgThroughputOut": 500.0,
        "producerCount": 5, "consumerCount": 7, "topics": 2,
    }  # fmt: skip
    reached = {"topics": 2, "sessions": 12, "msg_rate": 30.0, "throughput": 1500.0}
    one = text(compact(broker_sweep(bundleStats=[bundle_stats(totals=totals)])).encode())
    for name, limit in reached.items():
        for at, kept in ((limit, 2), (limit + 1, 0)):
            limits = DetailLimits(**{**dict.fromkeys(reached, 1e9), name: at})
            reader = JsonSweeps(cluster=CLUSTER, period_ms=PERIOD, max_bytes=1 << 20, detail=limits)
            assert reader.rows([one])[0].detail_size.sum() == kept, (name, at)


def test_a_bundle_that_lists_no_topics_has_its_totals() -> None:
    bundles = [bundle_stats(topics=1), bundle_stats("tenant/ns/0x80000000_0xffffffff", 0)]
    one = text(compact(broker_sweep(numBundles=2, bundleStats=bundles)).encode())
    rows, others = sweeps().rows([one])
    assert not others
    assert same(rows, decoded([one]))
    assert rows.stats[-1, 4:].tolist() == [1, 2, 0]
    assert (rows.stats[-1, :4] > 0).all()
