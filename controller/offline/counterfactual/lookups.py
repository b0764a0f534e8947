"""Where clients find a bundle that has lost its broker: the brokers' own load manager chooses.

Pulsar: LeastLongTermMessageRate, after the filter that spreads a namespace evenly.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.model.load import RATE_IN, RATE_OUT
from controller.model.names import namespace_of


class Lookups:
    """The brokers as of the last interval, and what was looked up since."""

    def __init__(self, last: Snapshot | None, *, evenly: bool) -> None:
        """*evenly*: loadBalancerDistributeBundlesEvenlyEnabled."""
        self._rates: dict[str, float] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        if last is not None:
            average = last.long_term[:, RATE_IN] + last.long_term[:, RATE_OUT]
            rate = np.bincount(last.owner, average, len(last.roster))
            self._rates = dict(zip(last.roster, rate.tolist(), strict=True))
            if evenly:
                owners = [last.roster[owner] for owner in last.owner.tolist()]
                self._counts.update(zip(map(namespace_of, last.names), owners, strict=True))

    def chosen(self, bundle: str, brokers: Sequence[str]) -> str:
        """The one of *brokers*, at least one, that *bundle* goes to."""
        namespace = namespace_of(bundle)
        return min(brokers, key=lambda name: (self._counts[namespace, name], self._rates.get(name, 0.0), name))

    def came(self, bundle: str, broker: str, rate: float) -> None:
        """Remember that *bundle* came to *broker* with *rate*, msg/s in and out."""
        self._rates[broker] = self._rates.get(broker, 0.0) + rate
        if self._counts:
            self._counts[namespace_of(bundle), broker] += 1
