"""Every strategy of trimtab, by the name that broker.conf gives it.

A new strategy is one file and one line here; the laws of all strategies (controller/laws) then apply to it.  Users name
strategies of their own in broker.conf by their Python names: see controller/settings/strategy_kinds.py.
"""

from collections.abc import Mapping
from typing import Any, Final, get_type_hints

from controller.model.strategy_memory import StrategyMemory
from controller.strategies.assignment.consistent_hashing import ConsistentHashingTopicBundleAssigner
from controller.strategies.assignment.round_robin import RoundRobinTopicBundleAssigner
from controller.strategies.filters.anti_affinity import AntiAffinity, ExtAntiAffinity
from controller.strategies.filters.broker_version import BrokerVersion
from controller.strategies.filters.bundles_with_policies import BundlesWithPolicies
from controller.strategies.filters.ext_max_topics import ExtMaxTopics
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.filters.isolation_policies import IsolationPolicies
from controller.strategies.filters.max_topics import MaxTopics
from controller.strategies.filters.shedding_excluded_namespaces import SheddingExcludedNamespaces
from controller.strategies.filters.topic_kinds import TopicKinds
from controller.strategies.placement.avg_shedder_placement import AvgShedder as AvgShedderPlacement
from controller.strategies.placement.ext_least_resource_usage_with_weight import ExtLeastResourceUsageWithWeight
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.placement.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from controller.strategies.placement.round_robin_broker_selector import RoundRobinBrokerSelector
from controller.strategies.protocols import (
    Filter,
    Placement,
    Shedder,
    SplitAlgorithm,
    SplitPolicy,
    TopicBundleAssignment,
)
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.shedding.avg_shedder import AvgShedder
from controller.strategies.shedding.deviation_shedder import MessageRateDeviationShedder, ThroughputDeviationShedder
from controller.strategies.shedding.overload_shedder import OverloadShedder
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.shedding.transfer_shedder import TransferShedder
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
)
from controller.strategies.splitting.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from controller.strategies.splitting.topic_count_equally_divide import TopicCountEquallyDivide

#: loadBalancerLoadSheddingStrategy; Pulsar's default is ThresholdShedder.
SHEDDERS: Final[Mapping[str, type[Shedder[Any]]]] = {
    "AvgShedder": AvgShedder,
    "MessageRateDeviationShedder": MessageRateDeviationShedder,
    "OverloadShedder": OverloadShedder,
    "PeakShedder": PeakShedder,
    "ThresholdShedder": ThresholdShedder,
    "ThroughputDeviationShedder": ThroughputDeviationShedder,
    "TransferShedder": TransferShedder,
    "UniformLoadShedder": UniformLoadShedder,
}

#: loadBalancerLoadPlacementStrategy; Pulsar's default is LeastLongTermMessageRate.
PLACEMENTS: Final[Mapping[str, type[Placement[Any]]]] = {
    "AvgShedder": AvgShedderPlacement,
    "ExtLeastResourceUsageWithWeight": ExtLeastResourceUsageWithWeight,
    "LeastLongTermMessageRate": LeastLongTermMessageRate,
    "LeastResourceUsageWithWeight": LeastResourceUsageWithWeight,
    "RoundRobinBrokerSelector": RoundRobinBrokerSelector,
}

#: When to split: each load manager of Pulsar has one policy, and no setting for it but loadManagerClassName.
SPLIT_POLICIES: Final[Mapping[str, type[SplitPolicy[Any]]]] = {
    "BundleSplitterTask": BundleSplitterTask,
    "DefaultNamespaceBundleSplitStrategyImpl": DefaultNamespaceBundleSplitStrategyImpl,
}

#: Where to split: defaultNamespaceBundleSplitAlgorithm; Pulsar's default is range_equally_divide.
SPLIT_ALGORITHMS: Final[Mapping[str, type[SplitAlgorithm]]] = {
    "flow_or_qps_equally_divide": FlowOrQpsEquallyDivide,
    "range_equally_divide": RangeEquallyDivide,
    "specified_positions_divide": SpecifiedPositionsDivide,
    "topic_count_equally_divide": TopicCountEquallyDivide,
}

#: Which bundle a topic belongs to: topicBundleAssignmentStrategy; Pulsar has only the first one.
ASSIGNMENTS: Final[Mapping[str, type[TopicBundleAssignment]]] = {
    "ConsistentHashingTopicBundleAssigner": ConsistentHashingTopicBundleAssigner,
    "RoundRobinTopicBundleAssigner": RoundRobinTopicBundleAssigner,
}

_IMPL: Final = "org.apache.pulsar.broker.loadbalance.impl."
_EXTENSIONS: Final = "org.apache.pulsar.broker.loadbalance.extensions."
#: Full name of a class of Pulsar -> its key here.  A key begins with Ext where both load managers have a class of one
#: name.  Brokers know these names and no others.
CLASSES_OF_PULSAR: Final[Mapping[str, str]] = {
    **{f"{_IMPL}{name}": name for name in ("AvgShedder", "OverloadShedder", "ThresholdShedder", "UniformLoadShedder")},
    **{
        f"{_IMPL}{name}": name
        for name in ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector")
    },
    f"{_IMPL}BundleSplitterTask": "BundleSplitterTask",
    f"{_EXTENSIONS}scheduler.TransferShedder": "TransferShedder",
    f"{_EXTENSIONS}strategy.LeastResourceUsageWithWeight": "ExtLeastResourceUsageWithWeight",
    f"{_EXTENSIONS}strategy.DefaultNamespaceBundleSplitStrategyImpl": "DefaultNamespaceBundleSplitStrategyImpl",
    "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner": "ConsistentHashingTopicBundleAssigner",
    f"{_IMPL}ModularLoadManagerImpl": "ModularLoadManagerImpl",
    f"{_IMPL}SimpleLoadManagerImpl": "SimpleLoadManagerImpl",
    f"{_EXTENSIONS}ExtensibleLoadManagerImpl": "ExtensibleLoadManagerImpl",
    "org.apache.pulsar.broker.loadbalance.NoopLoadManager": "NoopLoadManager",
}

#: Which brokers a bundle may go to, in the order of Pulsar's modular load manager; each says in its ``reason`` why it
#: excludes one.  All of them always run, and those that are off by default exclude none.
FILTERS: Final[Mapping[str, type[Filter]]] = {
    "SheddingExcludedNamespaces": SheddingExcludedNamespaces,
    "IsolationPolicies": IsolationPolicies,
    "TopicKinds": TopicKinds,
    "MaxTopics": MaxTopics,
    "AntiAffinity": AntiAffinity,
    "FewestBundles": FewestBundles,
    "BrokerVersion": BrokerVersion,
}

#: The same for the extensible load manager, in its order; it knows no even spreading.  Its last filter is also the one
#: for kinds of topics.  Here that is the first, so that the others choose among brokers that can load the bundle.
EXTENSIBLE_FILTERS: Final[Mapping[str, type[Filter]]] = {
    "SheddingExcludedNamespaces": SheddingExcludedNamespaces,
    "BundlesWithPolicies": BundlesWithPolicies,
    "TopicKinds": TopicKinds,
    "ExtMaxTopics": ExtMaxTopics,
    "BrokerVersion": BrokerVersion,
    "ExtAntiAffinity": ExtAntiAffinity,
    "IsolationPolicies": IsolationPolicies,
}

_REMEMBERING: Final[tuple[Any, ...]] = (
    *SHEDDERS.values(),
    *PLACEMENTS.values(),
    *SPLIT_POLICIES.values(),
    RebalanceOnMembershipChange,
)
#: What these strategies remember, by its name in the journal.
MEMORIES: Final[Mapping[str, type[StrategyMemory]]] = {
    kind.kind: kind for kind in (get_type_hints(strategy.initial_memory)["return"] for strategy in _REMEMBERING)
}

#: Every strategy's own name.
_KNOWN: Final = frozenset({*SHEDDERS, *PLACEMENTS, *SPLIT_POLICIES, *SPLIT_ALGORITHMS, *ASSIGNMENTS})
_PULSAR: Final = "org.apache.pulsar."
#: What Java packages begin with, besides the two letters of a country: a domain, the other way round.
_DOMAINS: Final = frozenset({"com", "dev", "edu", "gov", "net", "org"})


def short_name(name: str) -> str:
    """The key of a strategy or load manager, or *name* itself where it is no name of Pulsar's or of trimtab's.

    A key is given as it is, or as the full name of Pulsar's class, with or without ``.class``.  A class of another
    package is not Pulsar's, whatever its last part is.  Where Pulsar has no class of that name, it is a user's own in
    any package (a subclass of DeviationShedder, an assigner), and trimtab has its like.
    """
    if is_python_name(name):
        return name
    name = name.removesuffix(".class")
    last = name.rpartition(".")[2]
    anywhere = last in _KNOWN and last not in CLASSES_OF_PULSAR.values() and not name.startswith(_PULSAR)
    return last if anywhere else CLASSES_OF_PULSAR.get(name, name)


def class_in_version(name: str) -> str:
    """The full name of Pulsar's class that *name*, a class name with a wrong package, may mean; "" for none."""
    last = name.removesuffix(".class").rpartition(".")[2]
    return next((full for full in CLASSES_OF_PULSAR if full.rpartition(".")[2] == last), "")


def is_python_name(name: str) -> bool:
    """Whether *name* can only be the full Python name of a strategy that a user wrote: ``package.module.Class``.

    Not so: names without a dot, classes of Pulsar, and Java class names whose last part is a strategy here.
    """
    package, _, last = name.removesuffix(".class").rpartition(".")
    if not package or package.startswith(_PULSAR):
        return False
    domain = package.partition(".")[0]
    return last not in _KNOWN or not (domain in _DOMAINS or len(domain) == 2)
