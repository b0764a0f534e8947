"""Leave bundles on their broker if their namespace has an isolation policy or an anti-affinity group.

Few brokers may take them, so the extensible load manager does not move them unless told to; the modular one does.

Pulsar: TransferShedder.isLoadBalancerSheddingBundlesWithPoliciesEnabled, TopKBundles.hasPolicies
"""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.option import option
from controller.strategies.common.stay_filter import StayFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class BundlesWithPolicies(StayFilter):
    """See the module docstring."""

    reason: ClassVar[Reason] = Reason.BUNDLE_WITH_POLICIES

    shed: bool = option(
        "loadBalancerSheddingBundlesWithPoliciesEnabled",
        default=False,
        meaning="shed bundles of namespaces with an isolation policy or an anti-affinity group, too",
    )

    def may_leave(
        self,
        view: ClusterView,
        bundle: int,
        candidates: Ints,  # noqa: ARG002  they make no difference
    ) -> bool:
        """Whether the bundle's namespace has no policy, or bundles with policies may be shed."""
        return self.shed or not view.policies.governs(view.bundles.namespaces[view.bundles.namespace[bundle]])
