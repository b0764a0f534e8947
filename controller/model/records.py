"""Facts that arrive one at a time rather than in columns: ticks, results, policies, starting averages."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The end of an interval in one partition; in partition 0 of the metrics topic with the roster."""

    #: T, epoch ms.
    interval: int
    metrics_partitions: int
    results_partitions: int
    #: (broker, sweepId or "" when its sweep is missing), sorted by broker; None outside partition 0.
    roster: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What became of a command."""

    id: str
    status: str
    detail: str = ""
    owner_before: str = ""
    owner_after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """A namespace's bundles and policies; of two versions the higher counts."""

    namespace: str
    version: int
    boundaries: tuple[int, ...]
    anti_affinity_group: str = ""
    isolation_policies: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """What is configured, not measured, about a broker; of two versions the higher counts."""

    broker: str
    version: int
    failure_domain: str = ""
    #: Version of its software, as it says it.
    broker_version: str = ""
    persistent_topics: bool = True
    non_persistent_topics: bool = True
    #: Resource -> limit, replacing the reported one (wrong NIC speed, mixed hardware).
    capacity: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSeed:
    """Averages a bundle starts from: Pulsar's stored bundle-data or resource quota."""

    bundle: str
    short_term_samples: int
    short_term: tuple[float, float, float, float]
    long_term_samples: int
    long_term: tuple[float, float, float, float]


Fact = Tick | CommandResult | NamespaceState | BrokerState | BundleSeed
