"""A modelled broker's sweep as the records a collector would publish: JSON, Arrow, or one record a topic."""

import json
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from controller.model import records
from controller.simulator.cluster import CONSUMERS, PRODUCERS, ModelledSweep
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.base import encode
from controller.wire.chunks import (
    MAX_CHUNK_BYTES,
    KeyValue,
    SweptBroker,
    arrow_chunks,
    bundle_of_topic,
    json_chunks,
    sweep_header,
)
from controller.wire.metrics import NamespaceStateRecord
from controller.wire.sweep import SweepHeader

__all__ = ["FORMS", "MAX_CHUNK_BYTES", "KeyValue", "arrow_records", "json_records", "namespace_record", "topic_records"]


def json_records(sweep: ModelledSweep, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[KeyValue]:
    """*sweep* as ``broker_sweep`` JSON, in as few chunks of at most *max_bytes* as its bundles' order allows."""
    return json_chunks(_swept(sweep), max_bytes=max_bytes)


def arrow_records(sweep: ModelledSweep, *, max_bytes: int = MAX_CHUNK_BYTES) -> Iterator[KeyValue]:
    """*sweep* as ``broker_sweep`` in Arrow batches of consecutive topics, each of at most *max_bytes*."""
    return arrow_chunks(_swept(sweep), max_bytes=max_bytes)


def topic_records(sweep: ModelledSweep) -> Iterator[KeyValue]:
    """*sweep* as one ``topic_stats`` record a topic."""
    common = {"v": 1, "type": "topic_stats", "cluster": sweep.cluster, "broker": sweep.broker}
    bundles = map(sweep.bundles.__getitem__, bundle_of_topic(sweep.starts).tolist())
    names = ("bundle", "topic", *RATES, *COUNTS)
    for row in zip(bundles, sweep.topics, *sweep.load.T.tolist(), *sweep.counts.T.tolist(), strict=True):
        yield sweep.broker, json.dumps(common | dict(zip(names, row, strict=True)), separators=(",", ":")).encode()


#: The forms of a record of the metrics topic, by their names in ``trimtab bench``; the first is the primary one.
FORMS: Final[dict[str, Callable[[ModelledSweep], Iterator[KeyValue]]]] = {
    "broker_sweep": json_records,
    "broker_sweep_arrow": arrow_records,
    "topic_stats": topic_records,
}


def namespace_record(cluster: str, state: records.NamespaceState) -> KeyValue:
    """*state* as ``namespace_state``."""
    wire = NamespaceStateRecord(
        cluster=cluster, namespace=state.namespace, version=state.version, boundaries=state.boundaries
    )
    return state.namespace, encode(wire)


def _swept(sweep: ModelledSweep) -> SweptBroker:
    bundle = bundle_of_topic(sweep.starts)
    n = len(sweep.bundles)
    loads = [np.bincount(bundle, values, n).astype(np.float64) for values in sweep.load.T]
    sessions = [np.bincount(bundle, sweep.counts[:, column], n) for column in (PRODUCERS, CONSUMERS)]
    return SweptBroker(
        header=_header(sweep),
        bundles=sweep.bundles,
        # Rates are read to one decimal; adding them up must not add digits.
        total_load=np.stack(loads, axis=1).round(1),
        total_counts=np.stack([*sessions, np.diff(sweep.starts)], axis=1).astype(np.int64),
        starts=sweep.starts,
        topics=sweep.topics,
        load=sweep.load,
        counts=sweep.counts,
    )


def _header(sweep: ModelledSweep) -> SweepHeader:
    counts = sweep.counts.sum(axis=0).tolist()
    return sweep_header(
        cluster=sweep.cluster,
        broker=sweep.broker,
        interval=sweep.interval,
        sweep_id=sweep.sweep_id,
        last_update=sweep.interval,
        usage=zip(sweep.usage.tolist(), sweep.limit.tolist(), strict=True),
        rates=np.round(sweep.load.sum(axis=0), 1).tolist(),
        bundles=len(sweep.bundles),
        topics=len(sweep.topics),
        producers=counts[PRODUCERS],
        consumers=counts[CONSUMERS],
    )
