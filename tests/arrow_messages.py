"""The messages of an Arrow stream, and where their fields lie, so that a test can change one of them."""

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A table of the FlatBuffer that describes a message: *at* in *value*."""

    value: bytes
    at: int

    def field(self, nth: int) -> int:
        """Where the field *nth* of the table lies."""
        (back,) = struct.unpack_from("<i", self.value, self.at)
        (offset,) = struct.unpack_from("<H", self.value, self.at - back + 4 + 2 * nth)
        assert offset
        return self.at + int(offset)

    def entry(self, nth: int) -> int:
        """Where the table's list says the place of its field *nth*."""
        (back,) = struct.unpack_from("<i", self.value, self.at)
        return self.at - int(back) + 4 + 2 * nth

    def table(self, nth: int) -> "Place":
        """The table, or the list, that the field *nth* points at."""
        at = self.field(nth)
        return Place(self.value, at + struct.unpack_from("<I", self.value, at)[0])

    def element(self, nth: int, number: int) -> "Place":
        """The table *number* of the list of tables in the field *nth*."""
        at = self.table(nth).at + 4 + 4 * number
        return Place(self.value, at + struct.unpack_from("<I", self.value, at)[0])


@dataclass(frozen=True, slots=True)
class Message:
    """One message: it begins at *at*, its description 8 bytes later, its body behind that."""

    value: bytes
    at: int

    @property
    def root(self) -> Place:
        """The message's own table: version, kind, what is described, length of the body."""
        return Place(self.value, self.at + 8 + struct.unpack_from("<I", self.value, self.at + 8)[0])

    @property
    def body(self) -> int:
        """Where its body begins."""
        return self.at + 8 + int(struct.unpack_from("<i", self.value, self.at + 4)[0])

    @property
    def end(self) -> int:
        """Where its body ends."""
        return self.body + int(struct.unpack_from("<q", self.value, self.root.field(3))[0])

    def buffer(self, nth: int) -> int:
        """Where a record batch lists its buffer *nth*: its place in the body, then its length, 8 bytes each."""
        return self.root.table(2).table(2).at + 4 + 16 * nth


def schema(value: bytes) -> Message:
    """The first message of *value*."""
    return Message(value, 0)


def dictionary(value: bytes) -> Message:
    """The second one, which has the names of the bundles."""
    return Message(value, schema(value).body)


def batch(value: bytes) -> Message:
    """The third one, which has the topics."""
    return Message(value, dictionary(value).end)


def put(value: bytes, place: int, form: str, *numbers: int) -> bytes:
    """*value* with *numbers* at *place*, written as struct's *form* says."""
    new = struct.pack(form, *numbers)
    return value[:place] + new + value[place + len(new) :]
