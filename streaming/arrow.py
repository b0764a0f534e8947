"""Arrow sweeps in the query: in Python workers, a whole sweep at a time, into the columns of streaming.decode.

What is looked at in Python grows with the topics here, as it does not for JSON, but by columns: there is no object a
topic.  What leaves is one row a bundle and record, as for JSON.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from controller.aggregate.rows import BUNDLE, METRICS, SWEEP
from controller.aggregate.shard import DetailLimits
from controller.model.errors import WireError
from controller.model.load import Floats, Ints
from controller.wire.arrow_load import arrow_load
from controller.wire.metrics import decode_metric
from controller.wire.rows import numbers_of
from controller.wire.sweep import ARROW_MAGIC, ArrowSweep

_Batches = Iterator[pa.RecordBatch]
_WHERE = ("source", "partition", "offset", "file")


@dataclass(frozen=True, kw_only=True)
class ArrowOptions:
    """What reading Arrow needs to know."""

    cluster: str
    period_ms: int
    max_record_bytes: int
    detail: DetailLimits


def is_arrow(max_record_bytes: int) -> Column:
    """Whether a record is to be read as Arrow; one that is too large is not to be read at all."""
    begins = F.substring("value", 1, len(ARROW_MAGIC)) == F.lit(ARROW_MAGIC)
    return (F.col("source") == METRICS) & begins & (F.length("value") <= max_record_bytes)


def rows(records: DataFrame, options: ArrowOptions, schema: StructType) -> DataFrame:
    """The rows of the good sweeps among Arrow *records*, with the columns of *schema* (streaming.decode, no shard)."""
    read, made_as = _reader(options), to_arrow_schema(schema)

    def swept(batches: _Batches) -> _Batches:
        for batch in batches:
            located = zip(*(batch.column(name).to_pylist() for name in _WHERE), read(batch), strict=True)
            made = [
                _rows(where, sweep, options.detail, made_as)
                for *where, sweep in located
                if isinstance(sweep, ArrowSweep)
            ]
            if made:
                yield from pa.Table.from_batches(made).combine_chunks().to_batches()

    return records.mapInArrow(swept, schema)


def refused(records: DataFrame, options: ArrowOptions) -> DataFrame:
    """Those of the Arrow *records* that are refused."""
    read = _reader(options)

    def only_refused(batches: _Batches) -> _Batches:
        for batch in batches:
            yield batch.filter(pa.array([isinstance(sweep, WireError) for sweep in read(batch)], pa.bool_()))

    return records.mapInArrow(only_refused, records.schema)


def _reader(options: ArrowOptions) -> Callable[[pa.RecordBatch], Iterable[object]]:
    """What says of each record of a batch: the sweep, None for another cluster's, or why it is refused."""

    def read(batch: pa.RecordBatch) -> Iterator[object]:
        for value, appended in zip(batch.column("value"), batch.column("append_time").to_pylist(), strict=True):
            try:
                yield decode_metric(
                    value.as_py(),
                    cluster=options.cluster,
                    period_ms=options.period_ms,
                    append_time_ms=appended,
                    max_bytes=options.max_record_bytes,
                )
            except WireError as error:
                yield error

    return read


def _rows(where: list[object], sweep: ArrowSweep, limits: DetailLimits, schema: pa.Schema) -> pa.RecordBatch:
    """One row for the sweep itself, and one a bundle."""
    load = arrow_load(sweep, limits)
    bundles = len(load.stats)
    said: dict[str, Any] = {
        "interval": sweep.interval,
        "broker": sweep.broker,
        "sweep": sweep.sweep_id,
        "chunk": sweep.chunk,
        "chunks": sweep.chunks,
        "last_update": sweep.last_update,
        "topic_hash": 0,
        "topic_position": 0,
        "body": None,
        **dict(zip(_WHERE, where, strict=True)),
    }
    ends = np.cumsum(load.detail_size)
    starts = ends - load.detail_size
    columns: dict[str, list[Any]] = {
        "kind": [SWEEP] + [BUNDLE] * bundles,
        "bundles": ["", *sweep.bundles],
        "stats": [None, *_packed(load.stats.astype("<i8"), range(bundles), range(1, bundles + 1))],
        "numbers": [numbers_of(sweep).astype("<f8").tobytes()] + [None] * bundles,
        "detail_size": [None, *_packed(load.detail_size.astype("<i8"), range(bundles), range(1, bundles + 1))],
        "detail_position": [None, *_packed(load.detail_position.astype("<i8"), starts.tolist(), ends.tolist())],
        "detail_load": [None, *_packed(load.detail_load.astype("<f8"), starts.tolist(), ends.tolist())],
    }
    arrays = [pa.array(columns.get(field.name, [said.get(field.name)] * (1 + bundles)), field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _packed(values: Ints | Floats, starts: Iterable[int], ends: Iterable[int]) -> Iterator[bytes]:
    return (values[start:end].tobytes() for start, end in zip(starts, ends, strict=True))
