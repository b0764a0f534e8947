"""One file of a recording: Parquet with a row for each record, compressed by zstd.

Rows are ordered by partition, key and offset: the sweeps of a broker follow each other and differ in little, which is
what makes them small.  Readers put rows in the order of offsets again.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from controller.adapters.recordings.manifest import LARGEST_FILE, MOST_RECORDS, RecordingError
from controller.adapters.recordings.pages import OF_A_HEADER, OF_A_VALUE, refuse_bombs
from controller.adapters.recordings.record_log import StoredRecord

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
        pa.field("value", pa.binary(), nullable=False),
        pa.field("headers", _HEADERS),
    ]
)
_COMPRESSION: Final = "zstd"
#: Sweeps of a minute ago are found again in a window of this level; higher ones take several times as long.
_LEVEL: Final = 9
#: Bytes of a value besides its own: its length and its levels.
_OF_A_ROW: Final = 12
#: A page is compressed by itself: the whole column in one finds what repeats.
_PAGE_BYTES: Final = LARGEST_FILE


def unpacked_size(record: StoredRecord) -> int:
    """Bytes that *record* takes in a file before compression, about."""
    return len(record.value) + len(record.key or b"") + sum(len(n) + len(v) for n, v in record.headers) + 20


def read_size(record: StoredRecord) -> int:
    """Bytes of memory that *record* takes when its file is read, at most: as refuse_bombs counts them."""
    rows = len(SCHEMA) * (OF_A_VALUE + _OF_A_ROW) + 2 * OF_A_HEADER
    return unpacked_size(record) + rows + len(record.headers) * 2 * (OF_A_HEADER + _OF_A_ROW)


def packed(records: Sequence[StoredRecord]) -> bytes:
    """A file of *records*, which are of one topic."""
    ordered = sorted(records, key=lambda each: (each.partition, each.key or b"", each.offset))
    columns = [list(column) for column in zip(*ordered, strict=True)]
    columns[5] = [[{"name": name, "value": value} for name, value in each] for each in columns[5]]
    table = pa.table([pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=_COMPRESSION,
        compression_level=_LEVEL,
        use_dictionary=False,
        data_page_size=_PAGE_BYTES,
        row_group_size=MOST_RECORDS,
        write_batch_size=MOST_RECORDS,
        write_statistics=False,
        store_schema=False,
        data_page_version="1.0",
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(content: bytes, where: object) -> pa.Table:
    """The table in a file with *content*, its rows in the order of partitions and offsets; RecordingError of *where*.

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
            f"{where}: is no Parquet file of a recording: {' '.join(str(error).split())[:300]}"
        ) from error
    return _in_order(table)


def records_of(table: pa.Table) -> list[StoredRecord]:
    """The rows of *table* as records."""
    columns = {name: table.column(name).to_pylist() for name in SCHEMA.names}
    columns["headers"] = [tuple((each["name"], each["value"]) for each in row or ()) for row in columns["headers"]]
    return list(map(StoredRecord, *columns.values()))


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
