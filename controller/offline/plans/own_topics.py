"""The bundles of trimtab's own topics on brokers that are to be empty: a person moves them.

trimtab would be cut off from its log while such a bundle moves, and no result would be written.
"""

import shlex
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from controller.offline.plans.source import PlanSource


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBundle:
    """One bundle, its broker, and the command that moves it."""

    bundle: str
    broker: str
    command: str


def own_bundles_on(source: PlanSource, emptied: Collection[str], destination: str) -> list[OwnBundle]:
    """The bundles of trimtab's own topics on the brokers *emptied*; the commands move them to *destination*."""
    bundles, brokers = source.view.bundles, source.view.brokers
    rows = [row for name in emptied if (row := brokers.code_of.get(name)) is not None]
    found = list[OwnBundle]()
    for row in np.flatnonzero(np.isin(bundles.broker, rows) & source.own & bundles.owned).tolist():
        namespace, _, bounds = bundles.names[row].rpartition("/")
        words = ["pulsar-admin", "namespaces", "unload", namespace, "--bundle", bounds]
        words += ["--destinationBroker", destination]
        broker = brokers.names[int(bundles.broker[row])]
        found.append(OwnBundle(bundle=bundles.names[row], broker=broker, command=shlex.join(words)))
    return found
