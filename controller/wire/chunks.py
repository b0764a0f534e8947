"""A broker's sweep, held in columns, as the records of the metrics topic: chunks of JSON or of Arrow.

Pydantic per topic is too slow for a million of them, so topics are written straight from their columns; the tests read
either form back with controller.wire.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from controller.model.errors import WireError
from controller.model.load import RESOURCE_FIELDS, Floats, Ints
from controller.wire.arrow_stream import ARROW_MAGIC, COUNTS, RATES, ArrowStream
from controller.wire.base import encode, read_object, reader, validate
from controller.wire.metrics import TickRecord
from controller.wire.sweep import ResourceUsage, SweepHeader, encode_sweep_arrow

#: Key and value of a record of the metrics topic.
KeyValue: TypeAlias = tuple[str, bytes]

#: A chunk of a sweep stays below this, so that it fits Kafka's default message size of 1 MB.
MAX_CHUNK_BYTES: Final = 900_000
#: What a row of an Arrow chunk takes besides its topic's name: eight numbers, an offset, a dictionary index.
_ARROW_ROW_BYTES: Final = 8 * 8 + 4 + 4
#: Its schema, padding and end marks.
_ARROW_FRAME_BYTES: Final = 8192

#: More chunks than any sweep has: how much room their number may take.
_MANY: Final = 9_999_999
#: What lies between a JSON chunk's own fields and its bundles.
_BUNDLES: Final = b',"bundleStats":['
#: What a bundle's totals count, under their wire names.
SESSIONS: Final = ("producerCount", "consumerCount", "topics")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweptBroker:
    """What was read from one broker in one interval."""

    #: The broker's own fields; ``chunk`` and ``chunks`` are filled in here.
    header: SweepHeader
    bundles: list[str]
    #: (bundles, 4) msg/s and bytes/s, and (bundles, 3) producers, consumers and topics, each bundle's sums.
    total_load: Floats
    total_counts: Ints
    #: (bundles + 1,) the topics of bundle b are ``starts[b]:starts[b + 1]`` of the columns below.
    starts: Ints
    topics: list[str]
    #: (topics, 4) in the order of RATES, and (topics, 2) in the order of COUNTS.
    load: Floats
    counts: Ints


def sweep_header(
    *,
    cluster: str,
    broker: str,
    interval: int,
    sweep_id: str,
    last_update: int,
    usage: Iterable[tuple[float, float]],
    rates: Sequence[float],
    bundles: int,
    topics: int,
    producers: int,
    consumers: int,
) -> SweepHeader:
    """A broker's own fields.  *usage*: usage and limit of each resource, *rates*: its totals in the order of RATES."""
    reported = (ResourceUsage(usage=used, limit=limit) for used, limit in usage)
    resources: dict[str, Any] = dict(zip(RESOURCE_FIELDS, reported, strict=True))
    rate_in, rate_out, throughput_in, throughput_out = rates
    return SweepHeader(
        cluster=cluster,
        broker=broker,
        interval=interval,
        sweep_id=sweep_id,
        chunk=0,
        chunks=1,
        last_update=last_update,
        **resources,
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=throughput_in,
        msg_throughput_out=throughput_out,
        num_topics=topics,
        num_bundles=bundles,
        num_producers=producers,
        num_consumers=consumers,
    )


def json_chunks(sweep: SweptBroker, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[KeyValue]:
    """*sweep* as ``broker_sweep`` JSON, in as few chunks of at most *max_bytes* as its bundles' order allows."""
    room = max_bytes - len(_header(sweep, _MANY, _MANY)) - len(_BUNDLES) - 1
    chunks: list[list[str]] = [[]]
    used = 0
    for bundle, continued in _bundle_stats(sweep, room):
        used += len(bundle) + 1
        if continued or (used > room and chunks[-1]):
            chunks.append([])
            used = len(bundle) + 1
        chunks[-1].append(bundle)
    for i, bundles in enumerate(chunks):
        yield sweep.header.broker, _header(sweep, i, len(chunks))[:-1] + _BUNDLES + f"{','.join(bundles)}]}}".encode()


def arrow_chunks(sweep: SweptBroker, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[KeyValue]:
    """*sweep* as ``broker_sweep`` in Arrow batches of consecutive topics, each of at most *max_bytes*."""
    room = max_bytes - len(_header(sweep, _MANY, _MANY)) - _ARROW_FRAME_BYTES
    bundle = bundle_of_topic(sweep.starts)
    sizes = np.fromiter(map(_utf8_size, sweep.topics), np.int64, len(sweep.topics)) + _ARROW_ROW_BYTES
    # A chunk lists the names of its bundles once, also of those without topics that lie between.
    names = np.cumsum([0, *(_utf8_size(name) + 4 for name in sweep.bundles)])
    sizes += np.diff(names[bundle + 1], prepend=0)
    # A broker without topics still says so, in one empty chunk.
    starts = [0, *(np.flatnonzero(np.diff(np.cumsum(sizes) // room)) + 1).tolist()]
    for i, (lo, hi) in enumerate(pairwise([*starts, len(bundle)])):
        first = bundle[lo] if i else 0
        last = bundle[hi - 1] if hi < len(bundle) else len(sweep.bundles) - 1
        yield (
            sweep.header.broker,
            encode_sweep_arrow(
                sweep.header.model_copy(update={"chunk": i, "chunks": len(starts)}),
                bundles=sweep.bundles[first : last + 1],
                bundle=bundle[lo:hi] - first,
                topics=sweep.topics[lo:hi],
                load=sweep.load[lo:hi],
                counts=sweep.counts[lo:hi],
            ),
        )


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


#: ``[log] sweeps`` -> the form in which collectors write.
FORMS: Final[Mapping[str, Callable[[SweptBroker], Iterator[KeyValue]]]] = {"json": json_chunks, "arrow": arrow_chunks}


class Arrived(NamedTuple):
    """A sweep's chunk or a tick, as it lies in the metrics topic."""

    head: SweepHeader | TickRecord
    #: When it was appended, epoch ms; None where the log does not keep that.
    append_ms: int | None


def glance(value: bytes) -> SweepHeader | TickRecord | None:
    """Which sweep's chunk *value* is, or which tick, without looking at the rest of it; None: neither."""
    try:
        return _glance(value)
    except WireError:
        return None


@reader
def _glance(value: bytes) -> SweepHeader | TickRecord | None:
    if value.startswith(ARROW_MAGIC):
        return validate(SweepHeader, ArrowStream(value).header)
    head, cut, _ = value.partition(_BUNDLES)
    return _own_fields(head + b"}" if cut else value)


def _own_fields(value: bytes) -> SweepHeader | TickRecord | None:
    kind = read_object(value).get("type")
    if kind == "tick":
        return validate(TickRecord, value)
    return validate(SweepHeader, value) if kind == "broker_sweep" else None


def bundle_of_topic(starts: Ints) -> Ints:
    """(topics,) the row of each topic's bundle."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _header(sweep: SweptBroker, chunk: int, chunks: int) -> bytes:
    return encode(sweep.header.model_copy(update={"chunk": chunk, "chunks": chunks}))


def _bundle_stats(sweep: SweptBroker, room: int) -> Iterator[tuple[str, bool]]:
    """The elements of ``bundleStats`` as JSON, and whether each continues the bundle before.

    A bundle over *room* characters is divided by its topics; a chunk names a bundle once only.
    """
    totals = zip(*sweep.total_load.T.tolist(), *sweep.total_counts.T.tolist(), strict=True)
    columns = dict(zip((*RATES, *COUNTS), [*sweep.load.T.tolist(), *sweep.counts.T.tolist()], strict=True))
    columns["topic"] = sweep.topics

    def divided(entry: dict[str, Any], lo: int, hi: int) -> Iterator[str]:
        text = json.dumps(
            entry | {name: column[lo:hi] for name, column in columns.items()}, separators=(",", ":"), allow_nan=False
        )
        if len(text) <= room or hi - lo < 2:
            yield text
        else:
            yield from divided(entry, lo, (lo + hi) // 2)
            yield from divided(entry, (lo + hi) // 2, hi)

    for name, total, (lo, hi) in zip(sweep.bundles, totals, pairwise(sweep.starts.tolist()), strict=True):
        entry = {"bundle": name, "totals": dict(zip((*RATES, *SESSIONS), total, strict=True))}
        for i, text in enumerate(divided(entry, lo, hi)):
            yield text, i > 0
