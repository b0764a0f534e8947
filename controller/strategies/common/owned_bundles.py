"""Which brokers received, gave away or split a bundle, that is, whose set of bundles changed.

A broker of the extensible load manager forgets its averages then, since its load before says little about its load
now.  Only a digest of the names is remembered of each broker, as a cluster can have 100,000 bundles (see
ClusterView.owned_digests).  What leaves a broker with the same bundles is not seen: a bundle that went and came back,
or was unloaded and stayed.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.reporter.BrokerLoadDataReporter.handleEvent
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from controller.model.load import Bools, ClusterView

V = TypeVar("V")


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> Bools:
    """(brokers of *now*,) which of them have other bundles than *before*; not those that *before* does not know."""
    return np.array([before.get(name, digest) != digest for name, digest in now.items()], np.bool_)


def remembered(before: Mapping[str, V], now: Mapping[str, V], view: ClusterView) -> dict[str, V]:
    """*now*, by broker, and of the brokers of *view* without data what was known *before*; others are forgotten."""
    return {**now, **{name: before[name] for name in view.missing if name in before}}
