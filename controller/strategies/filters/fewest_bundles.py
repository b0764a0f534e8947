"""Spread the bundles of every namespace evenly: keep the brokers that own the fewest bundles of it.

At least one broker is always left.  Bundles on their way count; the bundle itself counts where it is now.  Pulsar's own
namespace ``pulsar/system`` is spread even when the option is off.

Pulsar: LoadManagerShared.removeMostServicingBrokersForNamespace
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.option import option

_SYSTEM_NAMESPACE = "pulsar/system"


@dataclass(frozen=True, slots=True, kw_only=True)
class FewestBundles:
    """See the module docstring."""

    reason: ClassVar[Reason] = Reason.FEWEST_BUNDLES
    binding: ClassVar[bool] = False

    enabled: bool = option(
        "loadBalancerDistributeBundlesEvenlyEnabled",
        default=True,
        meaning="a bundle goes to a broker with the fewest bundles of its namespace",
    )

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The *candidates* with the fewest bundles of the bundle's namespace."""
        bundles = view.bundles
        namespace = int(bundles.namespace[bundle])
        if not len(candidates) or not (self.enabled or bundles.namespaces[namespace] == _SYSTEM_NAMESPACE):
            return candidates
        counts = np.zeros(len(view.brokers), np.int64)
        rows = slice(*bundles.ownership.starts[namespace : namespace + 2].tolist())
        counts[bundles.ownership.broker[rows]] = bundles.ownership.bundles[rows]
        sent = view.preallocated
        if len(sent):
            # A broker that lists the bundle already counts it once.
            coming = (bundles.namespace[sent.bundle] == namespace) & (bundles.broker[sent.bundle] != sent.broker)
            counts += np.bincount(sent.broker[coming], minlength=len(counts))
        owned = counts[candidates]
        fewest: Ints = candidates[owned == owned.min()]
        return fewest
