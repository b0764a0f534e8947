"""What tests of filters share: the brokers by name that a filter keeps for a bundle."""

from collections.abc import Collection

import numpy as np

from controller.model.load import ClusterView
from controller.strategies.protocols import Filter


def accepted_brokers(by: Filter, cluster: ClusterView, bundle: str, *, of: Collection[str] | None = None) -> list[str]:
    """The brokers *of* these, or of all, that are kept."""
    names = cluster.brokers.names
    rows = [row for row, name in enumerate(names) if of is None or name in of]
    left = by.keep(cluster, cluster.bundles.code_of[bundle], np.array(rows, np.int64))
    return [names[row] for row in left.tolist()]


def sent(cluster: ClusterView, bundle: str, destination: str) -> ClusterView:
    """*cluster* with *bundle* on its way."""
    return cluster.with_preallocated(cluster.bundles.code_of[bundle], cluster.brokers.code_of[destination])
