"""The policy of a controller: the strategies that broker.conf names, and what trimtab.toml allows them."""

from dataclasses import dataclass
from pathlib import Path

from controller.cycle import BalancerOptions, Policy
from controller.model.errors import SettingsError
from controller.model.option import option
from controller.settings.broker_conf import build, choose, read_broker_conf
from controller.settings.options import OptionRow, broker_conf_rows, trimtab_toml_rows
from controller.settings.trimtab_toml import Settings
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyNames:
    """Which strategies: by short name, or by the full name of Pulsar's class."""

    shedder: str = option(
        "loadBalancerLoadSheddingStrategy", default="ThresholdShedder", meaning="which bundles leave their broker"
    )
    placement: str = option(
        "loadBalancerLoadPlacementStrategy", default="LeastLongTermMessageRate", meaning="where a bundle goes"
    )
    split_algorithm: str = option(
        "defaultNamespaceBundleSplitAlgorithm", default="range_equally_divide", meaning="where a bundle is cut"
    )


def read_policy(settings: Settings) -> Policy:
    """The policy of *settings* and of the broker.conf they name, or SettingsError."""
    file = Path(settings.cluster.broker_conf)
    conf = read_broker_conf(file)
    decisions = settings.decisions
    try:
        names = build(StrategyNames, conf)
        return Policy(
            cluster=settings.cluster.name,
            period_ms=settings.intervals.period_ms,
            shedder=choose(SHEDDERS, "loadBalancerLoadSheddingStrategy", names.shedder, conf),
            placement=choose(PLACEMENTS, "loadBalancerLoadPlacementStrategy", names.placement, conf),
            split_policy=build(SPLIT_POLICIES["BundleSplitterTask"], conf),
            split_algorithm=choose(
                SPLIT_ALGORITHMS, "defaultNamespaceBundleSplitAlgorithm", names.split_algorithm, conf
            ),
            balancer=build(BalancerOptions, conf),
            shed=decisions.shed,
            split=decisions.split,
            warm_up_samples=settings.intervals.warm_up_samples,
            command_ttl_ms=decisions.command_ttl_seconds * 1000,
            executor_timeout_ms=decisions.executor_timeout_seconds * 1000,
            excluded=frozenset(decisions.excluded),
        )
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from error


def options_table() -> list[OptionRow]:
    """Every option of both files, for `trimtab options` and the documentation."""
    strategies = [
        cls for catalogue in (SHEDDERS, PLACEMENTS, SPLIT_POLICIES, SPLIT_ALGORITHMS) for cls in catalogue.values()
    ]
    return [*broker_conf_rows([StrategyNames, BalancerOptions, *strategies]), *trimtab_toml_rows()]
