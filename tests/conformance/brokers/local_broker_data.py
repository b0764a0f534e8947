"""A broker's report about itself, from the stats of its bundles: totals, and gained and lost bundles.

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
    #: Bundles gained and lost since the last report.  A bundle that was gained and lost is in both.
    gains: frozenset[str] = frozenset()
    losses: frozenset[str] = frozenset()

    def updated(self, names: Sequence[str], load: Floats, topics: Ints, producers: Ints, consumers: Ints) -> Self:
        """The data after new stats of all bundles that the broker serves now: one row each, ``load`` is (n, 4).

        Bundles that are not in *names* are lost.  Gains and losses grow until :meth:`without_deltas`.
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
        """The data after a report was written: no gains and losses."""
        return replace(self, gains=frozenset(), losses=frozenset())
