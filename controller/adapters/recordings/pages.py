"""How much the pages of a Parquet file unpack to, read from their headers before anything is unpacked.

A file's footer says how large its columns are, and Parquet's readers do not hold the pages to it: a few bytes may
unpack to gigabytes, a dictionary or a delta encoding may repeat one large value a million times, and a run of a few
bytes may stand for a billion nulls.  So every page is looked at first, and only the encodings that trimtab writes are
allowed: in these a value takes the bytes that the page's header counts, and what its number of values says.

Parquet's format: PageHeader and DataPageHeader in Thrift's compact protocol.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from controller.adapters.recordings.manifest import LARGEST_FILE, RecordingError

#: Kinds of fields in Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
#: Depth of structures in a page's header at most; there are two.
_DEEPEST: Final = 8
#: Bytes of a page's header at most; those that trimtab writes have about 30.
_LONGEST_HEADER: Final = 1024
#: PageHeader: the field with the DataPageHeader.
_DATA_PAGE_HEADER: Final = 5
#: PageType: a data page of the first version.
_DATA_PAGE: Final = 0
#: Encoding: of values PLAIN and BYTE_STREAM_SPLIT, of the levels that nulls and lists are made of RLE.
_OF_VALUES: Final = (0, 9)
_OF_LEVELS: Final = (3, 3)
_LONGEST_NUMBER: Final = 10
#: Pages of a file at most; writers make one or two for each column.
_MOST_PAGES: Final = 1000
#: Bytes of memory for a value, besides those of the page: levels and offsets; a null has no bytes in the page.
OF_A_VALUE: Final = 16
#: Of a header's name, and of its value: each header becomes objects of Python.
OF_A_HEADER: Final = 128


class _Page(NamedTuple):
    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int
    #: Encodings of definition levels and of repetition levels.
    levels: tuple[int, int]


def refuse_bombs(about: Any, content: bytes, where: object) -> None:
    """Raise RecordingError where the file of the metadata *about* unpacks to more than a recording's file may have.

    Or where it is written in another way than trimtab does: what it unpacks to would not be known.
    """
    if about.num_row_groups != 1 or about.row_group(0).num_rows != about.num_rows:
        raise RecordingError(f"{where}: has {about.num_row_groups} row groups: trimtab writes one, with all records")
    room, pages = LARGEST_FILE, _MOST_PAGES
    for number in range(about.num_columns):
        column = about.row_group(0).column(number)
        name, start, size = column.path_in_schema, column.data_page_offset, column.total_compressed_size
        if column.has_dictionary_page or start < 0 or size < 0 or start + size > len(content):
            raise RecordingError(f"{where}: column {name} does not have the layout that trimtab writes")
        of_a_value = OF_A_HEADER if name.startswith("headers.") else OF_A_VALUE
        for page in _pages(content, start, start + size, where):
            if page.kind != _DATA_PAGE or page.encoding not in _OF_VALUES or page.levels != _OF_LEVELS:
                raise RecordingError(f"{where}: column {name} has a kind of page that trimtab does not write")
            pages, room = pages - 1, room - page.unpacked - of_a_value * page.values
            if room < 0 or pages < 0:
                raise RecordingError(f"{where}: unpacks to more than {LARGEST_FILE} bytes")


def _pages(content: bytes, start: int, end: int, where: object) -> Iterator[_Page]:
    reader = _Compact(content, start, end)
    while reader.at < end:
        try:
            page = _page(reader.header())
        except (IndexError, ValueError) as error:
            raise RecordingError(f"{where}: a page's header cannot be read") from error
        yield page
        reader.at += page.packed


def _page(fields: Mapping[int, object]) -> _Page:
    kind, unpacked, packed = (_number(fields.get(field)) for field in (1, 2, 3))
    about = fields.get(_DATA_PAGE_HEADER)
    if not isinstance(about, dict):  # a page of another kind
        return _Page(kind, unpacked, packed, 0, -1, (-1, -1))
    values, encoding, definition, repetition = (_number(about.get(field)) for field in (1, 2, 3, 4))
    return _Page(kind, unpacked, packed, values, encoding, (definition, repetition))


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("a size is missing")
    return value


def _refuse_deep(depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("too deep")


class _Compact:
    """Reads structures of Thrift's compact protocol, as far as they have numbers."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self.at, self._column_end, self._end = content, at, end, end

    def header(self) -> dict[int, object]:
        """The structure that begins here, a page's header.  ValueError where it is none, or too long."""
        self._end = min(self._column_end, self.at + _LONGEST_HEADER)
        return self.struct()

    def struct(self, depth: int = 0) -> dict[int, object]:
        """Field -> its number, or the fields of its structure; None for other kinds of fields."""
        _refuse_deep(depth)
        fields: dict[int, object] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            fields[field] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> object:
        if kind in (_TRUE, _FALSE):
            return None
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_BYTE, _DOUBLE):
            self._skip(1 if kind == _BYTE else 8)
        elif kind in (_LIST, _SET):
            self._list(depth)
        else:
            raise ValueError("a type that page headers do not have")
        return None

    def _list(self, depth: int) -> None:
        _refuse_deep(depth)
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
