import pytest

from controller.model.names import topic_hash
from tests.conformance.brokers.hashes import HASHES

#: The text whose checksum every CRC catalogue gives.
DIGITS = "123456789"


@pytest.mark.parametrize(
    ("name", "text", "published"),
    [
        ("crc32", DIGITS, 0xCBF43926),
        ("crc32c", DIGITS, 0xE3069283),
        ("adler32", "Wikipedia", 0x11E60398),
        ("murmur3_32_fixed", "", 0),
        ("murmur3_32_fixed", "test", 0xBA6BD213),
        ("murmur3_32_fixed", "Hello, world!", 0xC0363E43),
        ("murmur3_32_fixed", "The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)
def test_hashes_equal_published_values(name: str, text: str, published: int) -> None:
    assert HASHES[name](text) == published


def test_sha256_is_read_as_a_little_endian_signed_long() -> None:
    digest_of_nothing = bytes.fromhex("e3b0c44298fc1c14")
    assert HASHES["sha256"]("") == int.from_bytes(digest_of_nothing, "little")
    assert HASHES["sha256"](DIGITS) == int.from_bytes(bytes.fromhex("15e2b0d3c33891eb"), "little", signed=True) < 0


@pytest.mark.parametrize("length", range(10))
@pytest.mark.parametrize("letter", ["a", "ß", "語"])
def test_both_murmur_hashes_agree_on_characters_of_up_to_three_bytes(length: int, letter: str) -> None:
    assert HASHES["murmur3_32"](letter * length) == HASHES["murmur3_32_fixed"](letter * length)


def test_the_original_murmur_overwrites_characters_of_four_bytes() -> None:
    assert HASHES["murmur3_32"]("topic-🚀-1") != HASHES["murmur3_32_fixed"]("topic-🚀-1")


def test_topics_are_looked_up_by_crc32() -> None:
    topic = "persistent://public/default/größe-🚀-partition-3"
    assert topic_hash(topic) == HASHES["crc32"](topic)
