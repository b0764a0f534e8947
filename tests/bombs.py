"""Record batches for Kafka that unpack to far more than they weigh, appended as no client library would."""

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from controller.adapters.network.deadline import Deadline

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_CODECS: Final[dict[Codec, int]] = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_PRODUCE: Final = 0
#: Version 1, independent blocks of 4 MiB at most, and the checksum of that.
_LZ4_HEAD: Final = b"\x04\x22\x4d\x18\x60\x70\x73"
_CHUNK: Final = 1 << 20
#: Errors of a new partition, for a moment.
_WITHOUT_LEADER: Final = (3, 5, 6)
_LEADER_SECONDS: Final = 20.0


@dataclass(frozen=True, kw_only=True)
class Part:
    """One record of a batch: a value of *size* equal bytes, or *value*; likewise the key and one header."""

    size: int = 0
    value: bytes = b""
    key: int = 0
    header: int = 0


def batch(parts: Iterable[Part], codec: Codec) -> bytes:
    """A record batch (magic 2) of *parts*, compressed as a stream; with snappy all of it is in memory."""
    parts = list(parts)
    pieces = (piece for number, part in enumerate(parts) for piece in _record(number, part))
    body = _compressed(pieces, codec)
    counted = struct.pack(">hiqqqhii", _CODECS[codec], len(parts) - 1, 0, 0, -1, -1, -1, len(parts)) + body
    head = struct.pack(">ibI", -1, 2, _crc32c(counted))
    return struct.pack(">qi", 0, len(head) + len(counted)) + head + counted


def _compressed(pieces: Iterator[bytes], codec: Codec) -> bytes:
    if codec == "none":
        return b"".join(pieces)
    if codec == "snappy":
        return bytes(pa.compress(b"".join(pieces), codec="snappy", asbytes=True))
    if codec == "lz4":
        return _lz4_frame(pieces)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        for piece in pieces:
            out.write(piece)
    return bytes(sink.getvalue().to_pybytes())


def _lz4_frame(pieces: Iterator[bytes]) -> bytes:
    """Of blocks that do not depend on each other, as Kafka wants them; Arrow's do."""
    blocks = (bytes(pa.compress(piece, codec="lz4_raw", asbytes=True)) for piece in pieces if piece)
    return _LZ4_HEAD + b"".join(struct.pack("<I", len(block)) + block for block in blocks) + bytes(4)


def append(bootstrap: str, topic: str, partition: int, records: bytes) -> int:
    """Append the batch *records*; returns its first offset.  OSError with Kafka's error code where it is refused."""
    deadline = Deadline.after(_LEADER_SECONDS)
    while True:
        code, offset = _produced(bootstrap, topic, partition, records)
        if code not in _WITHOUT_LEADER or deadline.passed:
            break
        time.sleep(0.1)
    if code:
        raise OSError(code, f"Kafka refuses the batch with error {code}")
    return offset


def _produced(bootstrap: str, topic: str, partition: int, records: bytes) -> tuple[int, int]:
    """Kafka's error code, and the first offset."""
    host, _, port = bootstrap.rpartition(":")
    name = topic.encode()
    body = struct.pack(">hhi", -1, -1, 60_000) + struct.pack(">i", 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">iii", 1, partition, len(records)) + records
    request = struct.pack(">hhih", _PRODUCE, 7, 1, 4) + b"bomb" + body
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            [size] = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    code, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    return int(code), int(offset)


def _record(number: int, part: Part) -> Iterator[bytes]:
    """A record in pieces: its length, its fields, and what is in them."""
    key = [_varint(-1)] if not part.key else [_varint(part.key), *_zeros(part.key)]
    value = [_varint(len(part.value)), part.value] if part.value else [_varint(part.size), *_zeros(part.size)]
    header = [_varint(1), _varint(1), b"h", _varint(part.header), *_zeros(part.header)] if part.header else [_varint(0)]
    pieces = [b"\0", _varint(0), _varint(number), *key, *value, *header]
    yield _varint(sum(map(len, pieces)))
    yield from pieces


def _zeros(size: int) -> Iterator[bytes]:
    chunk = bytes(_CHUNK)
    for start in range(0, size, _CHUNK):
        yield chunk[: min(_CHUNK, size - start)]


def _varint(number: int) -> bytes:
    zigzag, out = (number << 1) ^ (number >> 63), bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _table() -> list[int]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        found.append(byte)
    return found


_TABLE: Final = _table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
