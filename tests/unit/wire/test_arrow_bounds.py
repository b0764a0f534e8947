"""An Arrow stream with one field of its messages changed: each bound, and the number beside it."""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controller.wire.arrow_stream import COLUMNS
from tests.arrow_messages import Message, batch, dictionary, put, schema
from tests.records import LEFT, RIGHT
from tests.unit.wire.test_wire_arrow import decode, packed, refusal, respun, value

SPOILT = "not_json: not an Arrow stream of one batch: "
WHOLE = value()
#: Without its end mark, which need not be there.
BARE = WHOLE[:-8]
#: Buffers of the record batch: bundle 0 and 1, topic 2 to 4, then two for each of the numbers.
BUNDLE_CODES, TOPIC_PLACES, TOPIC_TEXT, MSG_RATE_IN = 1, 3, 4, 6


def test_a_message_is_as_long_as_it_says() -> None:
    left = len(BARE) - batch(BARE).at - 8
    for length in (left + 1, -1, 0):
        spoilt = put(BARE, batch(BARE).at + 4, "<i", length)
        assert refusal(spoilt) == f"{SPOILT}a message of {length} bytes, but only {left} remain"
    # All that is left is no message, but is looked at.
    assert "remain" in refusal(put(BARE, batch(BARE).at + 4, "<i", left)).removeprefix(f"{SPOILT}a message of {left}")


def test_the_end_mark_is_the_last_thing_in_the_record() -> None:
    assert decode(BARE) is not None
    left = len(WHOLE) - batch(WHOLE).at - 8
    spoilt = put(WHOLE, batch(WHOLE).at + 4, "<i", 0)
    assert refusal(spoilt) == f"{SPOILT}a message of 0 bytes, but only {left} remain"


def test_the_body_of_a_message_lies_within_the_record() -> None:
    left = len(BARE) - batch(BARE).body
    for follows in (left + 1, -1, 1 << 62):
        spoilt = put(BARE, batch(BARE).root.field(3), "<q", follows)
        assert refusal(spoilt) == f"{SPOILT}a message of version 4 and {follows} bytes, but only {left} remain"
    shorter = put(BARE, batch(BARE).root.field(3), "<q", left - 8)
    assert refusal(shorter).endswith(f"but the batch has {left - 8} bytes")


@pytest.mark.parametrize(("version", "known"), [(2, False), (3, True), (4, True), (5, False)])
def test_messages_have_version_4_or_5_of_arrow(version: int, known: bool) -> None:
    """Arrow counts its versions from 0."""
    changed = put(WHOLE, batch(WHOLE).root.field(0), "<h", version)
    if known:
        assert decode(changed) is not None
        return
    assert refusal(changed).startswith(f"{SPOILT}a message of version {version} and ")


def test_a_schema_of_big_endian_numbers_is_refused() -> None:
    message = schema(WHOLE).root
    fields = struct.unpack_from("<H", WHOLE, message.table(2).entry(1))[0]
    changed = put(WHOLE, message.table(2).entry(0), "<H", fields)  # any place that holds another number than 0
    assert refusal(changed) == f"{SPOILT}it does not begin with a schema of little-endian numbers"


@pytest.mark.parametrize("kind", [0, 1, 4, 5])
def test_only_dictionaries_and_batches_follow_the_schema(kind: int) -> None:
    changed = put(WHOLE, batch(WHOLE).root.field(1), "<B", kind)
    assert refusal(changed) == f"{SPOILT}a message of kind {kind} follows the schema"


def test_a_stream_without_names_or_without_a_batch_is_cut_off() -> None:
    for without in (
        WHOLE[: dictionary(WHOLE).at] + WHOLE[batch(WHOLE).at :],
        WHOLE[: batch(WHOLE).at],
        WHOLE[: dictionary(WHOLE).at],
    ):
        assert refusal(without) == f"{SPOILT}it ends before its record batch"


def test_bundles_have_one_dictionary_and_it_is_no_addition_to_another() -> None:
    names = WHOLE[dictionary(WHOLE).at : batch(WHOLE).at]
    twice = WHOLE[: batch(WHOLE).at] + names + WHOLE[batch(WHOLE).at :]
    assert refusal(twice) == "bad_value: column bundle has several dictionaries, expected one"


def test_a_dictionary_says_that_it_is_an_addition_or_that_it_is_none() -> None:
    with pa.ipc.open_stream(WHOLE) as reader:
        few = reader.read_next_batch()
    codes, names = few.column(0).indices, few.column(0).dictionary.to_pylist()
    added = [f"tenant/ns/0x{at}0000000_0x{at}1000000" for at in (4, 5, 6)]
    more = pa.DictionaryArray.from_arrays(codes, pa.array([*names, *added]))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, few.schema, options=options) as writer:
        writer.write_batch(few)
        writer.write_batch(pa.record_batch([more, *few.columns[1:]], schema=few.schema))
    stream = sink.getvalue().to_pybytes()
    first = batch(stream)
    addition = Message(stream, first.end)
    alone = stream[: dictionary(stream).at] + stream[addition.at : addition.end] + stream[first.at : first.end]
    assert refusal(alone) == "bad_value: column bundle has several dictionaries, expected one"
    told = put(alone, dictionary(alone).root.table(2).field(2), "<B", 0)
    sweep = decode(told)
    assert sweep is not None
    assert sweep.batch.column("bundle").dictionary.to_pylist() == added


def test_the_dictionary_of_another_column_is_passed_over() -> None:
    def with_extra(batch: pa.RecordBatch) -> pa.RecordBatch:
        extra = pa.array(["x", "y", "x"]).dictionary_encode()
        return pa.record_batch([extra, *batch.columns], names=["extra", *batch.schema.names])

    assert decode(respun(with_extra)) == decode(WHOLE)


@pytest.mark.parametrize("code", [-1, 3, 2**31 - 1])
def test_codes_beyond_the_names_are_refused(code: int) -> None:
    place = batch(WHOLE).body + struct.unpack_from("<q", WHOLE, batch(WHOLE).buffer(BUNDLE_CODES))[0]
    assert decode(put(WHOLE, place, "<i", 2)) is not None
    assert refusal(put(WHOLE, place, "<i", code)) == "bad_value: column bundle has codes beyond its 3 names"


@pytest.mark.parametrize("rows", [-1, 1 << 31, 1 << 62])
def test_a_batch_has_less_than_2_to_the_31_rows(rows: int) -> None:
    changed = put(WHOLE, batch(WHOLE).root.table(2).field(0), "<q", rows)
    assert refusal(changed) == f"{SPOILT}a batch of {rows} rows, 8 columns and 17 buffers"
    # One less is no flaw of the batch, but of its columns.
    changed = put(WHOLE, batch(WHOLE).root.table(2).field(0), "<q", (1 << 31) - 1)
    assert refusal(changed) == "bad_value: column bundle has 3 values for 2147483647 rows"


@pytest.mark.parametrize("nth", [1, 2])
def test_a_batch_lists_all_columns_and_buffers_of_its_schema(nth: int) -> None:
    listed = batch(WHOLE).root.table(2).table(nth).at
    (number,) = struct.unpack_from("<I", WHOLE, listed)
    # Behind the columns the description ends: one more is refused before it is counted.
    for other in (number - 1,) if nth == 1 else (number - 1, number + 1):
        columns, buffers = (other, 17) if nth == 1 else (8, other)
        changed = put(WHOLE, listed, "<I", other)
        assert refusal(changed) == f"{SPOILT}a batch of 3 rows, {columns} columns and {buffers} buffers"


def test_a_column_has_a_value_for_each_row_and_no_nulls() -> None:
    nodes = batch(WHOLE).root.table(2).table(1).at + 4
    for nth, name in enumerate(COLUMNS):
        for length in (2, 4):
            changed = put(WHOLE, nodes + 16 * nth, "<q", length)
            assert refusal(changed) == f"bad_value: column {name} has {length} values for 3 rows"
        for nulls in (1, -1):
            changed = put(WHOLE, nodes + 16 * nth + 8, "<q", nulls)
            assert refusal(changed) == f"bad_value: column {name} has {nulls} nulls"


def test_a_buffer_lies_within_the_body_of_its_message() -> None:
    message = batch(WHOLE)
    (size,) = struct.unpack_from("<q", WHOLE, message.root.field(3))
    for start, length in ((-1, 8), (0, -1), (size - 7, 8), (0, size + 1), (size + 1, 0)):
        changed = put(WHOLE, message.buffer(MSG_RATE_IN), "<qq", start, length)
        assert refusal(changed) == f"{SPOILT}a buffer of {length} bytes at byte {start}, but the batch has {size} bytes"
    # Its last bytes are a buffer as good as any.
    assert decode(put(WHOLE, message.buffer(MSG_RATE_IN), "<qq", size - 24, 24)) is not None
    assert "has 0 bytes for 3 rows" in refusal(put(WHOLE, message.buffer(MSG_RATE_IN), "<qq", size, 0))


def test_numbers_have_as_many_bytes_as_the_rows_need_and_may_have_more() -> None:
    extent = batch(WHOLE).buffer(MSG_RATE_IN)
    assert refusal(put(WHOLE, extent + 8, "<q", 23)) == "bad_value: column msgRateIn has 23 bytes for 3 rows"
    assert decode(put(WHOLE, extent + 8, "<q", 24)) == decode(put(WHOLE, extent + 8, "<q", 32)) == decode(WHOLE)
    codes = batch(WHOLE).buffer(BUNDLE_CODES)
    assert refusal(put(WHOLE, codes + 8, "<q", 11)) == "bad_value: column bundle has 11 bytes for 3 rows"


def test_texts_have_a_place_more_than_rows() -> None:
    extent = batch(WHOLE).buffer(TOPIC_PLACES)
    changed = put(WHOLE, extent + 8, "<q", 15)
    assert refusal(changed) == "bad_value: column topic has 15 bytes of offsets for 3 strings"
    assert decode(put(WHOLE, extent + 8, "<q", 16)) == decode(WHOLE)


@pytest.mark.parametrize("places", [(-1, 27, 54, 81), (0, 27, 54, 91), (0, 55, 54, 81), (28, 27, 54, 81)])
def test_texts_follow_each_other_within_their_bytes(places: tuple[int, ...]) -> None:
    message = batch(WHOLE)
    (size,) = struct.unpack_from("<q", WHOLE, message.buffer(TOPIC_TEXT) + 8)
    (start,) = struct.unpack_from("<q", WHOLE, message.buffer(TOPIC_PLACES))
    changed = put(WHOLE, message.body + start, "<4i", *places)
    assert refusal(changed) == f"bad_value: column topic has strings beyond its {size} bytes"


def test_texts_may_begin_late_be_empty_and_end_with_the_bytes() -> None:
    message = batch(WHOLE)
    (size,) = struct.unpack_from("<q", WHOLE, message.buffer(TOPIC_TEXT) + 8)
    (start,) = struct.unpack_from("<q", WHOLE, message.buffer(TOPIC_PLACES))
    sweep = decode(put(WHOLE, message.body + start, "<4i", 3, 3, 5, size))
    assert sweep is not None
    text = "".join(f"persistent://tenant/ns/topic-{i}" for i in range(3))
    assert sweep.batch.column("topic").to_pylist() == ["", text[3:5], text[5:]]


def test_texts_are_utf_8() -> None:
    message = batch(WHOLE)
    (start,) = struct.unpack_from("<q", WHOLE, message.buffer(TOPIC_TEXT))
    assert refusal(put(WHOLE, message.body + start, "<B", 0xFF)).startswith("bad_value: column topic is not UTF-8: ")


PLAIN: dict[str, Any] = {
    "null": pa.nulls(3),
    "int8": pa.array([1, 2, 3], pa.int8()),
    "float32": pa.array([1, 2, 3], pa.float32()),
    "binary": pa.array([b"1", b"2", b"3"]),
    "utf8": pa.array(["1", "2", "3"]),
    "bool": pa.array([True, False, True]),
    "decimal": pa.array([1, 2, 3], pa.decimal128(5)),
    "date": pa.array([1, 2, 3], pa.date32()),
    "time": pa.array([1, 2, 3], pa.time64("us")),
    "timestamp": pa.array([1, 2, 3], pa.timestamp("ms")),
    "interval": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    "fixed": pa.array([b"12"] * 3, pa.binary(2)),
    "duration": pa.array([1, 2, 3], pa.duration("s")),
    "large binary": pa.array([b"1", b"2", b"3"], pa.large_binary()),
    "large utf8": pa.array(["1", "2", "3"], pa.large_string()),
    "dictionary": pa.array(["1", "2", "1"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_column_before_the_others_does_not_shift_them(kind: str) -> None:
    def with_extra(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([PLAIN[kind], *batch.columns], names=["extra", *batch.schema.names])

    assert decode(respun(with_extra)) == decode(WHOLE)


NESTED: dict[str, Any] = {
    "list": pa.array([[1], [2], [3]]),
    "large list": pa.array([[1], [2], [3]], pa.large_list(pa.int8())),
    "fixed list": pa.array([[1], [2], [3]], pa.list_(pa.int8(), 1)),
    "struct": pa.array([{"a": 1}] * 3),
    "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int8())),
    "view": pa.array(["1", "2", "3"], pa.string_view()),
    "dictionary of structs": pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), pa.array([{"a": 1}])),
    "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int32()), pa.array([[1]])),
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_nested_column_or_one_of_a_newer_type_is_refused(kind: str) -> None:
    def with_extra(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([NESTED[kind], *batch.columns], names=["extra", *batch.schema.names])

    assert refusal(respun(with_extra)) == "bad_value: column extra is nested or of an unknown type"


@pytest.mark.parametrize(
    ("name", "array", "kind"),
    [
        ("msgRateIn", pa.array([1, 2, 3], pa.float32()), "double"),
        ("msgRateIn", pa.array([1, 2, 3], pa.int64()), "double"),
        ("producerCount", pa.array([1, 2, 3], pa.uint64()), "int64"),
        ("producerCount", pa.array([1, 2, 3], pa.int32()), "int64"),
        ("producerCount", pa.array([1, 2, 3], pa.timestamp("ms")), "int64"),
        ("topic", pa.array(["1", "2", "3"], pa.large_string()), "string"),
        ("topic", pa.array([b"1", b"2", b"3"]), "string"),
        ("topic", pa.array(["1", "2", "1"]).dictionary_encode(), "string"),
        ("msgRateIn", pa.array([1.0, 2.0, 1.0]).dictionary_encode(), "double"),
        ("producerCount", pa.array([1, 2, 1]).dictionary_encode(), "int64"),
        ("bundle", pa.array([1, 2, 1]).dictionary_encode(), "dictionary<values=string, indices=int32, ordered=0>"),
    ],
)
def test_columns_of_another_type_are_refused(name: str, array: pa.Array, kind: str) -> None:
    def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(batch.schema.get_field_index(name), name, array)

    assert refusal(respun(changed)) == f"bad_value: column {name} is not of type {kind}"


@pytest.mark.parametrize(
    ("codes", "ordered", "known"),
    [
        (pa.int32(), False, True),
        (pa.int32(), True, False),
        (pa.int8(), False, False),
        (pa.int64(), False, False),
        (pa.uint32(), False, False),
    ],
)
def test_bundles_are_a_dictionary_of_32_bit_codes_without_an_order(codes: Any, ordered: bool, known: bool) -> None:
    def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
        old = batch.column("bundle")
        new = pa.DictionaryArray.from_arrays(old.indices.cast(codes), old.dictionary, ordered=ordered)
        return batch.set_column(0, "bundle", new)

    if known:
        assert decode(respun(changed)) is not None
        return
    expected = "bad_value: column bundle is not of type dictionary<values=string, indices=int32, ordered=0>"
    assert refusal(respun(changed)) == expected


def with_columns(*names: str) -> bytes:
    """The stream with columns of numbers of these *names* behind its own."""
    extra = [pa.array([1, 2, 3], pa.int8())] * len(names)
    return respun(lambda batch: pa.record_batch([*batch.columns, *extra], names=[*batch.schema.names, *names]))


def test_a_schema_has_256_columns_at_most() -> None:
    assert decode(with_columns(*(f"x{i}" for i in range(248)))) is not None
    assert refusal(with_columns(*(f"x{i}" for i in range(249)))) == (
        "bad_value: an Arrow list of 257 entries, allowed: 256"
    )


def test_a_columns_name_has_1024_bytes_at_most() -> None:
    assert decode(with_columns("é" * 512)) is not None
    assert refusal(with_columns("é" * 512 + "x")) == "bad_value: an Arrow column's name of 1025 bytes, allowed: 1024"


def test_a_columns_name_is_utf_8() -> None:
    at = schema(WHOLE).root.table(2).element(1, 0).table(0).at + 4
    assert refusal(put(WHOLE, at, "<B", 0xFF)).startswith("bad_value: an Arrow column's name is not UTF-8: ")


def test_a_column_of_a_sweep_is_there_once_and_another_one_as_often_as_it_likes() -> None:
    assert decode(with_columns("extra", "extra")) is not None
    assert refusal(with_columns("topic")) == "bad_value: the column topic appears twice"


def test_the_brokers_own_fields_are_in_the_metadata_once_beside_others() -> None:
    def with_metadata(*pairs: tuple[str, str]) -> bytes:
        with pa.ipc.open_stream(WHOLE) as reader:
            whole = reader.read_next_batch()
        own = whole.schema.metadata[b"trimtab"].decode()
        found = whole.schema.with_metadata(pa.KeyValueMetadata([*pairs, ("trimtab", own)]))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found) as writer:
            writer.write_batch(pa.record_batch(whole.columns, schema=found))
        spun: bytes = sink.getvalue().to_pybytes()
        return spun

    assert decode(with_metadata(("other", "{}"))) == decode(WHOLE)
    assert refusal(with_metadata(("trimtab", "{}"))) == "bad_value: trimtab is in the schema's metadata twice"


# Compressed columns.


def test_a_codec_that_is_not_known_is_refused() -> None:
    zstd = packed(WHOLE, "zstd")
    compression = batch(zstd).root.table(2).table(3)
    expected = "bad_value: an Arrow batch is compressed with an unknown codec or method"
    assert refusal(put(zstd, compression.field(0), "<B", 2)) == expected
    # A list of fields, behind all else, by which the codec's number is that of the method as well.
    message = batch(zstd)
    codec = compression.field(0) - compression.at
    listed = zstd[: message.body] + struct.pack("<4H", 8, 8, codec, codec) + zstd[message.body :]
    listed = put(listed, message.at + 4, "<i", message.body - message.at - 8 + 8)
    assert refusal(put(listed, compression.at, "<i", compression.at - message.body)) == expected


def test_a_compressed_buffer_begins_with_its_size() -> None:
    zstd = packed(WHOLE, "zstd")
    extent = batch(zstd).buffer(MSG_RATE_IN)
    assert refusal(put(zstd, extent + 8, "<q", 7)) == f"{SPOILT}a compressed buffer of 7 bytes, too short for its size"
    # Of 8 bytes it has a size, and nothing that could be unpacked.
    assert refusal(put(zstd, extent + 8, "<q", 8)).startswith(f"{SPOILT}a compressed buffer cannot be unpacked: ")


def test_a_buffer_that_is_left_uncompressed_says_minus_1() -> None:
    zstd = packed(WHOLE, "zstd")
    message = batch(zstd)
    start, length = struct.unpack_from("<qq", zstd, message.buffer(MSG_RATE_IN))
    assert length >= 32  # so that three numbers have room in it
    changed = put(zstd, message.body + start, "<q", -1)
    changed = put(changed, message.body + start + 8, "<3Q", *np.array([7.0, 8.0, 9.0]).view(np.uint64).tolist())
    changed = put(changed, message.buffer(MSG_RATE_IN) + 8, "<q", 32)
    sweep = decode(changed)
    assert sweep is not None
    assert sweep.batch.column("msgRateIn").to_pylist() == [7.0, 8.0, 9.0]
    assert refusal(put(changed, message.body + start, "<q", 0)) == "bad_value: column msgRateIn has 0 bytes for 3 rows"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_what_is_unpacked_comes_to_64_times_the_record_at_most(codec: str) -> None:
    squeezed = packed(WHOLE, codec)
    message = batch(squeezed)
    (start,) = struct.unpack_from("<q", squeezed, message.buffer(BUNDLE_CODES))
    # Before the codes the places and bytes of the three names were unpacked.
    names = (LEFT, RIGHT, "tenant/empty/0x00000000_0xffffffff")
    allowed = 64 * len(squeezed) - 4 * (len(names) + 1) - sum(map(len, names))
    for size in (allowed + 1, 1 << 62, -2):
        changed = put(squeezed, message.body + start, "<q", size)
        assert refusal(changed) == f"too_large: a compressed buffer unpacks to {size} bytes, allowed: {allowed}"
    changed = put(squeezed, message.body + start, "<q", allowed)
    assert refusal(changed).startswith(f"{SPOILT}a compressed buffer ")


def test_what_is_unpacked_comes_to_64_mib_at_most() -> None:
    random = np.random.default_rng(1).bytes(1 << 20)
    large = respun(
        lambda batch: pa.record_batch(
            [*batch.columns, pa.array([random, b"", b""], pa.binary())], names=[*batch.schema.names, "extra"]
        )
    )
    squeezed = packed(large, "zstd")
    message = dictionary(squeezed)
    inner = message.root.table(2).table(1)
    extents = inner.table(2).at + 4
    (start,) = struct.unpack_from("<q", squeezed, extents + 16)
    changed = put(squeezed, message.body + start, "<q", (1 << 26) + 1)
    assert refusal(changed) == "too_large: a compressed buffer unpacks to 67108865 bytes, allowed: 67108864"
    assert len(squeezed) > 1 << 20
