"""The policy of a controller: the strategies named in broker.conf and the limits in trimtab.toml."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from controller.cycle import BalancerOptions, Policy
from controller.model.errors import SettingsError
from controller.model.option import option
from controller.settings.broker_conf import build, origin_of, read_broker_conf
from controller.settings.brokers_own import brokers_own_rows
from controller.settings.guardrails import GuardrailSettings, limits_of
from controller.settings.misspelt import keys_of, refuse_misspelt
from controller.settings.options import OptionRow, broker_conf_rows, trimtab_toml_rows
from controller.settings.pairs import EXTENSIBLE, of_load_manager, refuse_misfits
from controller.settings.strategy_kinds import (
    ASSIGNMENT_KIND,
    PLACEMENT_KIND,
    SHEDDER_KIND,
    SPLIT_ALGORITHM_KIND,
    STRATEGY_KINDS,
    imported,
)
from controller.settings.trimtab_toml import RecordedDecisions, Settings
from controller.strategies.catalogue import (
    EXTENSIBLE_FILTERS,
    FILTERS,
    PLACEMENTS,
    SHEDDERS,
    SPLIT_ALGORITHMS,
    SPLIT_POLICIES,
    is_python_name,
    short_name,
)
from controller.strategies.filters.extensible_select_broker import ExtensibleSelectBroker
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.protocols import Filter, Shedder, SplitAlgorithm, SplitPolicy, TopicBundleAssignment
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.transfer_shedder import TransferShedder
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
)
from controller.strategies.splitting.hot_topic_isolation import HotTopic, isolating
from controller.strategies.splitting.large_partition import LargePartition, WithPartitionAdvice
from controller.strategies.splitting.split_hours import SplitHours, WithinHours


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


#: Each load manager's split policy.
_SPLIT_POLICY_OF: Final[Mapping[str, str]] = {
    "ModularLoadManagerImpl": "BundleSplitterTask",
    "ExtensibleLoadManagerImpl": "DefaultNamespaceBundleSplitStrategyImpl",
}
LOAD_MANAGERS: Final = frozenset(_SPLIT_POLICY_OF)


def read_policy(settings: Settings, environment: Mapping[str, str] = os.environ) -> Policy:
    """The policy from *settings*, from the broker.conf that they name, and from overrides in *environment*.

    Raises SettingsError naming the file, and the variables that overrode it.
    """
    file = Path(settings.cluster.broker_conf)
    conf = read_broker_conf(file, environment)
    try:
        policy = policy_of(
            conf,
            settings.decisions,
            settings.guardrails,
            settings.intervals.warm_up_samples,
            settings.cluster.name,
            settings.intervals.period_ms,
        )
        return replace(policy, excluded=policy.excluded | settings.log.own_namespaces)
    except SettingsError as error:
        raise SettingsError(f"{origin_of(file, environment)}: {error}") from error


def policy_of(
    conf: Mapping[str, str],
    decisions: RecordedDecisions,
    guardrails: GuardrailSettings,
    warm_up_samples: int,
    cluster: str,
    period_ms: int,
) -> Policy:
    """The policy from the options in *conf*, the *decisions* and the *guardrails*, or SettingsError."""
    given_conf, conf = conf, of_load_manager(build(StrategyNames, conf).load_manager, conf)
    names, hot = build(StrategyNames, conf), build(HotTopic, conf)
    given = {field.metadata["broker_conf"]: getattr(names, field.name) for field in fields(names)}
    several_cuts = build(DefaultNamespaceBundleSplitStrategyImpl, conf).several_cuts
    algorithm = _split_algorithm(names, conf)
    filters = tuple(build(cls, conf) for cls in (EXTENSIBLE_FILTERS if _extensible(names) else FILTERS).values())
    refuse_misfits(given, isolates_hot_topics=hot.percent > 0, several_cuts=several_cuts)
    read_assignment(conf)
    policy = Policy(
        cluster=cluster,
        period_ms=period_ms,
        shedder=_shedder(names, filters, conf),
        placement=PLACEMENT_KIND.choose(names.placement, conf),
        split_policy=_split_policy(names, algorithm, conf),
        split_algorithm=algorithm,
        membership=_membership(conf),
        filters=filters,
        selection=ExtensibleSelectBroker() if _extensible(names) else build(ModularSelectBroker, conf),
        balancer=_balancer(names, conf),
        shed=decisions.shed,
        split=decisions.split,
        warm_up_samples=warm_up_samples,
        command_ttl_ms=decisions.command_ttl_seconds * 1000,
        executor_timeout_ms=decisions.executor_timeout_seconds * 1000,
        retry_failed_after_ms=decisions.retry_failed_after_seconds * 1000,
        excluded=frozenset(decisions.excluded),
        limits=limits_of(guardrails),
    )
    # Last: a strategy that cannot be loaded explains more than an option of it that is not known.
    refuse_misspelt(given_conf, known_keys(given_conf))
    return policy


def read_assignment(conf: Mapping[str, str]) -> TopicBundleAssignment:
    """How the brokers with *conf* assign topics to bundles, or SettingsError."""
    return ASSIGNMENT_KIND.choose(build(StrategyNames, conf).assignment, conf)


def _split_algorithm(names: StrategyNames, conf: Mapping[str, str]) -> SplitAlgorithm:
    """The split algorithm; where enabled, hot topics are isolated first."""
    chosen = SPLIT_ALGORITHM_KIND.choose(names.split_algorithm, conf)
    return isolating(build(HotTopic, conf), chosen)


def _split_policy(names: StrategyNames, algorithm: SplitAlgorithm, conf: Mapping[str, str]) -> SplitPolicy[Any]:
    """The split policy of the brokers' load manager, limited to the hours allowed for splits."""
    chosen = _SPLIT_POLICY_OF.get(short_name(names.load_manager))
    if chosen is None:
        allowed = ", ".join(sorted(_SPLIT_POLICY_OF))
        raise SettingsError(f"loadManagerClassName={names.load_manager}: allowed: {allowed}")
    policy = build(SPLIT_POLICIES[chosen], conf)
    if isinstance(policy, DefaultNamespaceBundleSplitStrategyImpl):
        policy = replace(policy, algorithm=algorithm)
    hours, large = build(SplitHours, conf), build(LargePartition, conf)
    if large.max_mbytes:
        policy = WithPartitionAdvice(policy=policy, large=large)
    return WithinHours(policy=policy, hours=hours) if hours.text else policy


def _membership(conf: Mapping[str, str]) -> RebalanceOnMembershipChange | None:
    """The rebalancer for brokers that join or leave; None where it is off."""
    built = build(RebalanceOnMembershipChange, conf)
    return None if built.protocol == "off" else built


def _shedder(names: StrategyNames, filters: tuple[Filter, ...], conf: Mapping[str, str]) -> Shedder[Any]:
    """The shedder; one that applies the *filters* itself gets them."""
    chosen = SHEDDER_KIND.choose(names.shedder, conf)
    return replace(chosen, filters=filters) if isinstance(chosen, TransferShedder | PeakShedder) else chosen


def _balancer(names: StrategyNames, conf: Mapping[str, str]) -> BalancerOptions:
    """The balancer's options; brokers of the extensible load manager keep the parts of a split, whatever they say.

    Pulsar: ExtensibleLoadManagerImpl.splitNamespaceBundleAsync.
    """
    built = build(BalancerOptions, conf)
    return replace(built, unload_split_bundles=False) if _extensible(names) else built


def _extensible(names: StrategyNames) -> bool:
    """Whether the brokers have the extensible load manager."""
    return short_name(names.load_manager) == EXTENSIBLE


def known_keys(conf: Mapping[str, str]) -> frozenset[str]:
    """Every key of broker.conf that trimtab knows, also those of the user's own strategies that *conf* names."""
    named = (conf.get(kind.key, "") for kind in STRATEGY_KINDS)
    own = [cls for name in named if is_python_name(name) and isinstance(cls := imported(name), type)]
    return keys_of([*_classes(), *own]) | {row.key for row in brokers_own_rows()}


def options_table() -> list[OptionRow]:
    """Every option of both files, for `trimtab options` and the documentation."""
    return [*broker_conf_rows(_classes()), *brokers_own_rows(), *trimtab_toml_rows()]


def _classes() -> list[type[Any]]:
    """Everything with options in broker.conf."""
    strategies = [
        cls
        for catalogue in (SHEDDERS, PLACEMENTS, FILTERS, EXTENSIBLE_FILTERS, SPLIT_POLICIES, SPLIT_ALGORITHMS)
        for cls in catalogue.values()
    ]
    others: list[type[Any]] = [StrategyNames, BalancerOptions, ModularSelectBroker, RebalanceOnMembershipChange]
    others += [HotTopic, LargePartition, SplitHours]
    return [*others, *strategies]
