"""The policy of a controller: the strategies that broker.conf names, and what trimtab.toml allows them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from controller.cycle import BalancerOptions, Policy
from controller.model.errors import SettingsError
from controller.model.option import option
from controller.settings.broker_conf import build, choose, read_broker_conf
from controller.settings.options import OptionRow, broker_conf_rows, trimtab_toml_rows
from controller.settings.trimtab_toml import Settings
from controller.strategies.catalogue import (
    EXTENSIBLE_FILTERS,
    FILTERS,
    PLACEMENTS,
    SHEDDERS,
    SPLIT_ALGORITHMS,
    SPLIT_POLICIES,
    short_name,
)
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.protocols import Filter
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """A setting that goes with certain values of another one only."""

    key: str
    #: By the catalogue's name.
    value: str
    other: str
    values: frozenset[str]
    why: str


_SHEDDER: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"

#: Settings that are refused unless the other one fits.
_BELONG_TOGETHER: Final = (
    _Needs(
        key=_SHEDDER,
        value="AvgShedder",
        other=_PLACEMENT,
        values=frozenset({"AvgShedder"}),
        why="it plans where each bundle goes",
    ),
    _Needs(
        key=_PLACEMENT,
        value="AvgShedder",
        other=_SHEDDER,
        values=frozenset({"AvgShedder"}),
        why="it carries out the plans of the shedder of that name, and places at random without one",
    ),
)


def read_policy(settings: Settings) -> Policy:
    """The policy of *settings* and of the broker.conf they name, or SettingsError."""
    file = Path(settings.cluster.broker_conf)
    conf = read_broker_conf(file)
    decisions = settings.decisions
    try:
        names = build(StrategyNames, conf)
        _refuse_misfits(names)
        return Policy(
            cluster=settings.cluster.name,
            period_ms=settings.intervals.period_ms,
            shedder=choose(SHEDDERS, "loadBalancerLoadSheddingStrategy", names.shedder, conf),
            placement=choose(PLACEMENTS, "loadBalancerLoadPlacementStrategy", names.placement, conf),
            split_policy=build(SPLIT_POLICIES["BundleSplitterTask"], conf),
            split_algorithm=choose(
                SPLIT_ALGORITHMS, "defaultNamespaceBundleSplitAlgorithm", names.split_algorithm, conf
            ),
            membership=_membership(conf),
            filters=tuple(build(cls, conf) for cls in _filters(names).values()),
            selection=build(ModularSelectBroker, conf),
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


def _refuse_misfits(names: StrategyNames) -> None:
    """Raise SettingsError where two settings do not go together."""
    given = {field.metadata["broker_conf"]: getattr(names, field.name) for field in fields(names)}
    for needs in _BELONG_TOGETHER:
        key, other = given[needs.key], given[needs.other]
        if short_name(key) == needs.value and short_name(other) not in needs.values:
            raise SettingsError(
                f"{needs.key}={key} does not go with {needs.other}={other}: {needs.why};"
                f" allowed: {needs.other}={' or '.join(sorted(needs.values))}"
            )


def _membership(conf: Mapping[str, str]) -> RebalanceOnMembershipChange | None:
    """What brokers that join or leave set off, unless nothing."""
    built = build(RebalanceOnMembershipChange, conf)
    return None if built.protocol == "off" else built


def _filters(names: StrategyNames) -> Mapping[str, type[Filter]]:
    """The filters of the load manager that has the shedder: TransferShedder is the extensible one's."""
    return EXTENSIBLE_FILTERS if short_name(names.shedder) == "TransferShedder" else FILTERS


def options_table() -> list[OptionRow]:
    """Every option of both files, for `trimtab options` and the documentation."""
    strategies = [
        cls
        for catalogue in (SHEDDERS, PLACEMENTS, FILTERS, EXTENSIBLE_FILTERS, SPLIT_POLICIES, SPLIT_ALGORITHMS)
        for cls in catalogue.values()
    ]
    others = [StrategyNames, BalancerOptions, ModularSelectBroker, RebalanceOnMembershipChange]
    return [*broker_conf_rows([*others, *strategies]), *trimtab_toml_rows()]
