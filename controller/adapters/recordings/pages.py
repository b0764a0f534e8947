"""How much the pages of a Parquet file unpack to, read from their headers before anything is unpacked.

A file's footer says how large its columns are, and Parquet's readers do not hold the pages to it: a few bytes may
unpack to gigabytes, and a dictionary may name one large value a million times.  So every page is looked at first.

Parquet's format: PageHeader in Thrift's compact protocol.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from controller.adapters.recordings.damaged import RecordingError
from controller.adapters.recordings.manifest import LARGEST_FILE

#: Kinds of fields in Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
#: Depth of structures in a page's header at most; there are two.
_DEEPEST: Final = 8
#: A data page, and one of the second version.
_DATA_PAGES: Final = (0, 3)
_LONGEST_NUMBER: Final = 10
#: Pages of a file at most; writers make one or two for each column.
_MOST_PAGES: Final = 10_000


class _Page(NamedTuple):
    kind: int
    unpacked: int
    packed: int


def refuse_bombs(about: Any, content: bytes, where: object) -> None:
    """Raise RecordingError where the file of the metadata *about* unpacks to more than a recording's file may have."""
    room, pages = LARGEST_FILE, _MOST_PAGES
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            column = about.row_group(group).column(number)
            start, size = column.data_page_offset, column.total_compressed_size
            if column.has_dictionary_page or start < 0 or size < 0 or start + size > len(content):
                raise RecordingError(f"{where}: column {column.path_in_schema} is not as trimtab writes it")
            for page in _pages(content, start, start + size, where):
                pages, room = pages - 1, room - page.unpacked
                if page.kind not in _DATA_PAGES:
                    raise RecordingError(
                        f"{where}: column {column.path_in_schema} has pages that trimtab does not write"
                    )
                if room < 0 or pages < 0:
                    raise RecordingError(f"{where}: unpacks to more than {LARGEST_FILE} bytes")


def _pages(content: bytes, start: int, end: int, where: object) -> Iterator[_Page]:
    reader = _Compact(content, start, end)
    while reader.at < end:
        try:
            fields = reader.struct()
            page = _Page(*(_number(fields.get(name)) for name in (1, 2, 3)))
        except (IndexError, ValueError) as error:
            raise RecordingError(f"{where}: a page's header cannot be read") from error
        yield page
        reader.at += page.packed


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("a size is missing")
    return value


class _Compact:
    """Reads a structure of Thrift's compact protocol, as far as it has numbers."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self.at, self._end = content, at, end

    def struct(self, depth: int = 0) -> dict[int, object]:
        """Field -> its number; None for other kinds of fields."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, object] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            found[field] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> object:
        if kind in (_TRUE, _FALSE):
            return None
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _STRUCT:
            self.struct(depth + 1)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_BYTE, _DOUBLE):
            self._skip(1 if kind == _BYTE else 8)
        elif kind in (_LIST, _SET):
            self._list(depth)
        else:
            raise ValueError("a kind that page headers do not have")
        return None

    def _list(self, depth: int) -> None:
        head = self._byte()
        size = self._varint() if head >> 4 == 15 else head >> 4
        for _ in range(size):  # each takes a byte at least
            if head & 15 in (_TRUE, _FALSE):
                self._byte()
            else:
                self._value(head & 15, depth + 1)

    def _skip(self, size: int) -> None:
        if size > self._end - self.at:
            raise ValueError("beyond the column")
        self.at += size

    def _byte(self) -> int:
        if self.at >= self._end:
            raise ValueError("beyond the column")
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for number in range(_LONGEST_NUMBER):
            byte = self._byte()
            value |= (byte & 127) << (7 * number)
            if byte < 128:
                return value
        raise ValueError("a number that does not end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
