"""Exclude brokers that do not serve the kinds of topics that a bundle holds: persistent, non-persistent, or both.

Such a broker refuses to load the topics (enablePersistentTopics, enableNonPersistentTopics in its broker.conf).  So
this holds also under an isolation policy, where Pulsar does not look at it, and where it leaves no broker: the bundle
then stays.  Of a bundle whose kinds are not known, see controller.model.topic_kinds.kinds_of_bundles.

Pulsar: LoadManagerShared.applyNamespacePolicies; it knows one kind, that of the topic that is looked up, and takes a
bundle that it sheds for persistent.
"""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.strategies.common.served_kinds import without_its_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicKinds:
    """See the module docstring.  It has no options."""

    reason: ClassVar[Reason] = Reason.TOPIC_KINDS
    binding: ClassVar[bool] = True

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The *candidates* that serve every kind of topics that the bundle holds."""
        closed = without_its_kinds(view, bundle)
        return candidates if closed is None else candidates[~closed[candidates]]
