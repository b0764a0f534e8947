"""Arrow sweeps as rows of the fold: those of the JSON form, bit for bit."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controller.aggregate.columns.rows import BUNDLE, METRICS, SWEEP, Rows
from controller.aggregate.shard.fold import DetailLimits
from controller.model.errors import WireError
from controller.model.names import topic_hash
from controller.model.segment_code import segment_code
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import arrow_records, json_records
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.base import validate
from controller.wire.json_sweeps import JsonSweeps, RecordText
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_records
from controller.wire.sweep import SweepHeader, encode_sweep_arrow
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, broker_sweep, bundle_stats
from tests.unit.wire.test_wire_arrow import header, respun, value

_NOW = 1_735_689_600_000
#: About half of the bundles reach one of these limits.
_LIMITS = DetailLimits(topics=9, sessions=1e9, msg_rate=1_200, throughput=1e12)
_NONE_NEAR = DetailLimits(topics=1e9, sessions=1e9, msg_rate=1e18, throughput=1e18)


def modelled() -> list[ModelledSweep]:
    return list(ModelledCluster(ClusterShape(brokers=3, bundles=24, topics=200), seed=3, name=CLUSTER).sweeps(_NOW))


def rows_of(values: list[bytes], limits: DetailLimits = _LIMITS) -> Rows:
    def located() -> Iterator[Located]:
        for offset, one in enumerate(values):
            record = decode_metric(one, cluster=CLUSTER, period_ms=PERIOD)
            yield Located(source=METRICS, partition=0, offset=offset, record=record)

    return rows_from_records(located(), limits)


@pytest.mark.parametrize("sweep", modelled(), ids=lambda sweep: sweep.broker)
def test_arrow_and_json_give_the_same_rows(sweep: ModelledSweep) -> None:
    of_json, of_arrow = (rows_of([one for _, one in form(sweep)]) for form in (json_records, arrow_records))
    assert len(of_arrow) == 1 + len(sweep.bundles)
    assert of_arrow.bundle.tolist() == of_json.bundle.tolist()
    assert of_arrow.broker.tolist() == of_json.broker.tolist()
    for name in ("kind", "interval", "chunk", "chunks", "last_update", "stats", "detail_size", "detail_position"):
        assert getattr(of_arrow, name).tolist() == getattr(of_json, name).tolist(), name
    assert of_arrow.detail_load.tolist() == of_json.detail_load.tolist()
    assert of_arrow.numbers[0].tolist() == of_json.numbers[0].tolist()


def test_a_bundle_without_topics_has_no_load_and_a_row() -> None:
    found = rows_of([value()])
    assert found.kind.tolist() == [SWEEP, BUNDLE, BUNDLE, BUNDLE]
    assert found.bundle.tolist() == ["", LEFT, RIGHT, "tenant/empty/0x00000000_0xffffffff"]
    assert found.stats[3].tolist() == [0.0] * 7
    assert found.stats[1].tolist() == [4250.0, 5250.0, 6250.0, 7250.0, 2.0, 3.0, 1.0]


def test_topics_in_any_order_add_up_to_their_own_bundle() -> None:
    (one,) = (one for _, one in arrow_records(modelled()[0]))
    with pa.ipc.open_stream(one) as reader:
        batch = reader.read_next_batch()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch.take(np.random.default_rng(1).permutation(batch.num_rows)))
    straight, turned = rows_of([one]), rows_of([sink.getvalue().to_pybytes()])
    assert turned.bundle.tolist() == straight.bundle.tolist()
    np.testing.assert_allclose(turned.stats, straight.stats, atol=1)
    assert turned.detail_size.tolist() == straight.detail_size.tolist()
    assert 0 < len(turned.detail_position) < batch.num_rows
    ends = np.cumsum(straight.detail_size)
    for lo, hi in zip(ends - straight.detail_size, ends, strict=True):
        assert sorted(turned.detail_position[lo:hi]) == sorted(straight.detail_position[lo:hi])


@pytest.mark.parametrize(
    ("fields", "kept"),
    [({}, []), ({"chunks": 2}, []), ({"chunk": 1, "chunks": 2}, [LEFT]), ({"chunk": 1, "chunks": 3}, [LEFT])],
)
def test_a_bundle_that_may_continue_in_another_chunk_keeps_its_topics(fields: dict[str, Any], kept: list[str]) -> None:
    """That is the first bundle of every chunk but the first, and the last of every chunk but the last."""
    found = rows_of([respun(**fields)], _NONE_NEAR)
    assert [name for name, size in zip(found.bundle.tolist(), found.detail_size, strict=True) if size] == kept


def test_the_last_bundle_of_a_chunk_keeps_its_topics_if_another_chunk_follows() -> None:
    sweep = modelled()[0]
    first, second, *_ = (rows_of([one], _NONE_NEAR) for _, one in arrow_records(sweep, max_bytes=13_000))
    assert [i for i, size in enumerate(first.detail_size) if size] == [len(first) - 1]
    assert second.detail_size[1] > 0


def test_a_bundle_listed_twice_is_refused_as_in_json() -> None:
    with pytest.raises(WireError, match="bad_value: column bundle lists a bundle twice"):
        rows_of([value(bundles=[LEFT, RIGHT, LEFT])])


@pytest.mark.parametrize(("limit", "at"), [("topics", 2), ("sessions", 10), ("msg_rate", 19.0), ("throughput", 27.0)])
def test_topics_are_kept_of_a_bundle_that_reaches_one_limit(limit: str, at: float) -> None:
    far = {"topics": 1e9, "sessions": 1e9, "msg_rate": 1e18, "throughput": 1e18}
    rows = rows_of([value()], DetailLimits(**{**far, limit: at}))
    assert rows.bundle.tolist()[1:3] == [LEFT, RIGHT]
    assert rows.detail_size.tolist() == [0, 0, 2, 0]
    assert rows.detail_load.tolist() == [[0.25, 1.25, 2.25, 3.25], [8.25, 9.25, 10.25, 11.25]]
    rows = rows_of([value()], DetailLimits(**{**far, limit: at + 0.5}))
    assert rows.detail_size.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("chunk", "chunks", "kept"), [(0, 1, []), (0, 2, [2]), (1, 2, [0]), (1, 3, [0, 2]), (2, 3, [0]), (0, 3, [2])]
)
def test_topics_are_kept_of_the_bundles_that_other_chunks_may_have_a_part_of(
    chunk: int, chunks: int, kept: list[int]
) -> None:
    bundles = [LEFT, RIGHT, "tenant/z/0x00000000_0xffffffff"]
    whole = encode_sweep_arrow(
        validate(SweepHeader, json.dumps(header(chunk=chunk, chunks=chunks))),
        bundles=bundles, bundle=np.array([0, 1, 2]), topics=["a", "b", "c"], load=np.ones((3, 4)),
        counts=np.ones((3, 2), np.int64),
    )  # fmt: skip
    assert np.flatnonzero(rows_of([whole], _NONE_NEAR).detail_size[1:]).tolist() == kept


_TOPICS = [
    "persistent://tenant/ns/a",
    "segment://tenant/ns/orders/0000-7fff-0",
    "persistent://tenant/ns/b",
    "segment://tenant/ns/orders/8000-ffff-1",
]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [(_NONE_NEAR, [1, 3]), (DetailLimits(topics=4, sessions=1e9, msg_rate=1e18, throughput=1e18), [0, 1, 2, 3])],
)
def test_segments_are_kept_one_by_one_in_every_form_also_far_from_a_split(
    limits: DetailLimits, kept: list[int]
) -> None:
    load, counts = np.arange(16.0).reshape(4, 4), np.ones((4, 2), np.int64)
    numbers = dict(zip((*RATES, *COUNTS), [*load.T.tolist(), *counts.T.tolist()], strict=True))
    value = json.dumps(
        broker_sweep(bundleStats=[bundle_stats(LEFT, 4, topic=_TOPICS, **numbers)]), separators=(",", ":")
    ).encode()
    arrow = encode_sweep_arrow(
        validate(SweepHeader, json.dumps(header())),
        bundles=[LEFT],
        bundle=np.zeros(4, np.int64),
        topics=_TOPICS,
        load=load,
        counts=counts,
    )
    of_json, of_arrow = (rows_of([one], limits) for one in (value, arrow))
    sweeps = JsonSweeps(cluster=CLUSTER, period_ms=PERIOD, max_bytes=1 << 20, detail=limits)
    shaped, others = sweeps.rows([RecordText(METRICS, 0, 0, None, value)])
    assert others == []
    for rows in (of_json, of_arrow, shaped):
        assert rows.detail_size.tolist() == [0, len(kept)]
        assert rows.detail_segment.tolist() == [segment_code(_TOPICS[row]) for row in kept]
        assert rows.detail_position.tolist() == [topic_hash(_TOPICS[row]) for row in kept]
        assert rows.detail_load.tolist() == of_json.detail_load.tolist()
