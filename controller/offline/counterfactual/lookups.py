"""Where clients find a bundle that has lost its broker: the brokers' own load manager chooses.

Pulsar: LeastLongTermMessageRate, after the filters for kinds of topics and for spreading a namespace evenly.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.model.load import RATE_IN, RATE_OUT
from controller.model.names import namespace_of
from controller.model.topic_kinds import BOTH, NON_PERSISTENT, PERSISTENT


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


def serving(recorded: Snapshot, kinds: int, brokers: Sequence[str]) -> Sequence[str]:
    """Those of *brokers* that serve all *kinds* of topics; all of them where none does."""
    off = set[str]()
    for state in recorded.broker_states:
        served = PERSISTENT * state.persistent_topics | NON_PERSISTENT * state.non_persistent_topics
        if kinds & BOTH & ~served:
            off.add(state.broker)
    return [broker for broker in brokers if broker not in off] or brokers
