"""One file of a recording: Parquet with a row for each record.

Rows are ordered by partition, key and offset: the sweeps of a broker follow each other and differ in little, which is
what makes them small.  Numbers of JSON lie in a column of their own (controller.wire.split_json), and of rows with one
text the first alone holds it (controller.adapters.recordings.repeated).  Readers put rows in order, and values
together, again.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from controller.adapters.recordings.manifest import LARGEST_FILE, MOST_RECORDS, RecordingError
from controller.adapters.recordings.pages import OF_A_HEADER, OF_A_VALUE, refuse_bombs
from controller.adapters.recordings.record_log import StoredRecord
from controller.adapters.recordings.repeated import MARK, Shape, shape_of, shortened, whole
from controller.model.load import Ints
from controller.wire.split_json import HOLE, Decimals, SplitJson, joined, split

_HEADERS: Final = pa.list_(
    pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
)
#: Of every file of records.
SCHEMA: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        # Epoch ms.
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        # Without its numbers, where there are digits; or a mark that it is that of the row before.
        pa.field("value", pa.binary(), nullable=False),
        pa.field("headers", _HEADERS),
        pa.field("digits", pa.list_(pa.int64())),
        # A byte for each number.
        pa.field("decimals", pa.binary()),
    ]
)
_COMPRESSION: Final = "zstd"
#: Sweeps of a minute ago are found again in a window of this level; higher ones take several times as long.
_LEVEL: Final = 9
#: Bytes of a number: its digits, its decimals, and a level of each.
_DIGITS_BYTES: Final = 12
#: Bytes of a value besides its own: its length and its levels.
_OF_A_ROW: Final = 12
#: A page is compressed by itself: the whole column in one finds what repeats.
_PAGE_BYTES: Final = LARGEST_FILE


def unpacked_size(record: StoredRecord) -> int:
    """Bytes that *record* takes in a file before compression, about."""
    return len(record.value) + len(record.key or b"") + sum(len(n) + len(v) for n, v in record.headers) + 20


def read_size(record: StoredRecord) -> int:
    """Bytes of memory that *record* takes when its file is read, at most: as refuse_bombs counts them."""
    value, rows = record.value, len(SCHEMA) * (OF_A_VALUE + _OF_A_ROW) + 2 * OF_A_HEADER
    # Behind each number of JSON stands one of these.
    numbers = sum(map(value.count, (b",", b"]", b"}"))) if value.startswith(b"{") else 0
    headers = len(record.headers) * 2 * (OF_A_HEADER + _OF_A_ROW)
    return unpacked_size(record) + rows + headers + numbers * (_DIGITS_BYTES + OF_A_VALUE)


def packed(records: Sequence[StoredRecord]) -> bytes:
    """A file of *records*, which are of one topic."""
    rows = _rows(records)
    columns: list[Any] = [list(column) for column in zip(*(row.record for row in rows), strict=True)]
    columns[4], digits = _values_and_digits(rows)
    columns[5] = [[{"name": name, "value": value} for name, value in each] for each in columns[5]]
    columns += [digits, [None if row.decimals is None else row.decimals.tobytes() for row in rows]]
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=_COMPRESSION,
        compression_level=_LEVEL,
        use_dictionary=False,
        use_byte_stream_split=["digits.list.element"],
        data_page_size=_PAGE_BYTES,
        row_group_size=MOST_RECORDS,
        write_batch_size=MOST_RECORDS,
        write_statistics=False,
        store_schema=False,
        data_page_version="1.0",
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


class _Row(NamedTuple):
    """A record, and where it stands in its file."""

    record: StoredRecord
    #: Behind the first record whose text it has; each record once.
    place: int
    #: None where the value stays as it is.
    shape: Shape | None
    digits: Ints | None
    decimals: Decimals | None


def _rows(records: Sequence[StoredRecord]) -> list[_Row]:
    """*records* in the order of partitions, keys and offsets; but those with the same text follow each other."""
    ordered = sorted(records, key=lambda each: (each.partition, each.key or b"", each.offset))
    rows, places = list[_Row](), dict[Hashable, int]()
    for number, record in enumerate(ordered):
        parts = _split(record.value)
        if parts is None:
            rows.append(_Row(record, number, None, None, None))
            continue
        shape = shape_of(parts.text)
        place = places.setdefault((record.partition, record.key, *shape.same), number)
        rows.append(_Row(record, place, shape, parts.digits, parts.decimals))
    return sorted(rows, key=lambda row: row.place)


def _values_and_digits(rows: Sequence[_Row]) -> tuple[list[bytes], list[Ints | None]]:
    values, digits = list[bytes](), list[Ints | None]()
    for _, stretch in groupby(rows, key=lambda row: row.place):
        same = list(stretch)
        parts = [(row.shape, row.digits) for row in same if row.shape is not None and row.digits is not None]
        if not parts:
            values.append(same[0].record.value)
            digits.append(None)
            continue
        texts, numbers = shortened(parts)
        values += texts
        digits += numbers
    return values, digits


def unpacked(content: bytes, where: object) -> pa.Table:
    """The table in a file with *content*, its rows in the order of partitions and offsets; RecordingError of *where*.

    Each row is whole: none repeats another.

    Rows have about the order of time, and that of offsets within a partition.
    """
    try:
        source = pq.ParquetFile(
            pa.BufferReader(content), thrift_string_size_limit=1 << 20, thrift_container_size_limit=1 << 20
        )
        _refuse_large(source, content, where)
        table = source.read(use_threads=False)
        table.validate(full=True)
    except RecordingError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise RecordingError(
            f"{where}: is not a Parquet file of a recording: {' '.join(str(error).split())[:300]}"
        ) from error
    return _in_order(_whole(table, where))


def _whole(table: pa.Table, where: object) -> pa.Table:
    """*table* with the rows that repeat others made whole."""
    values, digits = table.column("value").to_pylist(), table.column("digits").combine_chunks()
    split_up = np.asarray(table.column("decimals").is_valid())
    repeats = [is_split and value.startswith(MARK) for value, is_split in zip(values, split_up, strict=True)]
    if not any(repeats):
        return table
    numbers, lengths = digits.flatten(), np.asarray(digits.value_lengths().fill_null(0))
    if numbers.null_count:
        raise RecordingError(f"{where}: has digits that are not valid")
    ends = np.cumsum(lengths)
    made = whole(values, repeats, np.asarray(numbers), ends, where)
    starts = pa.array(np.concatenate([[0], ends]), pa.int32())
    lists = pa.ListArray.from_arrays(starts, pa.array(made.digits), mask=digits.is_null())
    for name, column in (("value", pa.array(made.values, pa.binary())), ("digits", lists)):
        at = SCHEMA.get_field_index(name)
        table = table.set_column(at, SCHEMA.field(at), column.cast(SCHEMA.field(at).type))
    return table


class SplitRecord(NamedTuple):
    """One row: a record whose value may be in parts."""

    partition: int
    offset: int
    #: Epoch ms.
    timestamp_ms: int
    value: bytes | SplitJson

    @property
    def whole(self) -> bytes:
        """The value as it was."""
        return self.value if isinstance(self.value, bytes) else joined(self.value)


def split_records_of(table: pa.Table, where: object) -> list[SplitRecord]:
    """The rows of *table* without keys and headers.  RecordingError of *where* for parts that do not fit together."""
    places = (table.column(name).to_pylist() for name in ("partition", "offset", "timestamp"))
    return list(map(SplitRecord, *places, _values(table, where)))


def records_of(table: pa.Table, where: object) -> list[StoredRecord]:
    """The rows of *table* as records.  RecordingError of *where* for parts that do not fit together."""
    keys, headers = (table.column(name).to_pylist() for name in ("key", "headers"))
    named = [tuple((each["name"], each["value"]) for each in row or ()) for row in headers]
    rows = zip(split_records_of(table, where), keys, named, strict=True)
    return [StoredRecord(*row[:3], key, row.whole, header) for row, key, header in rows]


def _values(table: pa.Table, where: object) -> Iterator[bytes | SplitJson]:
    texts, decimals = (table.column(name).to_pylist() for name in ("value", "decimals"))
    digits = table.column("digits").combine_chunks()
    numbers, ends = np.asarray(digits.flatten()), np.cumsum(np.asarray(digits.value_lengths().fill_null(0)))
    if digits.flatten().null_count or (numbers < 0).any():
        raise RecordingError(f"{where}: has digits that are not valid")
    start = 0
    for text, decimal, end in zip(texts, decimals, ends.tolist(), strict=True):
        if decimal is None:
            if end != start:
                raise RecordingError(f"{where}: has numbers without decimals")
            yield text
        else:
            if not len(decimal) == end - start == text.count(HOLE):
                raise RecordingError(f"{where}: has {end - start} numbers for {text.count(HOLE)} places")
            yield SplitJson(text, numbers[start:end], np.frombuffer(decimal, np.uint8))
        start = end


def _split(value: bytes) -> SplitJson | None:
    return split(value) if value.startswith(b"{") else None


def _refuse_large(source: pq.ParquetFile, content: bytes, where: object) -> None:
    about = source.metadata
    if not source.schema_arrow.equals(SCHEMA):
        columns = ", ".join(f"{field.name} {field.type}" for field in source.schema_arrow)[:300]
        raise RecordingError(f"{where}: has the columns {columns}, expected those of a recording")
    if about.num_rows > MOST_RECORDS:
        raise RecordingError(f"{where}: has {about.num_rows} records, allowed: {MOST_RECORDS}")
    refuse_bombs(about, content, where)


def _in_order(table: pa.Table) -> pa.Table:
    partition, offset, time = (table.column(name).to_numpy() for name in ("partition", "offset", "timestamp"))
    order = np.lexsort((offset, partition))
    # Clocks may step back: within a partition a record is as late as the latest one before it.
    late = time[order].copy()
    starts = np.flatnonzero(np.diff(partition[order], prepend=-1))
    for lo, hi in zip(starts, [*starts[1:], len(late)], strict=True):
        late[lo:hi] = np.maximum.accumulate(late[lo:hi])
    return table.take(pa.array(order[np.argsort(late, kind="stable")]))
