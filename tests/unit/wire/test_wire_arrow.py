"""The Arrow form of a sweep."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controller.model.errors import WireError
from controller.model.load import Floats, Ints
from controller.wire.arrow_stream import ARROW_MAGIC, COUNTS, RATES
from controller.wire.base import validate
from controller.wire.metrics import decode_metric
from controller.wire.sweep import ArrowSweep, SweepHeader, encode_sweep_arrow
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T, broker_sweep, without

TOPICS = [f"persistent://tenant/ns/topic-{i}" for i in range(3)]
LOAD: Floats = np.arange(12, dtype=np.float64).reshape(3, 4) + 0.25
SESSIONS: Ints = np.arange(6).reshape(3, 2)


def header(**changed: Any) -> dict[str, Any]:
    return without(broker_sweep(**changed), "bundleStats")


def value(**changed: Any) -> bytes:
    columns: dict[str, Any] = {
        "bundles": [LEFT, RIGHT, "tenant/empty/0x00000000_0xffffffff"],
        "bundle": np.array([1, 0, 1]),
        "topics": TOPICS,
        "load": LOAD,
        "counts": SESSIONS,
    }
    return encode_sweep_arrow(validate(SweepHeader, json.dumps(header())), **{**columns, **changed})


def respun(change: Any = lambda batch: batch, **fields: Any) -> bytes:
    """The value again, its batch changed, its header made of *fields*."""
    with pa.ipc.open_stream(value()) as reader:
        batch = change(reader.read_next_batch())
    metadata = {"trimtab": json.dumps({**header(), **fields})} if fields != {"none": True} else None
    schema = batch.schema.with_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(batch.columns, schema=schema))
    spun: bytes = sink.getvalue().to_pybytes()
    return spun


def packed(arrow: bytes, codec: str) -> bytes:
    """The Arrow stream again, its buffers compressed."""
    with pa.ipc.open_stream(arrow) as reader:
        schema, batch = reader.schema, reader.read_next_batch()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def decode(arrow: bytes) -> ArrowSweep | None:
    record = decode_metric(arrow, cluster=CLUSTER, period_ms=PERIOD)
    assert record is None or isinstance(record, ArrowSweep)
    return record


def refusal(arrow: bytes) -> str:
    with pytest.raises(WireError) as caught:
        decode(arrow)
    return f"{caught.value.reason}: {caught.value.detail}"


def with_column(name: str, values: Any) -> Any:
    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(batch.schema.get_field_index(name), name, values)

    return change


def test_it_begins_as_no_json_does() -> None:
    assert value().startswith(ARROW_MAGIC)


def test_columns_and_header_come_back_as_they_were() -> None:
    sweep = decode(value())
    assert sweep is not None
    assert (sweep.broker, sweep.interval, sweep.chunks) == ("broker-1:8080", T, 1)
    assert sweep.batch.column("bundle").to_pylist() == [RIGHT, LEFT, RIGHT]
    assert sweep.batch.column("topic").to_pylist() == TOPICS
    assert np.array_equal(np.stack([sweep.batch.column(name).to_numpy() for name in RATES], axis=1), LOAD)
    assert np.array_equal(np.stack([sweep.batch.column(name).to_numpy() for name in COUNTS], axis=1), SESSIONS)


def test_a_bundle_without_topics_is_still_listed() -> None:
    sweep = decode(value())
    assert sweep is not None
    assert sweep.bundles[2] == "tenant/empty/0x00000000_0xffffffff"


def test_a_broker_without_topics_has_a_sweep_of_no_rows() -> None:
    nothing = np.empty(0, dtype=np.int64)
    empty = value(bundles=[], bundle=nothing, topics=[], load=np.empty((0, 4)), counts=nothing.reshape(0, 2))
    sweep = decode(empty)
    assert sweep is not None
    assert sweep.bundles == []
    assert sweep.batch.num_rows == 0


def test_the_same_sweep_has_the_same_bytes() -> None:
    assert value() == value()


def test_another_clusters_sweep_is_ignored() -> None:
    assert decode(respun(cluster="other", interval=1)) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"v": 2}, "unknown_version: "),
        ({"type": "topic_stats"}, "unknown_type: "),
        ({"sweepId": ""}, "bad_value: sweepId: "),
        ({"interval": T + 1}, "misaligned_interval: "),
        ({"none": True}, "missing_field: trimtab: "),
    ],
)
def test_the_header_is_checked_like_any_record(fields: dict[str, Any], reason: str) -> None:
    assert refusal(respun(**fields)).startswith(reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_column("msgRateIn", pa.array([1.0, float("nan"), 2.0])), "bad_value: column msgRateIn must"),
        (with_column("msgRateIn", pa.array([1.0, float("inf"), 2.0])), "bad_value: column msgRateIn must"),
        (with_column("msgRateOut", pa.array([1.0, -1.0, 2.0])), "bad_value: column msgRateOut must"),
        (with_column("msgRateOut", pa.array([1.0, None, 2.0])), "bad_value: column msgRateOut has 1 nulls"),
        (with_column("consumerCount", pa.array([1, -1, 2])), "bad_value: column consumerCount must"),
        (
            with_column("consumerCount", pa.array([1.0, 1.0, 2.0])),
            "bad_value: column consumerCount is not of type int64",
        ),
        (with_column("topic", pa.array(["a", None, "b"])), "bad_value: column topic has 1 nulls"),
        (with_column("bundle", pa.array([LEFT, LEFT, LEFT])), "bad_value: column bundle is not of type dictionary"),
        (with_column("bundle", pa.array(["x"] * 3).dictionary_encode()), "impossible_bundle: 'x' is not"),
        (lambda batch: batch.drop_columns(["topic"]), "missing_field: column topic"),
    ],
)
def test_columns_are_checked_whole(change: Any, reason: str) -> None:
    assert refusal(respun(change)).startswith(reason)


def test_a_stream_that_is_cut_off_or_holds_nothing_is_refused() -> None:
    whole = value()
    for length in (4, 40, len(whole) // 2, len(whole) - 200):
        assert refusal(whole[:length]).startswith("not_json: not an Arrow stream")


def test_what_follows_a_message_is_a_message_or_nothing() -> None:
    whole = value()
    end = len(whole) - 8  # its end mark
    for behind in (b"\xff", b"\xff\xff\xff\xff", b"12345678", b"123456789"):
        assert f"no message begins at byte {end}" in refusal(whole[:end] + behind)
    assert decode(whole[:end]) is not None


def test_a_nested_column_is_refused_and_another_plain_one_is_passed_over() -> None:
    def with_extra(array: pa.Array) -> bytes:
        return respun(lambda batch: pa.record_batch([*batch.columns, array], names=[*batch.schema.names, "extra"]))

    assert decode(with_extra(pa.array([1, 2, 3], pa.int16()))) is not None
    assert refusal(with_extra(pa.array([[1], [2], [3]]))).startswith("bad_value: column extra is nested")


def test_a_stream_begins_with_its_schema() -> None:
    with pa.ipc.open_stream(value()) as reader:
        schema, batch = reader.schema, reader.read_next_batch()
    for first in (batch.serialize(), pa.BufferOutputStream().getvalue()):
        said = refusal(ARROW_MAGIC * (first.size == 0) + first.to_pybytes() + schema.serialize().to_pybytes())
        assert said.startswith("not_json: not an Arrow stream")
    assert "it does not begin with a schema" in refusal(batch.serialize().to_pybytes())


def test_one_batch_a_value() -> None:
    with pa.ipc.open_stream(value()) as reader:
        schema, batch = reader.schema, reader.read_next_batch()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    assert refusal(sink.getvalue().to_pybytes()) == "bad_value: 2 record batches, expected one"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("n", [3, 30_000])
def test_compressed_columns_come_back_as_they_were_in_one_block_and_in_many(codec: str, n: int) -> None:
    rate = np.random.default_rng(n).random((n, 4))
    plain = value(
        bundle=np.arange(n) % 3, topics=[f"t-{i}" for i in range(n)], load=rate, counts=np.ones((n, 2), np.int64)
    )
    sweep = decode(packed(plain, codec))
    assert sweep is not None
    assert sweep.batch.column("msgRateIn").to_pylist() == rate[:, 0].tolist()
    assert sweep.batch.column("topic").to_pylist() == [f"t-{i}" for i in range(n)]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_columns_of_another_length_are_refused(codec: str) -> None:
    whole = packed(value(), codec)
    with pa.ipc.open_stream(whole) as reader:
        rates = reader.read_next_batch().column("msgRateIn").to_numpy()
    squeezed = pa.compress(rates.tobytes(), codec=codec, asbytes=True)
    length = rates.nbytes.to_bytes(8, "little")
    assert whole.count(length + squeezed) == 1
    for other in (rates.nbytes - 8, rates.nbytes + 8):
        spoilt = whole.replace(length + squeezed, other.to_bytes(8, "little") + squeezed)
        assert refusal(spoilt).startswith("not_json: not an Arrow stream")
    cut = whole.replace(length + squeezed, length + b"\0" + squeezed[1:])
    assert refusal(cut).startswith("not_json: not an Arrow stream")
