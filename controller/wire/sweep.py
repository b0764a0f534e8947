"""The primary record: one broker's load in one interval, as JSON or as one Arrow batch.

A broker's sweep comes in chunks; each repeats the broker's own fields.  The Arrow form carries the same
fields as JSON in its schema's metadata and the topics as columns: no object per topic on either side.

Pulsar: LocalBrokerData, NamespaceBundleStats, /admin/v2/broker-stats/topics.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_snake

from controller.model.errors import TrimtabError, WireError
from controller.model.load import Floats, Ints
from controller.model.names import parse_bundle
from controller.wire.base import (
    Bundle,
    Count,
    Envelope,
    Items,
    Limit,
    Millis,
    Name,
    Quantity,
    Rate,
    Record,
    bad_value,
    encode,
    missing,
    validate,
)

#: The statistics of a topic, under their wire names: msg/s and bytes/s, then numbers and bytes.
RATES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNTS: Final = ("producerCount", "consumerCount", "storageSize", "backlogSize")

#: An Arrow stream starts with its continuation marker; no JSON text does.
ARROW_MAGIC: Final = b"\xff\xff\xff\xff"
_HEADER: Final = b"trimtab"


class ResourceUsage(Record):
    """Usage of one resource of a broker, in the unit of its limit.  Pulsar: ResourceUsage."""

    usage: Quantity
    limit: Quantity


class ReportedUsage(Record):
    """The same as a broker itself writes it: a limit it does not know is 0 or negative."""

    usage: Quantity
    limit: Limit


class BundleTotals(Record):
    """The sums of one bundle.  Pulsar: NamespaceBundleStats."""

    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate
    producer_count: Count
    consumer_count: Count
    topics: Count


class BundleStats(Record):
    """One bundle with its topics as parallel arrays; without topics the totals stand."""

    bundle: Bundle
    totals: BundleTotals
    topic: Items[str] = ()
    msg_rate_in: Items[Rate] = ()
    msg_rate_out: Items[Rate] = ()
    msg_throughput_in: Items[Rate] = ()
    msg_throughput_out: Items[Rate] = ()
    producer_count: Items[Count] = ()
    consumer_count: Items[Count] = ()
    storage_size: Items[Count] = ()
    backlog_size: Items[Count] = ()

    @model_validator(mode="after")
    def _arrays_are_parallel(self) -> Self:
        for name in (*RATES, *COUNTS):
            field = to_snake(name)
            if len(getattr(self, field)) != len(self.topic):
                if field not in self.model_fields_set:
                    raise missing(name)
                raise bad_value(f"{name} has {len(getattr(self, field))} values for {len(self.topic)} topics")
        return self


class SweepHeader(Envelope):
    """A broker's own fields, the same in every chunk of its sweep."""

    type: Literal["broker_sweep"] = "broker_sweep"
    broker: Name
    """``host:webPort``, as the broker is named in ZooKeeper."""
    interval: Millis
    sweep_id: Name
    """The tick's roster says by it which sweep of the broker counts."""
    chunk: Count
    chunks: Count
    last_update: Millis
    cpu: ResourceUsage
    """Percent of one core, out of 100 a core."""
    memory: ResourceUsage
    """MiB."""
    direct_memory: ResourceUsage
    """MiB."""
    bandwidth_in: ResourceUsage
    """kbit/s."""
    bandwidth_out: ResourceUsage
    """kbit/s."""
    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate
    num_topics: Count
    num_bundles: Count
    num_producers: Count
    num_consumers: Count

    @model_validator(mode="after")
    def _chunk_is_one_of_chunks(self) -> Self:
        if self.chunk >= self.chunks:
            raise bad_value(f"chunk {self.chunk} (from 0) of {self.chunks}")
        return self


class BrokerSweep(SweepHeader):
    """A chunk of a sweep as JSON."""

    bundle_stats: Items[BundleStats]

    @model_validator(mode="after")
    def _lists_a_bundle_once(self) -> Self:
        if len({stats.bundle for stats in self.bundle_stats}) < len(self.bundle_stats):
            raise bad_value("bundleStats lists a bundle twice")
        return self


class ArrowSweep(SweepHeader):
    """A chunk of a sweep as one Arrow record batch, checked.

    Columns: ``bundle`` (dictionary of names), ``topic``, and the statistics under their wire names.  A bundle
    of the dictionary without a row has no topics and no load.  Only the last bundle of a chunk's dictionary and the
    first of the next may be one and the same, divided between the two.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    batch: pa.RecordBatch = Field(exclude=True)

    @property
    def bundles(self) -> list[str]:
        """The names that the codes of column ``bundle`` stand for."""
        codes: Any = self.batch.column("bundle")
        return [str(name) for name in codes.dictionary.to_pylist()]


_COLUMNS: Final[dict[str, pa.DataType]] = {
    "bundle": pa.dictionary(pa.int32(), pa.string()),
    "topic": pa.string(),
    **dict.fromkeys(RATES, pa.float64()),
    **dict.fromkeys(COUNTS, pa.int64()),
}


def encode_sweep_arrow(
    header: SweepHeader,
    *,
    bundles: Sequence[str],
    bundle: Ints,
    topics: Sequence[str],
    load: Floats,
    counts: Ints,
) -> bytes:
    """A chunk in its Arrow form: an IPC stream of one record batch.

    *bundle* (n,) are codes into *bundles*, *topics* (n,) full names, *load* (n, 4) in the order of RATES,
    *counts* (n, 4) in the order of COUNTS.
    """
    codes = pa.DictionaryArray.from_arrays(pa.array(bundle, pa.int32()), pa.array(list(bundles), pa.string()))
    columns = [
        codes,
        pa.array(topics, pa.string()),
        *(pa.array(np.ascontiguousarray(column), pa.float64()) for column in load.T),
        *(pa.array(np.ascontiguousarray(column), pa.int64()) for column in counts.T),
    ]
    schema = pa.schema(list(_COLUMNS.items()), metadata={_HEADER: encode(header)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def read_arrow(value: bytes) -> tuple[bytes, pa.RecordBatch]:
    """The header's JSON and the batch of an Arrow value, neither looked at; WireError: not_json, ..."""
    try:
        with pa.ipc.open_stream(value) as reader:
            header = (reader.schema.metadata or {}).get(_HEADER)
            batch, *more = reader
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise WireError("not_json", f"nor an Arrow stream of one batch: {error}") from error
    if header is None:
        raise WireError("missing_field", f"{_HEADER.decode()}: not in the schema's metadata")
    if more:
        raise WireError("bad_value", f"{1 + len(more)} record batches, expected one")
    return header, batch


def arrow_sweep(header: bytes, batch: pa.RecordBatch) -> ArrowSweep:
    """The sweep that *header* and *batch* hold, or WireError.  Checks whole columns, no value alone."""
    fields = dict(validate(SweepHeader, header))
    for name, kind in _COLUMNS.items():
        if name not in batch.schema.names:
            raise WireError("missing_field", f"column {name}")
        column = batch.column(name)
        if column.type != kind:
            raise WireError("bad_value", f"column {name} is {column.type}, expected {kind}")
        if column.null_count:
            raise WireError("bad_value", f"column {name} has {column.null_count} nulls")
        if name in RATES or name in COUNTS:
            values = column.to_numpy(zero_copy_only=False)
            if not ((values >= 0) & (values <= _MAXIMUM[name])).all():  # a NaN is neither
                raise WireError("bad_value", f"column {name} must lie in 0 .. {_MAXIMUM[name]:g}")
    sweep = ArrowSweep(**fields, batch=batch)
    try:
        for bundle in sweep.bundles:
            parse_bundle(bundle)
    except TrimtabError as error:
        raise WireError("impossible_bundle", str(error)) from error
    if len(set(sweep.bundles)) < len(sweep.bundles):
        raise WireError("bad_value", "column bundle lists a bundle twice")
    return sweep


_MAXIMUM: Final = {**dict.fromkeys(RATES, 1e12), **dict.fromkeys(COUNTS, float(1 << 63))}
