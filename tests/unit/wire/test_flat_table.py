"""FlatBuffers made by hand, so that every place and every bound is a number of this page."""

import struct

import pytest

from controller.model.errors import WireError
from controller.wire.flat_table import FlatTable


def buffer(*places: int, fields: bytes = b"", behind: bytes = b"") -> bytes:
    """A FlatBuffer of one table: the list of its fields' *places* at 4, then the table with its *fields*.

    The table begins at ``8 + 2 * len(places)``; its own first 4 bytes say how far back the list lies.
    """
    listed = 4 + 2 * len(places)
    list_of_fields = struct.pack(f"<HH{len(places)}H", listed, 4 + len(fields), *places)
    return struct.pack("<I", 4 + listed) + list_of_fields + struct.pack("<i", listed) + fields + behind


def refusal(value: bytes) -> str:
    with pytest.raises(WireError) as caught:
        FlatTable.first(value)
    return f"{caught.value.reason}: {caught.value.detail}"


def detail(read: object) -> str:
    with pytest.raises(WireError) as caught:
        read()  # type: ignore[operator]
    return f"{caught.value.reason}: {caught.value.detail}"


def test_numbers_of_one_and_two_bytes_are_unsigned_and_those_of_four_and_eight_signed() -> None:
    table = FlatTable.first(buffer(4, fields=b"\xff" * 8))
    assert [table.number(0, size) for size in (1, 2, 4, 8)] == [255, 65535, -1, -1]
    table = FlatTable.first(buffer(4, 5, 7, 11, fields=bytes(range(1, 16))))
    assert [table.number(nth, size) for nth, size in enumerate((1, 2, 4, 8))] == [
        0x01, 0x0302, 0x07060504, 0x0F0E0D0C0B0A0908,
    ]  # fmt: skip


def test_a_field_that_is_not_listed_or_has_no_place_is_the_other_number() -> None:
    table = FlatTable.first(buffer(0, 4, fields=b"\x07"))
    assert (table.number(0, 1), table.number(0, 8, 9)) == (0, 9)
    assert (table.number(1, 1), table.number(2, 1), table.number(2, 1, 5)) == (7, 0, 5)
    assert table.table_or_none(0) is None
    assert (table.vector(0, 8), table.length(2), table.tables(0, 1)) == (b"", 0, [])


def test_a_table_that_must_be_there_and_is_not_is_named_by_its_number() -> None:
    table = FlatTable.first(buffer(0))
    assert detail(lambda: table.table(3)) == "not_json: not an Arrow stream: a table lacks its field 3"


def test_a_number_lies_whole_within_the_bytes() -> None:
    # The table begins at 10, its field at 14: 8 bytes of it end with the value.
    assert FlatTable.first(buffer(4, fields=b"\x01" + bytes(7))).number(0, 8) == 1
    short = FlatTable.first(buffer(4, fields=bytes(7)))
    assert detail(lambda: short.number(0, 8)) == "not_json: not an Arrow stream: 8 bytes at 14 of 21"


def test_a_list_of_fields_lies_whole_within_the_bytes() -> None:
    # The list at 4 says that it has 40 bytes; the value ends at 12.
    table = FlatTable.first(struct.pack("<IHHi", 8, 40, 4, 4))
    assert table.number(1, 1) == 0
    assert detail(lambda: table.number(2, 1)) == "not_json: not an Arrow stream: 2 bytes at 12 of 12"


def test_root_table_and_list_lie_within_the_bytes() -> None:
    assert refusal(b"\0\0\0") == "not_json: not an Arrow stream: 4 bytes at 0 of 3"
    assert refusal(struct.pack("<Iii", 9, 4, 0)) == "not_json: not an Arrow stream: 4 bytes at 9 of 12"
    # The list would begin 1 before the value, or 4 bytes before its end and one more.
    assert refusal(struct.pack("<Iii", 4, 5, 0)) == "not_json: not an Arrow stream: 4 bytes at -1 of 12"
    assert refusal(struct.pack("<Iii", 4, -5, 0)) == "not_json: not an Arrow stream: 4 bytes at 9 of 12"
    assert FlatTable.first(struct.pack("<Iii", 4, -4, 4)).number(0, 1) == 0


def test_a_list_is_its_bytes_and_ends_within_the_value() -> None:
    # The place of the list is at 14 and says 8: its length stands at 22.
    def with_list(entries: int, content: bytes) -> FlatTable:
        return FlatTable.first(buffer(4, fields=struct.pack("<II", 8, 0), behind=struct.pack("<I", entries) + content))

    assert with_list(3, b"abcdef").vector(0, 2) == b"abcdef"
    assert with_list(3, b"abcdefg").vector(0, 1) == b"abc"
    assert with_list(3, b"abc").length(0) == 3
    assert detail(lambda: with_list(3, b"abcde").vector(0, 2)) == "not_json: not an Arrow stream: 6 bytes at 26 of 31"
    assert detail(lambda: with_list(2**32 - 1, b"").length(0)) == (
        "not_json: not an Arrow stream: 4294967295 bytes at 26 of 26"
    )


def test_a_list_of_tables_has_as_many_as_allowed_and_no_more() -> None:
    # The list at 18 has entries at 22 and 26, both the table at 30, whose list of fields is the root's.
    behind = struct.pack("<IIIi", 2, 8, 4, 30 - 4) + b"\x2a"
    table = FlatTable.first(buffer(4, fields=struct.pack("<I", 4), behind=behind))
    for most in (2, 3):
        found = table.tables(0, most)
        assert [entry.number(0, 1) for entry in found] == [42, 42]
    assert detail(lambda: table.tables(0, 1)) == "bad_value: an Arrow list of 2 entries, allowed: 1"
    # Of a table that is one field of another.
    inner = FlatTable.first(buffer(4, fields=struct.pack("<I", 4), behind=struct.pack("<i", 18 - 4) + b"\x2b"))
    assert inner.table(0).number(0, 1) == 43
