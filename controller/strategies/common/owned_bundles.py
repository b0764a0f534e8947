"""Which brokers got, gave or split a bundle: those that have other bundles than before.

A broker of the extensible load manager forgets its averages then, since its load before says little about its load
now.  Only a digest of the names is remembered of each broker, as a cluster can have 100,000 bundles.  What leaves a
broker with the same bundles is not seen: a bundle that went and came back, or was unloaded and stayed.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.reporter.BrokerLoadDataReporter.handleEvent
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, TypeVar

import numpy as np

from controller.model.load import Bools, ClusterView
from controller.model.names import is_broker_own

V = TypeVar("V")

#: Bytes of a digest.  Two sets of bundles with the same digest would only leave averages as they are.
_DIGEST_BYTES: Final = 8


def digests(view: ClusterView) -> dict[str, str]:
    """Broker -> digest of the bundles that it owns in *view*; its heartbeat and SLA monitor are always its own."""
    bundles = view.bundles
    shared = ~np.array([is_broker_own(name) for name in bundles.namespaces], np.bool_)
    found = {}
    for broker, name in enumerate(view.brokers.names):
        rows = bundles.of_broker(broker)
        owned = "\n".join([bundles.names[row] for row in rows[shared[bundles.namespace[rows]]].tolist()])
        found[name] = blake2b(owned.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> Bools:
    """(brokers of *now*,) which of them have other bundles than *before*; not those that *before* does not know."""
    return np.array([before.get(name, digest) != digest for name, digest in now.items()], np.bool_)


def remembered(before: Mapping[str, V], now: Mapping[str, V], view: ClusterView) -> dict[str, V]:
    """*now*, by broker, and of the brokers of *view* without data what was known *before*; others are forgotten."""
    return {**now, **{name: before[name] for name in view.missing if name in before}}
