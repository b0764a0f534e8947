"""The primary record: one broker's load in one interval, as JSON or as one Arrow batch.

A broker's sweep comes in chunks; each repeats the broker's own fields.  The Arrow form carries the same
fields as JSON in its schema's metadata and the topics as columns: no object per topic on either side.

Pulsar: LocalBrokerData, NamespaceBundleStats, /admin/v2/broker-stats/topics.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_snake
from pydantic_core import PydanticKnownError

from controller.model.errors import TrimtabError, WireError
from controller.model.load import Floats, Ints
from controller.model.names import parse_bundle
from controller.wire.arrow_stream import COLUMNS, COUNTS, HEADER, RATES, ArrowStream
from controller.wire.base import (
    MAX_COUNT,
    MAX_RATE,
    BundleText,
    Count,
    Envelope,
    Items,
    Limit,
    Millis,
    Name,
    Quantity,
    Rate,
    Record,
    ReportedQuantity,
    Tally,
    bad_value,
    encode,
    missing,
    validate,
)


class ResourceUsage(Record):
    """Usage of one resource of a broker, in the unit of its limit.  Pulsar: ResourceUsage."""

    usage: Quantity
    limit: Quantity

    @property
    def used(self) -> float:
        """The usage."""
        return self.usage


class ReportedUsage(Record):
    """The same as a broker itself writes it.

    A limit that it does not know is 0 or negative; the resource then counts as unused, whatever its usage is.  A usage
    that the JVM cannot measure is negative.
    """

    limit: Limit
    usage: ReportedQuantity

    @property
    def used(self) -> float:
        """The usage, at least 0."""
        return self.usage if self.usage > 0 else 0.0

    @field_validator("usage")
    @classmethod
    def _is_known_of_a_limit(cls, usage: float, info: ValidationInfo) -> float:
        if math.isnan(usage) and info.data.get("limit", 0.0) > 0:
            raise PydanticKnownError("finite_number")
        return usage


class BundleTotals(Record):
    """The sums of one bundle.  Pulsar: NamespaceBundleStats."""

    msg_rate_in: Rate
    msg_rate_out: Rate
    msg_throughput_in: Rate
    msg_throughput_out: Rate
    producer_count: Tally
    consumer_count: Tally
    topics: Tally


#: The arrays beside ``topic``: name on the wire -> field.
_ARRAYS: Final = {name: to_snake(name) for name in (*RATES, *COUNTS)}


class BundleStats(Record):
    """One bundle with its topics as parallel arrays; without topics the totals stand."""

    bundle: BundleText
    totals: BundleTotals
    topic: Items[str] = ()
    msg_rate_in: Items[Rate] = ()
    msg_rate_out: Items[Rate] = ()
    msg_throughput_in: Items[Rate] = ()
    msg_throughput_out: Items[Rate] = ()
    producer_count: Items[Tally] = ()
    consumer_count: Items[Tally] = ()

    @model_validator(mode="after")
    def _arrays_are_parallel(self) -> Self:
        for name, field in _ARRAYS.items():
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
    num_topics: Tally
    num_bundles: Tally
    num_producers: Tally
    num_consumers: Tally

    @model_validator(mode="after")
    def _chunk_is_one_of_chunks(self) -> Self:
        if self.chunk >= self.chunks:
            raise bad_value(f"chunk {self.chunk} (from 0) of {self.chunks}")
        return self


class BrokerSweep(SweepHeader):
    """A chunk of a sweep as JSON."""

    bundle_stats: Items[BundleStats]

    @property
    def bundles(self) -> list[str]:
        """The names of its bundles."""
        return [stats.bundle for stats in self.bundle_stats]

    @model_validator(mode="after")
    def _lists_a_bundle_once(self) -> Self:
        if len({stats.bundle for stats in self.bundle_stats}) < len(self.bundle_stats):
            raise bad_value("bundleStats lists a bundle twice")
        return self


class ArrowSweep(SweepHeader):
    """A chunk of a sweep as one Arrow record batch, checked: see ArrowStream.

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
    *counts* (n, 2) in the order of COUNTS.
    """
    codes = pa.DictionaryArray.from_arrays(pa.array(bundle, pa.int32()), pa.array(list(bundles), pa.string()))
    columns = [
        codes,
        pa.array(topics, pa.string()),
        *(pa.array(np.ascontiguousarray(column), pa.float64()) for column in load.T),
        *(pa.array(np.ascontiguousarray(column), pa.int64()) for column in counts.T),
    ]
    schema = pa.schema(list(COLUMNS.items()), metadata={HEADER: encode(header)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def arrow_sweep(stream: ArrowStream) -> ArrowSweep:
    """The sweep that *stream* holds, or WireError.  Checks whole columns, no value alone."""
    fields, batch = dict(validate(SweepHeader, stream.header)), stream.batch()
    for name, largest in _LARGEST.items():
        values = batch.column(name).to_numpy()
        if not ((values >= 0) & (values <= largest)).all():  # a NaN is neither
            raise WireError("bad_value", f"column {name} must lie in 0 .. {largest:g}")
    sweep = ArrowSweep(**fields, batch=batch)
    try:
        for bundle in sweep.bundles:
            parse_bundle(bundle)
    except TrimtabError as error:
        raise WireError("impossible_bundle", str(error)) from error
    if len(set(sweep.bundles)) < len(sweep.bundles):
        raise WireError("bad_value", "column bundle lists a bundle twice")
    return sweep


_LARGEST: Final[dict[str, float]] = {
    **dict.fromkeys(RATES, MAX_RATE),
    **dict.fromkeys(COUNTS, MAX_COUNT),
}
