"""Which brokers do not serve the kinds of topics that a bundle holds."""

from controller.model.load import Bools, ClusterView
from controller.model.topic_kinds import BOTH


def without_its_kinds(view: ClusterView, bundle: int) -> Bools | None:
    """(brokers,) which do not serve all kinds of topics that *bundle* (a row) holds; None where all brokers serve both.

    O(1) where all serve both, as in nearly every cluster.
    """
    policies = view.policies
    if not policies.without_persistent and not policies.without_non_persistent:
        return None
    missing: Bools = (view.bundles.kinds[bundle] & BOTH & ~policies.served_kinds(view.brokers.names)) != 0
    return missing
