"""Tables of a FlatBuffer, which is what Arrow describes its messages in.

Each place is checked against the bytes there are before it is read.  streaming/jvm/FlatTable.java reads the same.
"""

import struct
from typing import Final, Self

from controller.model.errors import WireError

_OFFSET: Final = struct.Struct("<I")
_BACK: Final = struct.Struct("<i")
_ENTRY: Final = struct.Struct("<H")
#: By how many bytes a number has; one or two bytes are unsigned.
_NUMBERS: Final = {1: struct.Struct("<B"), 2: _ENTRY, 4: _BACK, 8: struct.Struct("<q")}


class FlatTable:
    """One table; a method asks for the field *nth* of it.  WireError where a place lies outside of the bytes."""

    def __init__(self, value: bytes, at: int) -> None:
        self._value = value
        self._at = _checked(value, at, 4)
        #: Where the places of the fields are listed, and how long that list is, its head included.
        self._list = _checked(value, at - _BACK.unpack_from(value, at)[0], 4)
        self._listed: int = _ENTRY.unpack_from(value, self._list)[0]

    @classmethod
    def first(cls, value: bytes) -> Self:
        """The table that the FlatBuffer *value* begins with."""
        return cls(value, _target(value, _checked(value, 0, 4)))

    def number(self, nth: int, size: int, other: int = 0) -> int:
        """A number of *size* bytes, or *other* where the table has none."""
        place = self._place(nth, size)
        if place is None:
            return other
        number: int = _NUMBERS[size].unpack_from(self._value, place)[0]
        return number

    def table(self, nth: int) -> "FlatTable":
        """Another table; WireError where there is none."""
        table = self.table_or_none(nth)
        if table is None:
            raise WireError("not_json", f"not an Arrow stream: a table lacks its field {nth}")
        return table

    def table_or_none(self, nth: int) -> "FlatTable | None":
        """Another table, or None."""
        place = self._place(nth, 4)
        return None if place is None else FlatTable(self._value, _target(self._value, place))

    def vector(self, nth: int, size: int) -> bytes:
        """A list of elements of *size* bytes, as its bytes; empty where there is none."""
        start, length = self._extent(nth, size)
        return self._value[start : start + length]

    def length(self, nth: int) -> int:
        """How many bytes a text has, or elements another list; that they are all there is not looked at."""
        return self._extent(nth, 1)[1]

    def tables(self, nth: int, limit: int) -> list["FlatTable"]:
        """A list of *limit* tables at most."""
        start, length = self._extent(nth, 4)
        if length > 4 * limit:
            raise WireError("bad_value", f"an Arrow list of {length // 4} entries, allowed: {limit}")
        return [FlatTable(self._value, _target(self._value, at)) for at in range(start, start + length, 4)]

    def _extent(self, nth: int, size: int) -> tuple[int, int]:
        """Where a list begins, and how many bytes it has."""
        place = self._place(nth, 4)
        if place is None:
            return 0, 0
        start = _checked(self._value, _target(self._value, place), 4)
        length: int = _OFFSET.unpack_from(self._value, start)[0] * size
        return _checked(self._value, start + 4, length), length

    def _place(self, nth: int, size: int) -> int | None:
        entry = 4 + 2 * nth
        if entry + 2 > self._listed:
            return None
        (offset,) = _ENTRY.unpack_from(self._value, _checked(self._value, self._list + entry, 2))
        return None if offset == 0 else _checked(self._value, self._at + offset, size)


def _target(value: bytes, place: int) -> int:
    """Where the offset at *place* points."""
    offset: int = _OFFSET.unpack_from(value, place)[0]
    return place + offset


def _checked(value: bytes, place: int, size: int) -> int:
    """*place*, where *size* bytes lie from it on."""
    if place < 0 or place > len(value) - size:
        raise WireError("not_json", f"not an Arrow stream: {size} bytes at {place} of {len(value)}")
    return place
