"""Load balancing options of Pulsar that trimtab knows but does not read: only brokers use them, or nobody does.

They are listed so that nobody expects trimtab to act on them.  Options of other categories are not listed.

Pulsar: ServiceConfiguration (category "Load Balancer").
"""

from typing import Final

from controller.settings.options import OptionRow

_FILE: Final = "broker.conf, not read"

#: Key, default of Pulsar 4.0, unit, and why it is not read.
_ROWS: Final = (
    (
        "loadBalancerSheddingEnabled",
        "true",
        "",
        "the brokers' own shedding: set it to false where trimtab sheds ([decisions] shed)",
    ),
    (
        "loadBalancerAutoBundleSplitEnabled",
        "true",
        "",
        "the brokers' own splitting: set it to false where trimtab splits ([decisions] split)",
    ),
    (
        "loadBalancerReportUpdateMinIntervalMillis",
        "5000",
        "ms",
        "brokers check this often whether to report their load; trimtab uses the last report before a tick",
    ),
    (
        "loadBalancerReportUpdateThresholdPercentage",
        "10",
        "%",
        "brokers report when their load changed by this; trimtab collects a sweep every interval, changed or not",
    ),
    (
        "loadBalancerResourceQuotaUpdateIntervalMinutes",
        "15",
        "min",
        "brokers store averages for a restart this often; trimtab stores its own in its checkpoint every interval",
    ),
    ("loadBalancerHostUsageCheckIntervalMinutes", "1", "min", "brokers measure CPU and network this often"),
    ("loadBalancerOverrideBrokerNicSpeedGbps", "", "Gbit/s", "brokers report it as the limit of their bandwidth"),
    (
        "loadBalancerOverrideBrokerNics",
        "",
        "",
        "brokers of Pulsar 4.2 and later report the usage and limit of these interfaces as their bandwidth",
    ),
    ("statsUpdateFrequencyInSecs", "60", "s", "brokers update topic statistics this often; periods are as long"),
    ("statsUpdateInitialDelayInSecs", "60", "s", "brokers update topic statistics for the first time after this"),
    ("loadBalancerSplitIntervalMinutes", "1", "min", "the extensible load manager's; trimtab checks every interval"),
    ("loadBalancerPlacementStrategy", "leastLoadedServer", "", "only SimpleLoadManagerImpl uses it"),
    ("loadBalancerBrokerUnderloadedThresholdPercentage", "50", "%", "only SimpleLoadManagerImpl uses it"),
    ("loadBalancerBrokerComfortLoadLevelPercentage", "65", "%", "only SimpleLoadManagerImpl uses it"),
    (
        "loadManagerMigrationEnabled",
        "false",
        "",
        "how brokers of Pulsar 5.0 redirect lookups while load managers are mixed; trimtab balances no such cluster",
    ),
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
        "how long brokers of the extensible load manager remember deleted bundles",
    ),
    (
        "loadBalancerServiceUnitStateMonitorIntervalInSeconds",
        "60",
        "s",
        "how often the extensible load manager looks for bundles without an owner",
    ),
    (
        "loadManagerServiceUnitStateTableViewClassName",
        "org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateTableViewImpl",
        "",
        "where brokers of the extensible load manager store who owns which bundle",
    ),
    ("loadBalancerServiceUnitTableViewSyncer", "None", "", "for the migration between load managers"),
    ("loadBalancerServiceUnitStateMaxConcurrentOverrides", "64", "", "only the extensible load manager uses it"),
    ("defaultNumberOfNamespaceBundles", "4", "bundles", "how many bundles brokers give a new namespace"),
    ("defaultNumberOfSystemNamespaceBundles", "64", "bundles", "how many bundles brokers give pulsar/system"),
)


def brokers_own_rows() -> list[OptionRow]:
    """The options that trimtab knows but does not read."""
    return [
        OptionRow(file=_FILE, key=key, default=default, unit=unit, meaning=f"not read: {why}", of="brokers")
        for key, default, unit, why in sorted(_ROWS)
    ]
