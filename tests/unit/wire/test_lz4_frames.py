"""LZ4 frames made by hand, as a column of an Arrow stream: which are read, and which are refused before."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from tests.arrow_messages import batch, put
from tests.unit.wire.test_arrow_bounds import MSG_RATE_IN, SPOILT
from tests.unit.wire.test_wire_arrow import decode, packed, refusal, value

NOT_A_FRAME = (
    f"{SPOILT}a compressed buffer is not one whole LZ4 frame of version 1 without a dictionary or block checksums"
)
#: Flags: version 1, blocks do not depend on each other; then what they add.
VERSION_1, BLOCK_CHECKSUMS, CONTENT_SIZE, CONTENT_CHECKSUM = 0x60, 0x10, 0x08, 0x04
#: Largest block: 64 KiB.
KIB_64 = 0x40
#: So large that its column has 65,536 bytes.
ROWS = 8192
RATES = np.random.default_rng(1).random(ROWS)
OTHER_SIZE = f"{SPOILT}a compressed buffer does not unpack to the {8 * ROWS} bytes that it announces"


def xxh32(data: bytes) -> int:
    """The checksum of LZ4 frames, XXH32 with seed 0."""
    primes = (2654435761, 2246822519, 3266489917, 668265263, 374761393)

    def turned(number: int, by: int) -> int:
        number &= 0xFFFFFFFF
        return (number << by | number >> (32 - by)) & 0xFFFFFFFF

    lanes = [primes[0] + primes[1], primes[1], 0, -primes[0]]
    at = 0
    while len(data) - at >= 16:
        lanes = [turned(lane + word * primes[1], 13) * primes[0] for lane, word in zip(
            lanes, struct.unpack_from("<4I", data, at), strict=True)]  # fmt: skip
        at += 16
    found = sum(turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) if at else primes[4]
    found += len(data)
    while len(data) - at >= 4:
        found = turned(found + struct.unpack_from("<I", data, at)[0] * primes[2], 17) * primes[3]
        at += 4
    for byte in data[at:]:
        found = turned(found + byte * primes[4], 11) * primes[0]
    found &= 0xFFFFFFFF
    found = (found ^ found >> 15) * primes[1] & 0xFFFFFFFF
    found = (found ^ found >> 13) * primes[2] & 0xFFFFFFFF
    return found ^ found >> 16


def frame(*blocks: bytes, flags: int = VERSION_1, descriptor: int = KIB_64) -> bytes:
    """A frame of blocks that are not compressed, with the checksums and the size that *flags* promise."""
    content = b"".join(blocks)
    made = head(flags, descriptor, len(content))
    for block in blocks:
        made += struct.pack("<I", 1 << 31 | len(block)) + block
        if flags & BLOCK_CHECKSUMS:
            made += struct.pack("<I", xxh32(block))
    made += bytes(4)
    return made + struct.pack("<I", xxh32(content)) if flags & CONTENT_CHECKSUM else made


def head(flags: int, descriptor: int, size: int) -> bytes:
    made = struct.pack("<BB", flags, descriptor)
    if flags & CONTENT_SIZE:
        made += struct.pack("<Q", size)
    return struct.pack("<I", 0x184D2204) + made + struct.pack("<B", xxh32(made) >> 8 & 0xFF)


def compressed(*blocks: bytes, flags: int = VERSION_1) -> bytes:
    """A frame of compressed blocks."""
    return head(flags, KIB_64, 0) + b"".join(struct.pack("<I", len(block)) + block for block in blocks) + bytes(4)


def literals(content: bytes, match: int = 0) -> bytes:
    """A sequence of literals alone, whose token has *match* for the length of a match."""
    token = min(len(content), 15) << 4 | match
    return bytes([token, len(content) - 15] if len(content) >= 15 else [token]) + content


def stream_of(rows: int) -> bytes:
    """A sweep of so many topics."""
    load = np.stack([RATES[:rows]] * 4, axis=1)
    topics = {"bundle": np.zeros(rows, np.int64), "topics": [""] * rows, "counts": np.zeros((rows, 2), np.int64)}
    return value(load=load, **topics)


WHOLE, FEW = stream_of(ROWS), stream_of(5)


def with_frame(made: bytes, whole: bytes = WHOLE) -> bytes:
    """The stream *whole* with *made* for the column msgRateIn, behind all that it had."""
    stream = packed(whole, "lz4")[:-8]
    message = batch(stream)
    (end,) = struct.unpack_from("<q", stream, message.root.field(3))
    body = struct.pack("<q", 8 * (ROWS if whole is WHOLE else 5)) + made
    stream = put(stream, message.root.field(3), "<q", end + len(body))
    return put(stream, message.buffer(MSG_RATE_IN), "<qq", end, len(body)) + body


def rates(stream: bytes) -> list[float]:
    sweep = decode(stream)
    assert sweep is not None
    found: list[float] = sweep.batch.column("msgRateIn").to_pylist()
    return found


_BYTES = RATES[:5].tobytes()
#: Two blocks, whose last tokens have lengths of matches that nothing follows.
MATCH_BEHIND_ITS_END = compressed(literals(_BYTES[:30], 9), literals(_BYTES[30:], 15))
#: 8 literals, a match of 24 bytes that lies 0 bytes back, 8 literals.
MATCH_NOWHERE = compressed(literals(_BYTES[:8], 15) + bytes([0, 0, 24 - 4 - 15]) + literals(_BYTES[32:]))


def test_the_checksum_is_the_one_that_lz4_asks_for() -> None:
    assert (xxh32(b""), xxh32(b"abc")) == (0x02CC5D05, 0x32D153FF)
    assert xxh32(bytes(range(32)))
    squeezed = pa.compress(b"abc", codec="lz4", asbytes=True)
    assert squeezed[6] == xxh32(squeezed[4:6]) >> 8 & 0xFF


@pytest.mark.parametrize("checksum", [0, CONTENT_CHECKSUM])
@pytest.mark.parametrize("size", [0, CONTENT_SIZE])
def test_a_frame_may_have_a_checksum_and_its_size(checksum: int, size: int) -> None:
    content = RATES[:5].tobytes()
    for blocks in ([content], [content[:30], content[30:]]):
        made = frame(*blocks, flags=VERSION_1 | checksum | size)
        assert rates(with_frame(made, FEW)) == RATES[:5].tolist()


def test_checksums_of_blocks_are_refused() -> None:
    for more in (0, CONTENT_SIZE, CONTENT_CHECKSUM):
        made = frame(RATES[:5].tobytes(), flags=VERSION_1 | BLOCK_CHECKSUMS | more)
        assert refusal(with_frame(made, FEW)) == NOT_A_FRAME


def test_the_last_token_of_a_block_may_tell_of_a_match_and_a_match_may_lie_nowhere() -> None:
    """Arrow's library reads these; tests/integration/test_rows_in_spark_and_python.py has the query read them, too."""
    assert rates(with_frame(MATCH_BEHIND_ITS_END, FEW)) == RATES[:5].tolist()
    assert rates(with_frame(MATCH_NOWHERE, FEW)) == [RATES[0], 0, 0, 0, RATES[4]]


@pytest.mark.parametrize("flags", [BLOCK_CHECKSUMS, CONTENT_SIZE, CONTENT_CHECKSUM])
def test_a_frame_without_what_its_flags_promise_or_with_more_is_refused(flags: int) -> None:
    for one, other in ((flags, 0), (0, flags)):
        made = bytearray(frame(RATES[:5].tobytes(), flags=VERSION_1 | one))
        made[4] = VERSION_1 | other
        assert refusal(with_frame(bytes(made), FEW)) == NOT_A_FRAME


@pytest.mark.parametrize("bit", [0x01, 0x02, 0x40, 0x80])
def test_another_version_a_dictionary_and_reserved_flags_are_refused(bit: int) -> None:
    assert refusal(with_frame(frame(RATES.tobytes(), flags=VERSION_1 ^ bit))) == NOT_A_FRAME


@pytest.mark.parametrize("bit", [0x01, 0x02, 0x04, 0x08, 0x40, 0x80])
def test_reserved_bits_and_block_sizes_that_are_none_are_refused(bit: int) -> None:
    assert refusal(with_frame(frame(RATES.tobytes(), descriptor=KIB_64 ^ bit))) == NOT_A_FRAME


def test_blocks_may_depend_on_each_other() -> None:
    assert rates(with_frame(frame(RATES.tobytes(), flags=0x40))) == RATES.tolist()


@pytest.mark.parametrize(("descriptor", "most"), [(0x40, 1 << 16), (0x50, 1 << 18), (0x60, 1 << 20), (0x70, 1 << 22)])
def test_a_block_is_as_large_as_the_frame_says_and_no_larger(descriptor: int, most: int) -> None:
    content = RATES.tobytes() * (most >> 16)
    # Of another size than the column's: the frame is read, and its content is refused.
    expected = OTHER_SIZE
    if most == 8 * ROWS:
        assert rates(with_frame(frame(content, descriptor=descriptor))) == RATES.tolist()
    else:
        assert refusal(with_frame(frame(content, descriptor=descriptor))) == expected
    assert refusal(with_frame(frame(content + b"\0", descriptor=descriptor))) == NOT_A_FRAME


def test_a_frame_is_whole_and_nothing_follows_it() -> None:
    made = frame(RATES.tobytes())
    for spoilt in (made[:-1], made[:-4], made + b"\0", made + bytes(4), made + made, made[:6], b"", b"\0" + made):
        assert refusal(with_frame(spoilt)) == NOT_A_FRAME
    checked = frame(RATES[:5].tobytes(), flags=VERSION_1 | CONTENT_CHECKSUM)
    for spoilt in (checked[:-1], checked[:-4], checked + b"\0"):
        assert refusal(with_frame(spoilt, FEW)) == NOT_A_FRAME


def test_a_block_that_ends_beyond_the_frame_is_refused() -> None:
    made = frame(RATES.tobytes()[:-8], b"12345678")
    assert rates(with_frame(made))[:-1] == RATES.tolist()[:-1]
    for length in (9, 12, 13, 100):
        # The second block's length stands before its 8 bytes and the end mark.
        assert refusal(with_frame(put(made, len(made) - 16, "<I", 1 << 31 | length))) == NOT_A_FRAME


def test_an_empty_frame_is_a_frame_and_an_empty_block_that_is_not_compressed_is_no_end() -> None:
    assert refusal(with_frame(frame())) == OTHER_SIZE
    made = frame(RATES.tobytes())
    assert refusal(with_frame(made[:-4] + struct.pack("<I", 1 << 31))) == NOT_A_FRAME


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_size_that_is_one_byte_off_is_refused(codec: str, more: int) -> None:
    squeezed = packed(WHOLE, codec)
    message = batch(squeezed)
    (start,) = struct.unpack_from("<q", squeezed, message.buffer(MSG_RATE_IN))
    assert refusal(put(squeezed, message.body + start, "<q", 8 * ROWS + more)).startswith(SPOILT)
