"""Every option of broker.conf and trimtab.toml that trimtab knows."""

from dataclasses import dataclass, replace
from typing import Any, Final

from controller.cycle import BalancerOptions
from controller.model.option import option
from controller.model.pulsar_version import ASSUMED, PulsarVersion, knows, other_defaults
from controller.settings.brokers_own import brokers_own_rows
from controller.settings.misspelt import keys_of
from controller.settings.options import OptionRow, broker_conf_rows, trimtab_toml_rows
from controller.strategies.catalogue import (
    EXTENSIBLE_FILTERS,
    FILTERS,
    PLACEMENTS,
    SHEDDERS,
    SPLIT_ALGORITHMS,
    SPLIT_POLICIES,
)
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.splitting.hot_topic_isolation import HotTopic
from controller.strategies.splitting.large_partition import LargePartition
from controller.strategies.splitting.split_hours import SplitHours


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyNames:
    """Names of the strategies: short, the full name of Pulsar's class, or the Python name of a user's class."""

    shedder: str = option(
        "loadBalancerLoadSheddingStrategy", default="ThresholdShedder", meaning="which bundles leave their broker"
    )
    placement: str = option(
        "loadBalancerLoadPlacementStrategy", default="LeastLongTermMessageRate", meaning="where a bundle goes"
    )
    split_algorithm: str = option(
        "defaultNamespaceBundleSplitAlgorithm", default="range_equally_divide", meaning="where a bundle is cut"
    )
    supported_algorithms: str = option(
        "supportedNamespaceBundleSplitAlgorithms",
        default="range_equally_divide,topic_count_equally_divide,specified_positions_divide,flow_or_qps_equally_divide",
        meaning="what the brokers accept; cuts computed here are sent by specified_positions_divide",
    )
    load_manager: str = option(
        "loadManagerClassName",
        default="ModularLoadManagerImpl",
        meaning="the brokers' load manager, whose policy says when a bundle is split: ModularLoadManagerImpl or"
        " ExtensibleLoadManagerImpl",
    )
    assignment: str = option(
        "topicBundleAssignmentStrategy",
        default="ConsistentHashingTopicBundleAssigner",
        meaning="in which bundle of its namespace a topic lies",
    )


def options_table(version: PulsarVersion = ASSUMED) -> list[OptionRow]:
    """Every option of both files, with the defaults of *version*, for `trimtab options` and the documentation."""
    of_brokers = [*broker_conf_rows(_classes()), *brokers_own_rows()]
    return [*(_in_version(row, version) for row in of_brokers), *trimtab_toml_rows()]


def _in_version(row: OptionRow, version: PulsarVersion) -> OptionRow:
    """*row* with the default of *version*."""
    default = other_defaults(version).get(row.key, row.default)
    unknown = "" if knows(version, row.key) else f" (not an option of brokers of Pulsar {version})"
    return replace(row, default=default, meaning=f"{row.meaning}{unknown}")


def _classes() -> list[type[Any]]:
    """Everything with options in broker.conf."""
    strategies = [
        cls
        for catalogue in (SHEDDERS, PLACEMENTS, FILTERS, EXTENSIBLE_FILTERS, SPLIT_POLICIES, SPLIT_ALGORITHMS)
        for cls in catalogue.values()
    ]
    others: list[type[Any]] = [StrategyNames, BalancerOptions, ModularSelectBroker, RebalanceOnMembershipChange]
    others += [AutoScale, HotTopic, LargePartition, SplitHours]
    return [*others, *strategies]


#: The keys of broker.conf that trimtab reads, or knows and does not read; also their older names.
KNOWN_KEYS: Final = keys_of(_classes()) | {row.key for row in brokers_own_rows()}
