"""A topic lies in the bundle that holds the hash of its full name; each partition is hashed by itself.

Pulsar: org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner, the default
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from controller.model.load import Ints
from controller.strategies.common.ring import bundles_at, rows_that_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistentHashingTopicBundleAssigner:
    """See the module docstring."""

    def assign(self, topics: Sequence[str], boundaries: Sequence[int]) -> Ints:
        """See TopicBundleAssignment.  O(topics x log bundles)."""
        positions = np.fromiter((crc32(topic.encode()) for topic in topics), np.int64, len(topics))
        return bundles_at(positions, boundaries)

    def on_bundle_split(
        self, topics: Sequence[str], assigned: Ints, old: Sequence[int], new: Sequence[int]
    ) -> tuple[Ints, Ints]:
        """See TopicBundleAssignment; only topics of bundles that were split move."""
        if tuple(old) == tuple(new):
            return assigned, np.zeros(0, np.int64)
        again = self.assign(topics, new)
        return again, rows_that_moved(assigned, old, again, new)
