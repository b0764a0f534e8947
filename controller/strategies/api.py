"""The public API for strategies of your own; they import no other module of trimtab (docs/write_your_own_strategy.md).

Everything here keeps its name and its meaning.  Tests of a strategy also use ``controller.laws``.
"""

from controller.model.decision import (
    CLUSTER,
    Reason,
    Split,
    SplitDecision,
    Unload,
    UnloadDecision,
    UsageOutlook,
    Verdict,
)
from controller.model.errors import SettingsError
from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    UNOWNED,
    Bools,
    BrokerTable,
    BundleTable,
    ClusterView,
    Floats,
    Ints,
    busiest_first,
)
from controller.model.names import BundleName, parse_bundle
from controller.model.option import option
from controller.model.resource_usage import ResourceWeights, mean_usage
from controller.model.strategy_memory import DryRunMoves, NoMemory, Renaming, StrategyMemory, renamed
from controller.strategies.common.movable import broker_own, movable
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.protocols import (
    HurriedShedder,
    Observer,
    PairedShedder,
    Placement,
    PlanAwarePlacement,
    Shedder,
    SplitAlgorithm,
    SplitPolicy,
    SplitThresholds,
    StickyPlacement,
    TopicBundleAssignment,
)
from controller.strategies.view_builder import Broker, Bundle, cluster_view

__all__ = [
    "BANDWIDTH_IN",
    "BANDWIDTH_OUT",
    "CLUSTER",
    "CPU",
    "DIRECT_MEMORY",
    "MEMORY",
    "UNOWNED",
    "Bools",
    "Broker",
    "BrokerTable",
    "Bundle",
    "BundleName",
    "BundleTable",
    "ClusterView",
    "DryRunMoves",
    "Floats",
    "HurriedShedder",
    "Ints",
    "NoMemory",
    "Observer",
    "PairedShedder",
    "Placement",
    "PlanAwarePlacement",
    "Reason",
    "Renaming",
    "ResourceWeights",
    "SettingsError",
    "Shedder",
    "Split",
    "SplitAlgorithm",
    "SplitDecision",
    "SplitPolicy",
    "SplitThresholds",
    "StickyPlacement",
    "StrategyMemory",
    "TopicBundleAssignment",
    "Unload",
    "UnloadDecision",
    "UsageHistory",
    "UsageOutlook",
    "Verdict",
    "broker_own",
    "busiest_first",
    "cluster_view",
    "mean_usage",
    "movable",
    "option",
    "parse_bundle",
    "renamed",
]
