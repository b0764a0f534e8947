"""Facts that arrive one by one, not in columns: ticks, results, states of namespaces and brokers, stored averages."""

from dataclasses import dataclass
from typing import Any

from controller.model.balancing import Balancing


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The end of an interval in one partition; in partition 0 of the metrics topic it carries the roster."""

    #: T, epoch ms.
    interval: int
    metrics_partitions: int
    results_partitions: int
    #: (broker, sweepId; "" if its sweep is missing), sorted by broker; None outside partition 0.
    roster: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command, from an executor."""

    id: str
    status: str
    detail: str = ""
    owner_before: str = ""
    owner_after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """The bundles and policies of a namespace; the highest version counts."""

    namespace: str
    version: int
    boundaries: tuple[int, ...]
    anti_affinity_group: str = ""
    isolation_policies: tuple[dict[str, Any], ...] = ()
    #: What its policy says of splits and merges of segments, by the names of Pulsar's AutoScalePolicyOverride.
    auto_scale: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """What is configured, not measured, about a broker; the highest version counts."""

    broker: str
    version: int
    failure_domain: str = ""
    #: Its version of Pulsar, as it reports it.
    broker_version: str = ""
    persistent_topics: bool = True
    non_persistent_topics: bool = True
    #: (resource, limit): replaces the reported limit (wrong NIC speed, mixed hardware).
    capacity: tuple[tuple[str, float], ...] = ()
    #: The switches of its own balancing; None: nobody could read them.
    balancing: Balancing | None = None
    #: Whether Pulsar's own load manager has elected it; None: nobody said so.
    leader: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSeed:
    """The averages that a new bundle starts with: Pulsar's stored bundle-data or resource quota."""

    bundle: str
    short_term_samples: int
    short_term: tuple[float, float, float, float]
    long_term_samples: int
    long_term: tuple[float, float, float, float]


Fact = Tick | CommandResult | NamespaceState | BrokerState | BundleSeed
