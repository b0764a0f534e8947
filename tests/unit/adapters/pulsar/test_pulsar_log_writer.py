"""Which partition a key belongs to."""

import pytest

from controller.log.pulsar.writing import partition_of


@pytest.mark.parametrize(
    ("key", "partitions", "found"),
    [
        # java: ("tenant/ns".hashCode() & Integer.MAX_VALUE) % partitions, and so on
        ("", 7, 0),
        ("a", 7, 97 % 7),
        ("tenant/ns", 1000, (2442141002 & 0x7FFFFFFF) % 1000),
        ("broker-1:8080", 1, 0),
    ],
)
def test_a_key_belongs_to_the_partition_that_producers_in_java_choose(key: str, partitions: int, found: int) -> None:
    assert partition_of(key, partitions) == found


def test_characters_beyond_the_first_plane_count_as_two() -> None:
    high, low = 0xD83D, 0xDE00
    assert partition_of("\U0001f600", 10_007) == (31 * high + low) % 10_007


def test_every_partition_gets_keys() -> None:
    assert {partition_of(f"broker-{nth}:8080", 4) for nth in range(100)} == {0, 1, 2, 3}
