"""The hash functions that a Pulsar NamespaceBundleFactory can use to place a topic on the hash ring.

Brokers look topics up by CRC32, whatever function the factory has, so trimtab needs no other one
(``controller.model.names.topic_hash``).

Pulsar: NamespaceBundleFactory.getLongHashCode over Guava's com.google.common.hash.Hashing, strings as UTF-8.
"""

import hashlib
import zlib
from collections.abc import Callable, Mapping
from typing import Final

_MASK: Final = 0xFFFFFFFF


def crc32(text: str) -> int:
    """CRC-32 of ZIP and Ethernet, unsigned."""
    return zlib.crc32(text.encode())


def adler32(text: str) -> int:
    """Adler-32, unsigned."""
    return zlib.adler32(text.encode())


def crc32c(text: str) -> int:
    """CRC-32C (Castagnoli), unsigned."""
    crc = _MASK
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ _MASK


def sha256(text: str) -> int:
    """The first 8 bytes of SHA-256 as a Java long: little-endian, signed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little", signed=True)


def murmur3_32_fixed(text: str) -> int:
    """MurmurHash3 x86 32-bit with seed 0, unsigned."""
    data = text.encode()
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    if len(data) % 4 == 0:
        words.append(0)  # an empty tail, which changes nothing
    return _murmur3(words, len(data))


def murmur3_32(text: str) -> int:
    """Guava's original murmur3_32, unsigned, which Guava keeps for compatibility.

    It differs from the fixed version for characters beyond U+FFFF: their four bytes do not advance the write
    position, so the next bytes overwrite them.  The length still counts them.
    """
    words, buffer, shift, length = [], 0, 0, 0
    for char in text:
        data = char.encode()
        buffer |= int.from_bytes(data, "little") << shift
        length += len(data)
        if len(data) < 4:
            shift += 8 * len(data)
        if shift >= 32:
            words.append(buffer & _MASK)
            buffer, shift = buffer >> 32, shift - 32
    return _murmur3([*words, buffer & _MASK], length)


def _murmur3(words: list[int], length: int) -> int:
    """Mix the whole words, then the tail (the last word), then the length."""
    state = 0
    *whole, tail = words
    for word in whole:
        state = (_rotate(state ^ _scramble(word), 13) * 5 + 0xE6546B64) & _MASK
    state ^= _scramble(tail) ^ length
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _scramble(word: int) -> int:
    return _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


#: Guava's name -> function of a full topic name.
HASHES: Final[Mapping[str, Callable[[str], int]]] = {
    "crc32": crc32,
    "crc32c": crc32c,
    "murmur3_32": murmur3_32,
    "murmur3_32_fixed": murmur3_32_fixed,
    "adler32": adler32,
    "sha256": sha256,
}
