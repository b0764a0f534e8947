"""The columns of a sweep in its Arrow form: an IPC stream of one record batch.

It is parsed here and not by Arrow's own reader, so that every length is checked against the available bytes before
anything is allocated.  Other columns than a sweep's are ignored; nested ones are refused.
streaming/jvm/ArrowStream.java applies the same rules.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from controller.model.errors import WireError
from controller.wire.flat_table import FlatTable

#: The statistics of a topic, under their wire names: msg/s and bytes/s, then numbers.
RATES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNTS: Final = ("producerCount", "consumerCount")
#: The columns of a sweep.
COLUMNS: Final[dict[str, pa.DataType]] = {
    "bundle": pa.dictionary(pa.int32(), pa.string()),
    "topic": pa.string(),
    **dict.fromkeys(RATES, pa.float64()),
    **dict.fromkeys(COUNTS, pa.int64()),
}
#: An Arrow stream starts with its continuation marker; no JSON text does.
ARROW_MAGIC: Final = b"\xff\xff\xff\xff"
#: Under it the schema's metadata hold the broker's own fields as JSON.
HEADER: Final = b"trimtab"

_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_INT, _FLOATING_POINT, _TEXT, _DOUBLE = 2, 3, 5, 2
#: Type of a column -> how many buffers it has, without nested types; their places in Arrow's union of types.
_BUFFERS: Final = {**dict.fromkeys((2, 3, 6, 7, 8, 9, 10, 11, 15, 18), 2), **dict.fromkeys((4, 5, 19, 20), 3), 1: 0}
_CODECS: Final = {0: "lz4", 1: "zstd"}
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_MOST_COLUMNS, _LONGEST_NAME = 256, 1024
#: Limits on unpacked columns: a multiple of the record's size, and an absolute maximum.
_MOST_TIMES, _MOST_UNPACKED = 64, 1 << 26
_PAIR: Final = struct.Struct("<qq")
_SIZE: Final = struct.Struct("<q")


class _Message(NamedTuple):
    kind: int
    header: FlatTable
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    field: FlatTable
    #: Its place among the nodes, and its first one among the buffers.
    node: int
    buffer: int


class ArrowStream:
    """The stream *value*; WireError where it is none.  What follows its schema is not looked at before ``batch``."""

    def __init__(self, value: bytes) -> None:
        self._value, self._at = value, 0
        self._room = min(_MOST_TIMES * len(value), _MOST_UNPACKED)
        schema = self._next()
        if schema is None or schema.kind != _SCHEMA or schema.header.number(0, 2):
            raise _spoilt("it does not begin with a schema of little-endian numbers")
        self._columns: dict[str, _Column] = {}
        self._nodes = self._buffers = 0
        for field in schema.header.tables(1, _MOST_COLUMNS):
            self._add_column(field)
        batches = [
            field.vector(1, 1) for field in schema.header.tables(2, _MOST_COLUMNS) if _name(field) == HEADER.decode()
        ]
        if not batches:
            raise WireError("missing_field", f"{HEADER.decode()}: not in the schema's metadata")
        if len(batches) > 1:
            raise WireError("bad_value", f"{HEADER.decode()} is in the schema's metadata twice")
        #: The broker's own fields, as JSON.
        self.header = batches[0]

    def batch(self) -> pa.RecordBatch:
        """Its one record batch, with the columns of a sweep alone: of the right types and lengths, without nulls."""
        dictionary = self._checked_types()
        names: pa.Array | None = None
        columns: list[pa.Array] = []
        batches = 0
        while (message := self._next()) is not None:
            if message.kind == _DICTIONARY:
                if message.header.number(0, 8) == dictionary:
                    if names is not None or message.header.number(2, 1):
                        raise WireError("bad_value", "column bundle has several dictionaries, expected one")
                    names = self._part(message.header.table(1), message.body, 1, 3).text("bundle", 0, 0)
            elif message.kind != _BATCH:
                raise _spoilt(f"a message of kind {message.kind} follows the schema")
            else:
                batches += 1
                columns = columns or self._read(self._part(message.header, message.body, self._nodes, self._buffers))
        if batches > 1:
            raise WireError("bad_value", f"{batches} record batches, expected one")
        if names is None or not columns:
            raise _spoilt("it ends before its record batch")
        codes = columns[0].to_numpy()
        if len(codes) and not (codes.min() >= 0 and codes.max() < len(names)):
            raise WireError("bad_value", f"column bundle has codes beyond its {len(names)} names")
        columns[0] = pa.DictionaryArray.from_arrays(columns[0], names)
        return pa.record_batch(columns, names=list(COLUMNS))

    def _read(self, part: "_Part") -> list[pa.Array]:
        messages = []
        for name, kind in COLUMNS.items():
            at = self._columns[name]
            if name == "topic":
                messages.append(part.text(name, at.node, at.buffer))
            else:
                messages.append(part.numbers(name, at.node, at.buffer, pa.int32() if name == "bundle" else kind))
        return messages

    def _next(self) -> _Message | None:
        """The next message; None where the stream ends, as it must where the record does."""
        value, at = self._value, self._at
        remaining = len(value) - at
        if remaining == 0:
            return None
        if remaining < 8 or value[at : at + 4] != ARROW_MAGIC:
            raise _spoilt(f"no message begins at byte {at}")
        length = int.from_bytes(value[at + 4 : at + 8], "little", signed=True)
        if length == 0 and remaining == 8:
            return None
        if not 0 < length <= remaining - 8:
            raise _spoilt(f"a message of {length} bytes, but only {remaining - 8} remain")
        body = at + 8 + length
        message = FlatTable.first(value[at + 8 : body])
        version, follows = message.number(0, 2), message.number(3, 8)
        if not 3 <= version <= 4 or not 0 <= follows <= len(value) - body:
            raise _spoilt(f"a message of version {version} and {follows} bytes, but only {len(value) - body} remain")
        self._at = body + follows
        return _Message(message.number(1, 1), message.table(2), value[body : self._at])

    def _add_column(self, field: FlatTable) -> None:
        name = _name(field)
        buffers = 2 if field.table_or_none(4) is not None else _BUFFERS.get(field.number(2, 1))
        if buffers is None or field.length(5):
            raise WireError("bad_value", f"column {name} is nested or of an unknown type")
        if name in COLUMNS and name in self._columns:
            raise WireError("bad_value", f"the column {name} appears twice")
        self._columns[name] = _Column(field=field, node=self._nodes, buffer=self._buffers)
        self._nodes += 1
        self._buffers += buffers

    def _checked_types(self) -> int:
        """WireError for columns of other types than a sweep's; which dictionary the bundles' names are."""
        for name, kind in COLUMNS.items():
            if name not in self._columns:
                raise WireError("missing_field", f"column {name}")
            if not _is(self._columns[name].field, kind):
                raise WireError("bad_value", f"column {name} is not of type {kind}")
        return self._columns["bundle"].field.table(4).number(0, 8)

    def _part(self, header: FlatTable, body: bytes, nodes: int, buffers: int) -> "_Part":
        rows, compression = header.number(0, 8), header.table_or_none(3)
        codec = None if compression is None else _CODECS.get(compression.number(0, 1), "")
        if codec == "" or (compression is not None and compression.number(1, 1)):
            raise WireError("bad_value", "an Arrow batch is compressed with an unknown codec or method")
        listed, extents = header.vector(1, 16), header.vector(2, 16)
        if not 0 <= rows < 1 << 31 or len(listed) != 16 * nodes or len(extents) != 16 * buffers:
            raise _spoilt(f"a batch of {rows} rows, {len(listed) // 16} columns and {len(extents) // 16} buffers")
        return _Part(stream=self, rows=rows, nodes=listed, buffers=extents, body=body, codec=codec)

    def take_room(self, size: int) -> None:
        """Account for *size* bytes to be unpacked; WireError where all of them together come to too much."""
        if not 0 <= size <= self._room:
            raise WireError("too_large", f"a compressed buffer unpacks to {size} bytes, allowed: {self._room}")
        self._room -= size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The columns of one message."""

    stream: ArrowStream
    rows: int
    #: (length, number of nulls) of each column, and (place, length) of each buffer.
    nodes: bytes
    buffers: bytes
    body: bytes
    codec: str | None

    def numbers(self, name: str, node: int, buffer: int, kind: pa.DataType) -> pa.Array:
        self._check_node(name, node)
        content, size = self._buffer(buffer + 1), self.rows * kind.bit_width // 8
        if len(content) < size:
            raise WireError("bad_value", f"column {name} has {len(content)} bytes for {self.rows} rows")
        return pa.Array.from_buffers(kind, self.rows, [None, pa.py_buffer(content[:size])])

    def text(self, name: str, node: int, buffer: int) -> pa.Array:
        self._check_node(name, node)
        ends, text = self._buffer(buffer + 1), self._buffer(buffer + 2)
        if self.rows == 0:
            return pa.array([], pa.string())
        if len(ends) < 4 * (self.rows + 1):
            raise WireError("bad_value", f"column {name} has {len(ends)} bytes of offsets for {self.rows} strings")
        places = np.frombuffer(ends, "<i4", self.rows + 1)
        if places[0] < 0 or places[-1] > len(text) or (places[1:] < places[:-1]).any():
            raise WireError("bad_value", f"column {name} has strings beyond its {len(text)} bytes")
        column = pa.Array.from_buffers(pa.string(), self.rows, [None, pa.py_buffer(ends), pa.py_buffer(text)])
        try:
            column.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise WireError("bad_value", f"column {name} is not UTF-8: {error}") from error
        return column

    def _check_node(self, name: str, node: int) -> None:
        length, nulls = _PAIR.unpack_from(self.nodes, 16 * node)
        if length != self.rows:
            raise WireError("bad_value", f"column {name} has {length} values for {self.rows} rows")
        if nulls:
            raise WireError("bad_value", f"column {name} has {nulls} nulls")

    def _buffer(self, nth: int) -> bytes:
        start, length = _PAIR.unpack_from(self.buffers, 16 * nth)
        if start < 0 or length < 0 or start + length > len(self.body):
            raise _spoilt(f"a buffer of {length} bytes at byte {start}, but the batch has {len(self.body)} bytes")
        content = self.body[start : start + length]
        if self.codec is None or not content:
            return content
        if length < _SIZE.size:
            raise _spoilt(f"a compressed buffer of {length} bytes, too short for its size")
        (size,) = _SIZE.unpack_from(content)
        packed = content[_SIZE.size :]
        if size == -1:  # the writer left this buffer uncompressed
            return packed
        self.stream.take_room(size)
        return _unpacked(packed, self.codec, size) if size else b""


def _unpacked(packed: bytes, codec: str, size: int) -> bytes:
    """*packed* unpacked; WireError where that does not come to *size* bytes exactly."""
    if codec == "lz4" and not _is_lz4_frame(packed):
        raise _spoilt(
            "a compressed buffer is not one whole LZ4 frame of version 1 without a dictionary or block checksums"
        )
    try:
        if codec == "lz4":
            with pa.CompressedInputStream(pa.py_buffer(packed), codec) as stream:
                content: bytes = stream.read(size + 1)
        else:
            # In one go, for a stream would allocate the window that the record asks for.  What comes to less than
            # *size* fits into less, and leaves the rest as it was.
            content = pa.decompress(packed, size, codec=codec).to_pybytes()
            if _fits(packed, codec, size - 1):
                content = b""
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _spoilt(f"a compressed buffer cannot be unpacked: {error}") from error
    if len(content) != size:
        raise _spoilt(f"a compressed buffer does not unpack to the {size} bytes that it announces")
    return content


def _is_lz4_frame(packed: bytes) -> bool:
    """Whether it is one whole LZ4 frame of version 1 without a dictionary, and nothing behind it.

    No writer of Arrow gives blocks checksums.  streaming/jvm/Lz4Frame.java asks the same, and unpacks as Arrow does.
    """
    if len(packed) < 7 or not packed.startswith(_LZ4_MAGIC):
        return False
    flags, descriptor = packed[4], packed[5]
    if flags & 0xD3 != 0x40 or descriptor & 0xCF != 0x40:
        return False
    largest = 1 << (8 + 2 * (descriptor >> 4))
    content_checksum = 4 * bool(flags & 0x04)
    at = 15 if flags & 0x08 else 7
    while True:  # a block that ends behind the frame is followed by one of 0 bytes, which does not end with it
        size = int.from_bytes(packed[at : at + 4], "little")
        block = size & 0x7FFFFFFF
        if block == 0:
            return size == 0 and at + 4 + content_checksum == len(packed)
        if block > largest:
            return False
        at += 4 + block


def _fits(packed: bytes, codec: str, size: int) -> bool:
    try:
        pa.decompress(packed, size, codec=codec)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return True


def _is(field: FlatTable, kind: Any) -> bool:
    """Whether the column is of type *kind*, which is one of those in COLUMNS."""
    kind_of_field, dictionary = field.number(2, 1), field.table_or_none(4)
    if kind == pa.float64():
        return dictionary is None and kind_of_field == _FLOATING_POINT and field.table(3).number(0, 2) == _DOUBLE
    if kind == pa.int64():
        return dictionary is None and kind_of_field == _INT and _is_signed(field.table(3), 64)
    if kind == pa.string() or dictionary is None:
        return kind == pa.string() and dictionary is None and kind_of_field == _TEXT
    codes = dictionary.table_or_none(1)
    return kind_of_field == _TEXT and (codes is None or _is_signed(codes, 32)) and not dictionary.number(2, 1)


def _is_signed(integer: FlatTable, bits: int) -> bool:
    return integer.number(0, 4) == bits and integer.number(1, 1) != 0


def _name(field: FlatTable) -> str:
    """What a field of the schema, or of its metadata, is called."""
    if field.length(0) > _LONGEST_NAME:
        raise WireError("bad_value", f"an Arrow column's name of {field.length(0)} bytes, allowed: {_LONGEST_NAME}")
    try:
        return field.vector(0, 1).decode()
    except UnicodeDecodeError as error:
        raise WireError("bad_value", f"an Arrow column's name is not UTF-8: {error}") from error


def _spoilt(why: str) -> WireError:
    return WireError("not_json", f"not an Arrow stream of one batch: {why}")
