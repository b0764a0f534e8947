"""Views with segments of scalable topics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from controller.model.load import RATE_IN, THROUGHPUT_IN, ClusterView, TopicDetail
from controller.model.names import topic_hash
from controller.model.segment_code import segment_code
from controller.model.topic_kinds import PERSISTENT, SEGMENTS
from tests.cluster import MB, Broker, bundle, view


def segment(topic: str, first: int, last: int, number: int = 0, namespace: str = "tenant/ns") -> str:
    """The name of a segment, as brokers write it."""
    return f"segment://{namespace}/{topic}/{first:04x}-{last:04x}-{number}"


def segmented(brokers: Mapping[str, Mapping[str, float]], *, usage: float = 0.5) -> ClusterView:
    """Brokers at *usage* with segments, each in a bundle of its own, and their MB/s in; messages have 1 MB."""
    segments = [(name, topic, rate) for name, of in brokers.items() for topic, rate in of.items()]
    bundles = [f"tenant/ns/0x{row:08x}_0x{row + 1:08x}" for row in range(len(segments))]
    there = []
    for name in brokers:
        own = {b: bundle(rate) for b, (owner, _, rate) in zip(bundles, segments, strict=True) if owner == name}
        there.append(Broker(name, cpu=usage, bundles=own))
    made = view(*there)
    return replace(made, bundles=replace(made.bundles, **of_segments([(topic, rate) for _, topic, rate in segments])))


def of_segments(segments: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """The columns of bundles with one segment each: name, and MB/s in; one without traffic is not listed."""
    loaded = [(topic, rate) for topic, rate in segments if rate]
    load = np.zeros((len(loaded), 4))
    load[:, THROUGHPUT_IN] = [rate * MB for _, rate in loaded]
    load[:, RATE_IN] = [rate for _, rate in loaded]
    detail = TopicDetail.of(
        np.array([int(rate > 0) for _, rate in segments], np.int64),
        np.array([topic_hash(topic) for topic, _ in loaded], np.int64),
        load,
        np.array([segment_code(topic) for topic, _ in loaded], np.int64),
    )
    return {"detail": detail, "kinds": np.full(len(segments), PERSISTENT | SEGMENTS, np.uint8)}
