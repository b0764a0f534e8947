"""The policy of a controller: the strategies named in broker.conf and the limits in trimtab.toml."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from controller.cycle import BalancerOptions, Policy, Versions
from controller.model.errors import SettingsError
from controller.model.pulsar_version import ASSUMED, PulsarVersion
from controller.settings.approvals import ApprovalSettings
from controller.settings.broker_conf import build, origin_of, read_broker_conf
from controller.settings.guardrails import GuardrailSettings, limits_of
from controller.settings.known_options import KNOWN_KEYS, StrategyNames
from controller.settings.misspelt import keys_of, refuse_misspelt
from controller.settings.pairs import EXTENSIBLE, as_meant, for_version, of_load_manager, refuse_misfits
from controller.settings.pulsar_version import pinned
from controller.settings.strategy_kinds import (
    ASSIGNMENT_KIND,
    PLACEMENT_KIND,
    SHEDDER_KIND,
    SPLIT_ALGORITHM_KIND,
    STRATEGY_KINDS,
    imported,
)
from controller.settings.trimtab_toml import DecisionSettings, Settings
from controller.strategies.catalogue import (
    EXTENSIBLE_FILTERS,
    FILTERS,
    SPLIT_POLICIES,
    class_in_version,
    is_python_name,
    short_name,
)
from controller.strategies.common.auto_scale import AutoScale
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

#: Each load manager's split policy.
_SPLIT_POLICY_OF: Final[Mapping[str, str]] = {
    "ModularLoadManagerImpl": "BundleSplitterTask",
    "ExtensibleLoadManagerImpl": "DefaultNamespaceBundleSplitStrategyImpl",
}
LOAD_MANAGERS: Final = frozenset(_SPLIT_POLICY_OF)
#: Policies that are kept for versions that a running controller meets: before, during and after an upgrade.
_MOST_VERSIONS: Final = 8
#: Load managers of Pulsar that leave trimtab nothing to do.
_NOT_BALANCED: Final[Mapping[str, str]] = {
    "NoopLoadManager": "that of a single broker (standalone.conf), which owns all bundles: there is nothing to balance."
    " For a cluster, set another load manager on its brokers",
    "SimpleLoadManagerImpl": "its brokers report load in another form and unload by rules of their own: set another"
    " load manager on the brokers first",
}


def read_policy(settings: Settings, environment: Mapping[str, str] = os.environ) -> Policy:
    """The policy from *settings*, from the broker.conf that they name, and from overrides in *environment*.

    Raises SettingsError naming the file, and the variables that overrode it.
    """
    file = Path(settings.cluster.broker_conf)
    conf = read_broker_conf(file, environment)
    try:
        policy = versioned_policy(
            conf,
            settings.decisions,
            settings.guardrails,
            settings.intervals.warm_up_samples,
            settings.cluster.name,
            settings.intervals.period_ms,
            pulsar=pinned(settings.cluster.pulsar),
        )
        own = settings.log.own_namespaces
        policy = replace(policy, excluded=policy.excluded | own, own_namespaces=own)
        return with_approvals(policy, settings.approvals)
    except SettingsError as error:
        raise SettingsError(f"{origin_of(file, environment)}: {error}") from error


def with_approvals(policy: Policy, approvals: ApprovalSettings) -> Policy:
    """*policy* with what *approvals* say of decisions in mode approve."""
    return replace(
        policy,
        decision_ttl_ms=approvals.decision_minutes * 60_000,
        free_moves=approvals.free_moves,
        free_connections=approvals.free_connections,
    )


def versioned_policy(
    conf: Mapping[str, str],
    decisions: DecisionSettings,
    guardrails: GuardrailSettings,
    warm_up_samples: int,
    cluster: str,
    period_ms: int,
    *,
    pulsar: PulsarVersion | None,
) -> Policy:
    """``policy_of`` for the version *pulsar*; None: for that of the brokers, which each interval's records say."""

    @lru_cache(maxsize=_MOST_VERSIONS)
    def build_for(version: PulsarVersion) -> Policy:
        return policy_of(conf, decisions, guardrails, warm_up_samples, cluster, period_ms, pulsar=version)

    return replace(build_for(pulsar or ASSUMED), versions=Versions(pinned=pulsar, build=build_for))


def policy_of(
    conf: Mapping[str, str],
    decisions: DecisionSettings,
    guardrails: GuardrailSettings,
    warm_up_samples: int,
    cluster: str,
    period_ms: int,
    *,
    pulsar: PulsarVersion = ASSUMED,
) -> Policy:
    """The policy from the options in *conf*, the *decisions* and the *guardrails*, or SettingsError.

    What *conf* does not say, and what its class names mean, is as in version *pulsar*.
    """
    given_conf, conf = conf, for_version(of_load_manager(build(StrategyNames, conf).load_manager, conf), pulsar)
    names, hot = build(StrategyNames, conf), build(HotTopic, conf)
    names_by_option = {field.metadata["broker_conf"]: getattr(names, field.name) for field in fields(names)}
    several_cuts = build(DefaultNamespaceBundleSplitStrategyImpl, conf).several_cuts
    refuse_misfits(names_by_option, isolates_hot_topics=hot.percent > 0, several_cuts=several_cuts, version=pulsar)
    conf = as_meant(conf, pulsar)
    names = build(StrategyNames, conf)
    algorithm = _split_algorithm(names, conf)
    filters = tuple(build(cls, conf) for cls in (EXTENSIBLE_FILTERS if _extensible(names) else FILTERS).values())
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
        only=frozenset(decisions.only),
        limits=limits_of(guardrails),
        pulsar=pulsar,
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
        raise SettingsError(f"loadManagerClassName={names.load_manager}: {why_not_balanced(names.load_manager)}")
    policy = build(SPLIT_POLICIES[chosen], conf)
    if isinstance(policy, DefaultNamespaceBundleSplitStrategyImpl):
        policy = replace(policy, algorithm=algorithm)
    hours, large = build(SplitHours, conf), build(LargePartition, conf)
    if large.max_mbytes:
        policy = WithPartitionAdvice(policy=policy, large=large)
    return WithinHours(policy=policy, hours=hours) if hours.text else policy


def why_not_balanced(load_manager: str) -> str:
    """Why trimtab does not balance brokers with *load_manager*, one not in LOAD_MANAGERS, and what to do."""
    allowed = f"allowed: {', '.join(sorted(LOAD_MANAGERS))}"
    why = _NOT_BALANCED.get(load_manager.removesuffix(".class").rpartition(".")[2])
    if why:
        return f"{why}; {allowed}"
    manager = class_in_version(load_manager)
    return f"no load manager of Pulsar; {f'did you mean {manager}? ' if manager else ''}{allowed}"


def _membership(conf: Mapping[str, str]) -> RebalanceOnMembershipChange | None:
    """The rebalancer for brokers that join or leave; None where it is off."""
    built = build(RebalanceOnMembershipChange, conf)
    return None if built.protocol == "off" else built


def _shedder(names: StrategyNames, filters: tuple[Filter, ...], conf: Mapping[str, str]) -> Shedder[Any]:
    """The shedder; one that applies the *filters* itself gets them."""
    chosen = SHEDDER_KIND.choose(names.shedder, conf)
    if isinstance(chosen, PeakShedder):
        return replace(chosen, filters=filters, auto_scale=build(AutoScale, conf))
    return replace(chosen, filters=filters) if isinstance(chosen, TransferShedder) else chosen


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
    return KNOWN_KEYS | keys_of(own)
