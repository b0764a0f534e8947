"""Leave bundles of named namespaces on their broker, with either load manager.

Pulsar has this since 4.2, and places such bundles in turn when they need a broker.  That is the brokers' own: trimtab
places what it unloads, and nothing else.

Pulsar 4.2: ModularLoadManagerImpl.doLoadShedding, TransferShedder.findUnloads, TopKBundles.update
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.option import option
from controller.strategies.common.stay_filter import StayFilter

#: The option's name in broker.conf.
EXCLUDED_NAMESPACES: Final = "loadBalancerSheddingExcludedNamespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingExcludedNamespaces(StayFilter):
    """See the module docstring."""

    reason: ClassVar[Reason] = Reason.EXCLUDED

    names: frozenset[str] = option(
        EXCLUDED_NAMESPACES,
        default=frozenset(),
        meaning="bundles of these namespaces, separated by commas, are never unloaded; they are split all the same",
    )

    def may_leave(
        self,
        view: ClusterView,
        bundle: int,
        candidates: Ints,  # noqa: ARG002  they make no difference
    ) -> bool:
        """Whether the bundle's namespace is none of them."""
        return view.bundles.namespaces[view.bundles.namespace[bundle]] not in self.names
