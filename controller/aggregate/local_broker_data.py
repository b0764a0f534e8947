"""What a broker tells of itself, from the stats of its bundles: totals, and which bundles came and went.

Pulsar: org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData.update and cleanDeltas
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from controller.model.load import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalBrokerData:
    """One broker's totals over its bundles; a new broker starts with none."""

    #: (4,) msg/s in and out, bytes/s in and out.
    load: Floats = field(default_factory=lambda: np.zeros(4))
    topics: int = 0
    producers: int = 0
    consumers: int = 0
    bundles: frozenset[str] = frozenset()
    #: Gained and lost since the deltas were last cleaned.  A bundle that came and went is in both.
    gains: frozenset[str] = frozenset()
    losses: frozenset[str] = frozenset()

    def updated(self, names: Sequence[str], load: Floats, topics: Ints, producers: Ints, consumers: Ints) -> Self:
        """Take in the stats of all bundles that the broker serves now: one row each, ``load`` (n, 4).

        What is not among *names* is lost.  The deltas grow until :meth:`without_deltas`.
        """
        bundles = frozenset(names)
        return replace(
            self,
            load=load.sum(axis=0),
            topics=int(topics.sum()),
            producers=int(producers.sum()),
            consumers=int(consumers.sum()),
            bundles=bundles,
            gains=self.gains | (bundles - self.bundles),
            losses=self.losses | (self.bundles - bundles),
        )

    def without_deltas(self) -> Self:
        """After a report was written: gains and losses count from here."""
        return replace(self, gains=frozenset(), losses=frozenset())
