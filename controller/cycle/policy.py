"""The configuration of a cycle: its strategies, and what the operator allows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from controller.aggregate.shard.shard_state import DetailLimits
from controller.cycle.checked import first_memory, thresholds_of
from controller.cycle.limits import Limits
from controller.cycle.outcomes import Patience
from controller.model.memory import Memory
from controller.model.option import option
from controller.model.pulsar_version import ASSUMED, PulsarVersion
from controller.model.strategy_memory import NoMemory
from controller.strategies.filters.extensible_select_broker import ExtensibleSelectBroker
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.protocols import Filter, Placement, Shedder, SplitAlgorithm, SplitPolicy

MINUTE_MS = 60_000
#: What of a policy depends on the version of Pulsar.
_BY_VERSION: Final = (
    "shedder", "placement", "split_policy", "split_algorithm", "membership", "filters", "selection", "balancer",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BalancerOptions:
    """The options of broker.conf about balancing as a whole."""

    enabled: bool = option(
        "loadBalancerEnabled", default=True, meaning="false: observe, decide and explain, but issue nothing"
    )
    shedding_interval_minutes: int = option(
        "loadBalancerSheddingIntervalMinutes", default=1, unit="min", meaning="bundles are unloaded this often"
    )
    shedding_interval_seconds: int = option(
        "trimtabSheddingIntervalSeconds",
        default=0,
        unit="s",
        meaning="if not 0, bundles are unloaded this often instead: for intervals shorter than a minute",
    )
    waits_for_results: bool = option(
        "trimtabSheddingWaitsForResults",
        default=False,
        meaning="true: a broker gives no more while unloads off it have no result, for its load still counts them",
    )
    preallocates: bool = option(
        "trimtabSheddingPreallocates",
        default=False,
        meaning="true: each unload of a round counts at its destination before the next one is placed; Pulsar's"
        " doLoadShedding counts none, so that all bundles of a round may go to one broker",
    )
    grace_period_minutes: int = option(
        "loadBalancerSheddingGracePeriodMinutes",
        default=30,
        unit="min",
        meaning="a bundle that was unloaded stays put for so long",
    )
    load_data_ttl_seconds: int = option(
        "loadBalancerBrokerLoadDataTTLInSeconds",
        default=1800,
        unit="s",
        meaning="a broker whose load report is older counts as one without data",
    )
    report_max_minutes: int = option(
        "loadBalancerReportUpdateMaxIntervalMinutes",
        default=15,
        unit="min",
        meaning="brokers renew their load reports at least this often; one twice as old may count all the same",
    )
    unload_split_bundles: bool = option(
        "loadBalancerAutoUnloadSplitBundlesEnabled",
        default=True,
        meaning="unload the halves of a split bundle; with the extensible load manager they always stay",
    )

    @property
    def shedding_interval_ms(self) -> int:
        """Bundles are unloaded at every T that is a multiple of this."""
        return self.shedding_interval_seconds * 1000 or self.shedding_interval_minutes * MINUTE_MS

    @property
    def report_ttl_ms(self) -> int:
        """How old a broker's load report may be; the modular load manager's is written anew on changes only."""
        return max(self.load_data_ttl_seconds * 1000, 2 * self.report_max_minutes * MINUTE_MS)

    @property
    def shedding_interval_option(self) -> str:
        """The name of the option that sets ``shedding_interval_ms``."""
        seconds = self.shedding_interval_seconds
        return "trimtabSheddingIntervalSeconds" if seconds else "loadBalancerSheddingIntervalMinutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """How a policy follows the version of the brokers."""

    #: The version that the settings name; None: that of the brokers, interval by interval.
    pinned: PulsarVersion | None
    #: The policy of the same settings for a version; SettingsError where they allow none.
    build: "Callable[[PulsarVersion], Policy]"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The configuration of a cycle: its strategies, and what the operator allows."""

    cluster: str
    period_ms: int
    shedder: Shedder[Any]
    placement: Placement[Any]
    split_policy: SplitPolicy[Any]
    split_algorithm: SplitAlgorithm
    #: Moves bundles when brokers join or leave, before the shedder; None: off.
    membership: Shedder[Any] | None = None
    #: Filters of brokers before the placement, in order; empty: every broker may get the bundle.
    filters: tuple[Filter, ...] = ()
    #: How the load manager applies the filters, and what it does if they leave no broker.
    selection: ModularSelectBroker | ExtensibleSelectBroker = field(default_factory=ModularSelectBroker)
    balancer: BalancerOptions = field(default_factory=BalancerOptions)
    shed: bool = True
    split: bool = True
    warm_up_samples: int = 2
    command_ttl_ms: int = 300_000
    executor_timeout_ms: int = 60_000
    retry_failed_after_ms: int = 300_000
    #: Mode approve: how long a decision waits for its approval, and how many moves and splits, and connections, one has
    #: at most that needs none; 0: no such limit (see ``needs_no_approval``).
    decision_ttl_ms: int = 3_600_000
    free_moves: int = 0
    free_connections: int = 0
    #: Namespaces, also as patterns, and bundles that are never moved or split.
    excluded: frozenset[str] = frozenset()
    #: Namespaces and bundles, of the controls of this interval.
    excluded_by_people: frozenset[str] = frozenset()
    #: Namespaces, also as patterns, whose bundles alone are moved and split; empty: those of all.
    only: frozenset[str] = frozenset()
    #: Namespaces of trimtab's own topics: to move or split their bundles would interrupt trimtab meanwhile.
    own_namespaces: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    #: The version of Pulsar whose defaults and classes the strategies have.
    pulsar: PulsarVersion = ASSUMED
    #: None: the same for every version.
    versions: Versions | None = field(default=None, compare=False, repr=False)

    def on(self, version: PulsarVersion) -> Self:
        """This policy for *version*: other strategies and options, all else as it is.

        SettingsError where the settings allow no policy for it.
        """
        if self.versions is None or version == self.pulsar:
            return self
        made = self.versions.build(version)
        return replace(self, pulsar=version, **{name: getattr(made, name) for name in _BY_VERSION})

    @property
    def patience(self) -> Patience:
        """How long to wait for a result, and how long a bundle rests after a failure."""
        return Patience(
            lost_after_ms=self.executor_timeout_ms + 2 * self.period_ms, retry_after_ms=self.retry_failed_after_ms
        )

    def detail_limits(self, share: float) -> DetailLimits:
        """Above which loads the topics of bundles are kept: at *share* of the split thresholds."""
        limits = thresholds_of(self.split_policy)
        return DetailLimits(
            topics=share * limits.topics,
            sessions=share * limits.sessions,
            msg_rate=share * limits.msg_rate,
            throughput=share * limits.throughput,
        )

    def initial_memory(self, seed: int) -> Memory:
        """The memory before the first interval."""
        return Memory(
            seed=seed,
            shedder=first_memory(self.shedder),
            placement=first_memory(self.placement),
            split=first_memory(self.split_policy),
            membership=NoMemory() if self.membership is None else first_memory(self.membership),
        )
