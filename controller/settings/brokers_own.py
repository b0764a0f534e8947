"""Load balancing options of Pulsar that trimtab knows but does not read: the brokers, or nobody, act on them.

They are listed so that nobody looks for their effect here.  Options of other categories are not even listed.

Pulsar: ServiceConfiguration (category "Load Balancer").
"""

from typing import Final

from controller.settings.options import OptionRow

_FILE: Final = "broker.conf, not read"

#: Key, default of Pulsar 4.0.8, unit, and why it is not read.
_ROWS: Final = (
    (
        "loadBalancerSheddingEnabled",
        "true",
        "",
        "the brokers' own shedding: to be false where trimtab sheds ([decisions] shed)",
    ),
    (
        "loadBalancerAutoBundleSplitEnabled",
        "true",
        "",
        "the brokers' own splitting: to be false where trimtab splits ([decisions] split)",
    ),
    (
        "loadBalancerReportUpdateMinIntervalMillis",
        "5000",
        "ms",
        "brokers look this often whether to report their load; trimtab counts the last report before a tick",
    ),
    (
        "loadBalancerReportUpdateMaxIntervalMinutes",
        "15",
        "min",
        "brokers report at least this often; for trimtab a broker is silent when a sweep of it is missing",
    ),
    (
        "loadBalancerReportUpdateThresholdPercentage",
        "10",
        "%",
        "brokers report when their load changed by this; sweeps are made every interval, changed or not",
    ),
    (
        "loadBalancerResourceQuotaUpdateIntervalMinutes",
        "15",
        "min",
        "brokers store the averages for a restart this often; trimtab's lie in its checkpoint after every interval",
    ),
    ("loadBalancerHostUsageCheckIntervalMinutes", "1", "min", "brokers measure CPU and network this often"),
    ("loadBalancerOverrideBrokerNicSpeedGbps", "", "Gbit/s", "brokers report it as the limit of their bandwidth"),
    ("statsUpdateFrequencyInSecs", "60", "s", "brokers renew topic statistics this often; periods are as long"),
    ("statsUpdateInitialDelayInSecs", "60", "s", "brokers renew topic statistics for the first time after this"),
    ("loadBalancerSplitIntervalMinutes", "1", "min", "the extensible load manager's; trimtab checks every interval"),
    ("loadBalancerPlacementStrategy", "leastLoadedServer", "", "SimpleLoadManagerImpl's"),
    ("loadBalancerBrokerUnderloadedThresholdPercentage", "50", "%", "SimpleLoadManagerImpl's"),
    ("loadBalancerBrokerComfortLoadLevelPercentage", "65", "%", "SimpleLoadManagerImpl's"),
    ("loadBalancerMultiPhaseBundleUnload", "true", "", "how brokers of the extensible load manager hand bundles over"),
    (
        "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis",
        "30000",
        "ms",
        "how long brokers of the extensible load manager wait for each other; trimtab: command_ttl_seconds",
    ),
    (
        "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds",
        "3600",
        "s",
        "how long brokers of the extensible load manager remember bundles that are gone",
    ),
    (
        "loadBalancerServiceUnitStateMonitorIntervalInSeconds",
        "60",
        "s",
        "how often the extensible load manager looks for bundles without an owner",
    ),
    ("loadBalancerServiceUnitTableViewSyncer", "None", "", "for the way from one load manager to the other"),
    ("loadBalancerServiceUnitStateMaxConcurrentOverrides", "64", "", "for brokers of the extensible load manager"),
    ("defaultNumberOfNamespaceBundles", "4", "bundles", "how brokers cut a new namespace"),
)


def brokers_own_rows() -> list[OptionRow]:
    """The options that trimtab knows and leaves to others."""
    return [
        OptionRow(file=_FILE, key=key, default=default, unit=unit, meaning=f"not read: {why}", of="brokers")
        for key, default, unit, why in sorted(_ROWS)
    ]
