"""Put the partitions of a topic into the bundles of its namespace in turn, so that their numbers differ by 1 at most.

Partition 0 lies where consistent hashing puts it, so topics begin at different bundles; partition i lies i bundles on.
A topic without partitions lies where consistent hashing puts it.  The assignment depends on the boundaries alone:
neither brokers that come or go nor partitions that are added move any other partition.

Pulsar: an example of PIP-255; Pulsar 4.0.8 has no such class
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from controller.model.load import Ints
from controller.model.topic_name import PARTITION_SUFFIX, partition_index
from controller.strategies.common.ring import bundles_at, rows_that_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinTopicBundleAssigner:
    """See the module docstring."""

    def assign(self, topics: Sequence[str], boundaries: Sequence[int]) -> Ints:
        """See TopicBundleAssignment.  O(topics x log bundles).  Where partition 0 has no bundle, no other has."""
        index = np.fromiter(map(partition_index, topics), np.int64, len(topics))
        begins: dict[str, int] = {}
        start = np.empty(len(topics), np.int64)
        for row, (topic, number) in enumerate(zip(topics, index.tolist(), strict=True)):
            first = topic if number < 0 else f"{topic.rpartition(PARTITION_SUFFIX)[0]}{PARTITION_SUFFIX}0"
            position = begins.get(first)
            if position is None:
                position = begins[first] = crc32(first.encode())
            start[row] = position
        begin = bundles_at(start, boundaries)
        return np.where(begin < 0, -1, (begin + np.maximum(index, 0)) % (len(boundaries) - 1))

    def on_bundle_split(
        self, topics: Sequence[str], assigned: Ints, old: Sequence[int], new: Sequence[int]
    ) -> tuple[Ints, Ints]:
        """See TopicBundleAssignment; all partitions of the namespace are assigned anew."""
        if tuple(old) == tuple(new):
            return assigned, np.zeros(0, np.int64)
        again = self.assign(topics, new)
        return again, rows_that_moved(assigned, old, again, new)
