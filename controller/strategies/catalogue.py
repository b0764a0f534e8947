"""Every strategy there is, by the name broker.conf gives it.

A new strategy is one file and one line here; the laws in tests/property hold it from then on.
"""

from collections.abc import Mapping
from typing import Any, Final

from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.placement.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from controller.strategies.protocols import Placement, Shedder, SplitAlgorithm, SplitPolicy
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide

#: loadBalancerLoadSheddingStrategy; Pulsar's default is ThresholdShedder.
SHEDDERS: Final[Mapping[str, type[Shedder[Any]]]] = {
    "ThresholdShedder": ThresholdShedder,
}

#: loadBalancerLoadPlacementStrategy; Pulsar's default is LeastLongTermMessageRate.
PLACEMENTS: Final[Mapping[str, type[Placement[Any]]]] = {
    "LeastLongTermMessageRate": LeastLongTermMessageRate,
    "LeastResourceUsageWithWeight": LeastResourceUsageWithWeight,
}

#: When to split: Pulsar's modular load manager has one policy and no setting for it.
SPLIT_POLICIES: Final[Mapping[str, type[SplitPolicy[Any]]]] = {
    "BundleSplitterTask": BundleSplitterTask,
}

#: Where to split: defaultNamespaceBundleSplitAlgorithm; Pulsar's default is range_equally_divide.
SPLIT_ALGORITHMS: Final[Mapping[str, type[SplitAlgorithm]]] = {
    "range_equally_divide": RangeEquallyDivide,
}


def short_name(name: str) -> str:
    """A strategy's key here: *name* itself, or the last part of a full Java class name."""
    return name.rpartition(".")[2]
