"""Records of an invented small cluster, which a rehearsal reads."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from controller.log.files.log import FolderLog
from controller.log.ticks import MetricsLog
from controller.model.names import BundleName, default_boundaries
from controller.wire.base import encode
from controller.wire.chunks import KeyValue, SweptBroker, json_chunks, sweep_header
from controller.wire.metrics import NamespaceStateRecord

_BROKERS: Final = ("broker-1:8080", "broker-2:8080")
_NAMESPACE: Final = "tenant/rehearsal"
#: Each has one topic.
_BUNDLES_OF_A_BROKER: Final = 32
#: Of a topic: messages in and out per second, bytes in and out per second.
_LOAD: Final = (100.0, 100.0, 10_000.0, 10_000.0)
#: Of a topic: producers and consumers.
_COUNTS: Final = (1, 1)
#: Usage and limit of CPU, memory, direct memory, bandwidth in and out.
_USAGE: Final = ((50.0, 400.0), (1_000.0, 4_000.0), (1_000.0, 4_000.0), (1_000.0, 1e6), (1_000.0, 1e6))


def publish(folder: Path, *, cluster: str, period_ms: int, intervals: int) -> int:
    """Write so many *intervals* of *cluster* as a log in *folder*, with their ticks; the number of files."""
    metrics = MetricsLog(FolderLog(folder, cluster=cluster), cluster=cluster)
    edges = default_boundaries(len(_BROKERS) * _BUNDLES_OF_A_BROKER)
    state = NamespaceStateRecord(cluster=cluster, namespace=_NAMESPACE, version=1, boundaries=edges)
    metrics.publish([(_NAMESPACE, encode(state))])
    bundles = [str(BundleName(_NAMESPACE, low, high)) for low, high in pairwise(edges)]
    for interval in range(period_ms, (intervals + 1) * period_ms, period_ms):
        for nth, broker in enumerate(_BROKERS):
            metrics.publish(_sweep(cluster, broker, interval, bundles[nth :: len(_BROKERS)]))
        metrics.tick(interval, {broker: _sweep_id(broker, interval) for broker in _BROKERS})
    return len(list(folder.glob("*/*.jsonl")))


def _sweep(cluster: str, broker: str, interval: int, bundles: list[str]) -> Iterator[KeyValue]:
    """A sweep of *broker*, on which all *bundles* are alike."""
    number = len(bundles)
    load, counts = np.tile(_LOAD, (number, 1)), np.tile(np.array(_COUNTS, np.int64), (number, 1))
    header = sweep_header(
        cluster=cluster,
        broker=broker,
        interval=interval,
        sweep_id=_sweep_id(broker, interval),
        last_update=interval,
        usage=_USAGE,
        rates=load.sum(axis=0).tolist(),
        bundles=number,
        topics=number,
        producers=number,
        consumers=number,
    )
    swept = SweptBroker(
        header=header,
        bundles=bundles,
        total_load=load,
        total_counts=np.ones((number, 3), np.int64),
        starts=np.arange(number + 1),
        topics=[f"persistent://{_NAMESPACE}/topic-{nth}" for nth in range(number)],
        load=load,
        counts=counts,
    )
    return json_chunks(swept)


def _sweep_id(broker: str, interval: int) -> str:
    return f"{broker}@{interval}"
