"""What reads a log in Pulsar for Spark: the readers of streaming.pulsar.source, as Arrow.

Spark creates them in processes of its own: the reader of a stream in one beside the driver, which lives as long as the
query; whatever reads, in the Python workers.  Everything they need comes as options.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from controller.adapters.pulsar.log.client import log_client
from controller.adapters.pulsar.log.ends import LogExtents, all_extents, log_extents, starts
from controller.adapters.pulsar.log.fetch import Block, Range, blocks
from controller.adapters.pulsar.log.gate_file import GateFile
from controller.adapters.pulsar.log.offsets import LogOffset, from_json, to_json
from controller.adapters.pulsar.log.planner import Planner, ranges
from controller.adapters.pulsar.log.positions import before, entry_of
from streaming.pulsar.options import PulsarOptions
from streaming.schemas import RECORDS


@dataclass
class PulsarPartition(InputPartition):
    """What one Spark task reads."""

    range: Range
    #: When the end was looked up, by a broker's clock, epoch ms: no record in it was appended later.
    time_ms: int
    #: Offsets of the first and last record that count.
    first: int = 0
    last: int = (1 << 63) - 1


class PulsarStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as a stream."""

    def __init__(self, options: PulsarOptions) -> None:
        self._options = options
        self._gate = GateFile(Path(options.gate)) if options.gate else None
        #: How often the gate had been opened when all was read that lay in the log.
        self._passed: int | None = 0

    @cached_property
    def _http(self) -> LogExtents:
        return log_extents(self._options.log)

    @cached_property
    def _planner(self) -> Planner:
        topics = list(self._options.sources)
        return Planner(
            lambda: all_extents(self._http, topics), topics, now_ms=lambda: self._http.clock.now_ms, warn=_warn
        )

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """See DataSourceStreamReader."""
        options = self._options
        at_end = options.log.start_at == "latest"
        read = starts(self._http, list(options.sources), start_ms=options.start_ms, at_end=at_end)
        return to_json(LogOffset(time_ms=self._http.clock.now_ms, read=read))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """See DataSourceStreamReader.  A row is an entry here: an entry is read whole."""
        return ReadMaxRows(self._options.max_entries)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """See DataSourceStreamReader.  While the gate is closed there is nothing new."""
        times_opened = self._gate.times_opened() if self._gate else None
        if times_opened is not None and times_opened == self._passed:
            return start
        planner, offset = self._planner, from_json(start)
        end = planner.next(offset, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if planner.is_answered and planner.all_read(end or offset):
            self._passed = times_opened
        return start if end is None else to_json(end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """See SupportsTriggerAvailableNow."""
        self._gate = None
        self._planner.end_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See DataSourceStreamReader."""
        until = from_json(end)
        planned = self._planner.ranges(from_json(start), until)
        return [PulsarPartition(range=each, time_ms=until.time_ms) for each in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceStreamReader."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """See DataSourceStreamReader."""
        if "_http" in self.__dict__:
            self._http.close()


class PulsarSpans(DataSourceReader):
    """Some of the log's records again."""

    def __init__(self, options: PulsarOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """See DataSourceReader."""
        topics = {role: topic for topic, role in self._options.sources.items()}
        spans = self._options.spans
        with closing(log_extents(self._options.log)) as http:
            extents = all_extents(http, list(topics.values())) if spans else {}
            now_ms = http.clock.now_ms
        partitions = [
            ((topics[span.source], span.partition), before(entry_of(span.first)), entry_of(span.last)) for span in spans
        ]
        return [
            PulsarPartition(range=each, time_ms=now_ms, first=span.first, last=span.last)
            for each, span in zip(ranges(partitions, extents), spans, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceReader."""
        return _read(self._options, partition)


def _read(options: PulsarOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of *partition*; none where it is the one that Spark makes up for no partitions at all."""
    if isinstance(partition, PulsarPartition):
        entries, role = partition.range, options.sources[partition.range.topic]
        schema = to_arrow_schema(RECORDS, timezone="UTC")
        with closing(log_client(options.log)) as client:
            for block in blocks(client, entries):
                batch = _batch(block, role, partition, schema)
                if batch.num_rows:
                    yield batch


def _batch(block: Block, role: int, partition: PulsarPartition, schema: pa.Schema) -> pa.RecordBatch:
    rows, offsets = len(block.values), np.array(block.numbers, np.int64)
    columns = [
        pa.repeat(pa.scalar(role, pa.int32()), rows),
        pa.repeat(pa.scalar(partition.range.partition, pa.int32()), rows),
        pa.array(offsets),
        pa.repeat(pa.scalar("", pa.string()), rows),
        # The producer's clock says when; but nothing was appended after brokers knew its place.
        pa.array(np.minimum(np.array(block.publish_ms, np.int64), partition.time_ms)),
        pa.array(block.values, pa.binary()),
    ]
    whole = pa.RecordBatch.from_arrays(columns, schema=schema)
    counts = (offsets >= partition.first) & (offsets <= partition.last)
    return whole if counts.all() else whole.filter(pa.array(counts))


def _warn(text: str) -> None:
    """Tell the operator: lines that begin so reach trimtab's own log, see streaming.spark.spark_log."""
    print(f"trimtab|WARN|pulsar|{text}", file=sys.stderr, flush=True)  # noqa: T201
