"""The bundles of each namespace: as recorded, and as the replay has cut them.

A namespace is a ring that is cut into bundles.  Where the replay has other cuts than the recording, a bundle's load is
made of the recorded bundles that it overlaps: of each it gets the share of the topics in the overlap, or of the hash
range where the recording does not have the topics.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.model.load import Floats, Ints, ragged
from controller.model.names import BundleName, parse_bundle


@dataclass(slots=True)
class Cuts:
    """Namespace -> its cuts, sorted, both ends of what is known included."""

    of: dict[str, list[int]] = field(default_factory=dict)

    def add(self, namespace: str, cuts: Iterable[int]) -> None:
        """Cut *namespace* at *cuts*, too."""
        positions = self.of.setdefault(namespace, [])
        positions[:] = sorted({*positions, *cuts})

    def has(self, bundle: BundleName) -> bool:
        """Whether *bundle* is one: its ends are cuts, and none lies between."""
        positions = self.of.get(bundle.namespace, [])
        at = bisect_left(positions, bundle.lower)
        return positions[at : at + 2] == [bundle.lower, bundle.upper]

    def around(self, namespace: str, cut: int) -> BundleName | None:
        """The bundle that *cut* lies strictly inside; None where it is a cut already, or nothing is there."""
        positions = self.of.get(namespace, [])
        at = bisect_right(positions, cut)
        if not 0 < at < len(positions) or positions[at - 1] == cut:
            return None
        return BundleName(namespace, positions[at - 1], positions[at])

    def bundles(self, namespace: str) -> list[BundleName]:
        """All bundles of *namespace*."""
        return [BundleName(namespace, *ends) for ends in pairwise(self.of.get(namespace, []))]


def children(parent: BundleName, cuts: Iterable[int]) -> list[str]:
    """The bundles that *parent* becomes if it is cut at *cuts*."""
    inside = sorted(cut for cut in cuts if parent.lower < cut < parent.upper)
    return [str(BundleName(parent.namespace, *ends)) for ends in pairwise((parent.lower, *inside, parent.upper))]


def rows_of(snapshot: Snapshot, namespace: str) -> Ints:
    """Rows of the bundles of *namespace*; names are sorted, and ranges begin with 0x."""
    first = bisect_left(snapshot.names, f"{namespace}/0x")
    return np.arange(first, bisect_left(snapshot.names, f"{namespace}/0y"), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BundlePart:
    """What a bundle of the replay carries; made of recorded bundles."""

    bundle: str
    #: (4,) load, and topics, producers, consumers.
    load: Floats
    counts: Ints
    #: Flags of controller.model.topic_kinds.
    kinds: int
    #: (topics,) positions, (topics, 4) load and (topics,) codes of the topics that are known one by one.
    position: Ints
    topic_load: Floats
    segment: Ints


def parts_of(snapshot: Snapshot, rows: Ints, parts: Sequence[BundleName]) -> list[BundlePart]:
    """What those of *parts*, bundles of one namespace, carry that overlap its recorded bundles at *rows*.

    Topics of a bundle that are not recorded one by one are taken to lie evenly on its range, and each part to have all
    its kinds of topics.
    """
    recorded = [(row, parse_bundle(snapshot.names[row])) for row in rows.tolist()]
    bundle_parts = []
    for bundle in parts:
        overlapping = [(row, one) for row, one in recorded if one.lower < bundle.upper and bundle.lower < one.upper]
        if overlapping:
            bundle_parts.append(_part(snapshot, bundle, overlapping))
    return bundle_parts


def _part(snapshot: Snapshot, bundle: BundleName, overlapping: Sequence[tuple[int, BundleName]]) -> BundlePart:
    load, counts = np.zeros(4), np.zeros(3)
    positions, topic_loads, segments = [], [], []
    for row, one in overlapping:
        lower, upper = max(bundle.lower, one.lower), min(bundle.upper, one.upper)
        known = ragged(snapshot.detail_size, np.array([row]))
        position, topic_load = snapshot.detail_position[known], snapshot.detail_load[known]
        # The very last position of the ring belongs to the last bundle.
        inside = (position >= lower) & ((position < upper) | (upper == one.upper))
        width = (upper - lower) / max(1, one.upper - one.lower)
        total = topic_load.sum(axis=0)
        with np.errstate(all="ignore"):
            share = np.where(total > 0, topic_load[inside].sum(axis=0) / total, width)
        of_count = float(inside.mean()) if len(position) else width
        load += snapshot.load[row] * (1.0 if (lower, upper) == (one.lower, one.upper) else share)
        row_counts = np.array([snapshot.topics[row], snapshot.producers[row], snapshot.consumers[row]], np.float64)
        counts += row_counts * (1.0 if (lower, upper) == (one.lower, one.upper) else of_count)
        positions.append(position[inside])
        topic_loads.append(topic_load[inside])
        segments.append(snapshot.detail_segment[known][inside])
    order = np.argsort(np.concatenate(positions), kind="stable")
    return BundlePart(
        bundle=str(bundle),
        load=load,
        counts=np.rint(counts).astype(np.int64),
        kinds=int(np.bitwise_or.reduce(snapshot.kinds[[row for row, _ in overlapping]])),
        position=np.concatenate(positions)[order],
        topic_load=np.concatenate(topic_loads)[order],
        segment=np.concatenate(segments)[order],
    )
