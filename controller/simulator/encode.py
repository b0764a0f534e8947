"""A modelled broker's sweep as the records a collector would publish: JSON, Arrow, or one record a topic.

Pydantic per topic is too slow for a million of them, so the topics of a sweep are written straight from its
columns; the tests read every form back with controller.wire.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from controller.model import records
from controller.model.load import Ints
from controller.simulator.cluster import CONSUMERS, PRODUCERS, BrokerSweep
from controller.wire.base import encode
from controller.wire.metrics import NamespaceState
from controller.wire.sweep import COUNTS, RATES, ResourceUsage, SweepHeader, encode_sweep_arrow

#: Key and value of a record of the metrics topic.
Record: TypeAlias = tuple[str, bytes]

#: A chunk of a sweep stays below this, so that it fits Kafka's default message size of 1 MB.
MAX_CHUNK_BYTES = 900_000
#: What a row of an Arrow chunk takes besides its topic's name: eight numbers, an offset, a dictionary index.
_ARROW_ROW_BYTES = 8 * 8 + 4 + 4
#: Its schema, padding and end marks.
_ARROW_FRAME_BYTES = 8192

#: More chunks than any sweep has: how much room their number may take.
_MANY = 10**6
_TOTALS = (*RATES, "producerCount", "consumerCount", "topics")


def json_records(sweep: BrokerSweep, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[Record]:
    """*sweep* as ``broker_sweep`` JSON, in as few chunks of at most *max_bytes* as its bundles' order allows."""
    room = max_bytes - len(encode(_header(sweep, chunk=_MANY, chunks=_MANY + 1))) - len(',"bundleStats":[]')
    chunks: list[list[str]] = [[]]
    used = 0
    for bundle, continued in _bundle_stats(sweep, room):
        used += len(bundle) + 1
        if continued or (used > room and chunks[-1]):
            chunks.append([])
            used = len(bundle) + 1
        chunks[-1].append(bundle)
    for i, bundles in enumerate(chunks):
        header = encode(_header(sweep, chunk=i, chunks=len(chunks)))
        yield sweep.broker, header[:-1] + f',"bundleStats":[{",".join(bundles)}]}}'.encode()


def arrow_records(sweep: BrokerSweep, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[Record]:
    """*sweep* as ``broker_sweep`` in Arrow batches of consecutive topics, each of at most *max_bytes*."""
    room = max_bytes - len(encode(_header(sweep, chunk=_MANY, chunks=_MANY + 1))) - _ARROW_FRAME_BYTES
    bundle = _bundle_of_topic(sweep)
    sizes = np.fromiter(map(len, sweep.topics), np.int64, len(sweep.topics)) + _ARROW_ROW_BYTES
    # A chunk lists the names of its bundles once, also of those without topics that lie between.
    names = np.cumsum([0, *(len(name) + 4 for name in sweep.bundles)])
    sizes += np.diff(names[bundle + 1], prepend=0)
    # A broker without topics still says so, in one empty chunk.
    starts = np.flatnonzero(np.diff(np.cumsum(sizes) // room, prepend=-1)).tolist() or [0]
    for i, (lo, hi) in enumerate(pairwise([*starts, len(bundle)])):
        first = bundle[lo] if i else 0
        last = bundle[hi - 1] if hi < len(bundle) else len(sweep.bundles) - 1
        yield (
            sweep.broker,
            encode_sweep_arrow(
                _header(sweep, chunk=i, chunks=len(starts)),
                bundles=sweep.bundles[first : last + 1],
                bundle=bundle[lo:hi] - first,
                topics=sweep.topics[lo:hi],
                load=sweep.load[lo:hi],
                counts=sweep.counts[lo:hi],
            ),
        )


def topic_records(sweep: BrokerSweep) -> Iterator[Record]:
    """*sweep* as one ``topic_stats`` record a topic."""
    common = {"v": 1, "type": "topic_stats", "cluster": sweep.cluster, "broker": sweep.broker}
    bundles = map(sweep.bundles.__getitem__, _bundle_of_topic(sweep).tolist())
    names = ("bundle", "topic", *RATES, *COUNTS)
    for row in zip(bundles, sweep.topics, *sweep.load.T.tolist(), *sweep.counts.T.tolist(), strict=True):
        yield sweep.broker, _dumps(common | dict(zip(names, row, strict=True))).encode()


def namespace_record(cluster: str, state: records.NamespaceState) -> Record:
    """*state* as ``namespace_state``."""
    wire = NamespaceState(
        cluster=cluster, namespace=state.namespace, version=state.version, boundaries=state.boundaries
    )
    return state.namespace, encode(wire)


def _header(sweep: BrokerSweep, *, chunk: int, chunks: int) -> SweepHeader:
    cpu, memory, direct_memory, bandwidth_in, bandwidth_out = (
        ResourceUsage(usage=usage, limit=limit)
        for usage, limit in zip(sweep.usage.tolist(), sweep.limit.tolist(), strict=True)
    )
    rate_in, rate_out, throughput_in, throughput_out = np.round(sweep.load.sum(axis=0), 1).tolist()
    counts = sweep.counts.sum(axis=0).tolist()
    return SweepHeader(
        cluster=sweep.cluster,
        broker=sweep.broker,
        interval=sweep.interval,
        sweep_id=sweep.sweep_id,
        chunk=chunk,
        chunks=chunks,
        last_update=sweep.interval,
        cpu=cpu,
        memory=memory,
        direct_memory=direct_memory,
        bandwidth_in=bandwidth_in,
        bandwidth_out=bandwidth_out,
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=throughput_in,
        msg_throughput_out=throughput_out,
        num_topics=len(sweep.topics),
        num_bundles=len(sweep.bundles),
        num_producers=counts[PRODUCERS],
        num_consumers=counts[CONSUMERS],
    )


def _bundle_stats(sweep: BrokerSweep, room: int) -> Iterator[tuple[str, bool]]:
    """The elements of ``bundleStats`` as JSON, and whether each continues the bundle before.

    A bundle over *room* characters is divided by its topics; a chunk names a bundle once only.
    """
    bundle = _bundle_of_topic(sweep)
    sums = [np.bincount(bundle, values, len(sweep.bundles)) for values in (*sweep.load.T, *sweep.counts.T)]
    # Rates are read to one decimal; adding them up must not add digits.
    rates = [np.round(sums[column], 1).tolist() for column in range(4)]
    sessions = [sums[4 + column].astype(np.int64).tolist() for column in (PRODUCERS, CONSUMERS)]
    totals = zip(*rates, *sessions, np.diff(sweep.starts).tolist(), strict=True)
    columns = dict(zip((*RATES, *COUNTS), [*sweep.load.T.tolist(), *sweep.counts.T.tolist()], strict=True))
    columns["topic"] = sweep.topics

    def divided(entry: dict[str, Any], lo: int, hi: int) -> Iterator[str]:
        text = _dumps(entry | {name: column[lo:hi] for name, column in columns.items()})
        if len(text) <= room or hi - lo < 2:
            yield text
        else:
            yield from divided(entry, lo, (lo + hi) // 2)
            yield from divided(entry, (lo + hi) // 2, hi)

    for name, total, (lo, hi) in zip(sweep.bundles, totals, pairwise(sweep.starts.tolist()), strict=True):
        entry = {"bundle": name, "totals": dict(zip(_TOTALS, total, strict=True))}
        for i, text in enumerate(divided(entry, lo, hi)):
            yield text, i > 0


def _bundle_of_topic(sweep: BrokerSweep) -> Ints:
    """(topics,) codes into ``sweep.bundles``."""
    return np.repeat(np.arange(len(sweep.bundles)), np.diff(sweep.starts))


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
