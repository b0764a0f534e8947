"""Decisions as values: what to do, and for everything that was examined, why or why not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal, TypeAlias, overload

from controller.model.pulsar_version import VersionInUse

#: The subject of verdicts on the whole cluster.
CLUSTER: Final = "cluster"
#: What a command does.
Action: TypeAlias = Literal["unload", "split"]
#: Whether executors carry a command out, or say what they would do.
CommandMode: TypeAlias = Literal["active", "dry_run"]


class Reason(StrEnum):
    """Why something was done, or was not done.

    Pulsar's names where it has one: extensions.models.{UnloadDecision, SplitDecision}.Reason.
    """

    # taken
    OVERLOADED = "Overloaded"
    UNDERLOADED = "Underloaded"
    TOPICS = "Topics"
    SESSIONS = "Sessions"
    MSG_RATE = "MsgRate"
    BANDWIDTH = "Bandwidth"
    PLACED = "Placed"
    BROKER_JOINED = "BrokerJoined"
    BROKER_LEFT = "BrokerLeft"
    PLANNED = "Planned"
    # nothing to do
    BALANCED = "Balanced"
    NO_BROKERS = "NoBrokers"
    NO_BUNDLES = "NoBundles"
    NO_LOAD_DATA = "NoLoadData"
    OUTDATED_DATA = "OutDatedData"
    # refused by the strategy
    BELOW_MINIMUM = "BelowMinimum"
    SOLE_BUNDLE = "SoleBundle"
    TOO_LARGE = "TooLarge"
    TOO_FEW_TOPICS = "TooFewTopics"
    NAMESPACE_FULL = "NamespaceFull"
    BUNDLE_COUNT_UNKNOWN = "BundleCountUnknown"
    RANGE_TOO_SMALL = "RangeTooSmall"
    RANGE_OUTDATED = "RangeOutdated"
    NO_TOPIC_DETAIL = "NoTopicDetail"
    NO_POSITIONS = "NoPositions"
    IMPOSSIBLE_CUT = "ImpossibleCut"
    SEVERAL_CUTS = "SeveralCuts"
    LARGE_PARTITION = "LargePartition"
    HIT_COUNT = "HitCount"
    COOL_DOWN = "CoolDown"
    SAME_BROKER = "SameBroker"
    # refused by a filter or guardrail
    RECENTLY_UNLOADED = "RecentlyUnloaded"
    IN_FLIGHT = "InFlight"
    DRY_RUN = "DryRun"
    BACK_OFF = "BackOff"
    SYSTEM_NAMESPACE = "SystemNamespace"
    EXCLUDED = "Excluded"
    NOT_THIS_INTERVAL = "NotThisInterval"
    DISABLED = "Disabled"
    WARMING_UP = "WarmingUp"
    GAP = "Gap"
    STALE = "Stale"
    CATCHING_UP = "CatchingUp"
    PAUSED = "Paused"
    OBSERVE_ONLY = "ObserveOnly"
    FROZEN = "Frozen"
    BUDGET = "Budget"
    BREAKER = "Breaker"
    MAINTENANCE = "Maintenance"
    CONTROLS_UNKNOWN = "ControlsUnknown"
    BROKERS_BALANCE = "BrokersBalance"
    BROKERS_BALANCE_UNKNOWN = "BrokersBalanceUnknown"
    KILLS_BROKERS = "KillsBrokers"
    NAMESPACE_UNKNOWN = "NamespaceUnknown"
    ISOLATION_POLICY = "IsolationPolicy"
    TOPIC_KINDS = "TopicKinds"
    MAX_TOPICS = "MaxTopics"
    ANTI_AFFINITY = "AntiAffinity"
    FEWEST_BUNDLES = "FewestBundles"
    BROKER_VERSION = "BrokerVersion"
    BUNDLE_WITH_POLICIES = "BundleWithPolicies"
    DRAINED = "Drained"
    UNPROVEN = "Unproven"
    UNCONFIRMED = "Unconfirmed"
    PLAN_IN_FORCE = "PlanInForce"
    PLAN_OUTDATED = "PlanOutdated"
    NOT_APPROVED = "NotApproved"
    # in mode approve
    AWAITS_APPROVAL = "AwaitsApproval"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    CHECK_FAILED = "CheckFailed"
    # about the memory of strategies
    STARTED_ANEW = "StartedAnew"
    # about the version of Pulsar that decides
    PULSAR_VERSION = "PulsarVersion"
    # results that came back
    SETTLED = "Settled"
    FAILED = "Failed"
    LOST = "Lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found about one subject: the observed value, the limit, the unit, and the reason that follows."""

    #: A broker, a bundle, a command id, or CLUSTER.
    subject: str
    reason: Reason
    observed: float | None = None
    limit: float | None = None
    unit: str = ""
    #: The strategy, filter or guardrail that gives this verdict.
    by: str = ""
    detail: str = ""

    def __str__(self) -> str:
        numbers = ""
        if self.observed is not None:
            against = "" if self.limit is None else f" vs {self.limit:g}"
            numbers = f" ({self.observed:g}{against}{' ' + self.unit if self.unit else ''})"
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.subject}: {self.reason}{numbers}{detail}"


class LazyVerdicts(Sequence[Verdict]):
    """Verdicts built on first access: for 1,000 brokers, building them takes longer than the decision."""

    def __init__(self, build: Callable[[], Iterable[Verdict]]) -> None:
        """*build* makes the verdicts and is called once, later; it must read only data that does not change."""
        self._build = build

    @cached_property
    def _verdicts(self) -> tuple[Verdict, ...]:
        return tuple(self._build())

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Verdict, ...]: ...
    def __getitem__(self, index: int | slice) -> Verdict | tuple[Verdict, ...]:
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._verdicts == tuple(other)

    def __hash__(self) -> int:
        return hash(self._verdicts)

    def __repr__(self) -> str:
        return repr(self._verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unload:
    """A bundle to unload from its broker; ``why`` is the verdict about that broker."""

    bundle: str
    source: str
    why: Verdict
    #: The destination, if the shedder chose one; "": the placement chooses.
    destination: str = ""
    #: True: it moves to ``destination`` or stays (a transfer of the extensible load manager).  False: if a filter
    #: excludes ``destination``, the placement chooses another broker (the modular load manager).
    final: bool = False
    #: Of a final one.  True: filters count the unloads before it as on their way, as they are one plan.  False: filters
    #: look at it as if it were alone, as in Pulsar.
    in_order: bool = False
    #: True: it may move although it was unloaded within the grace period, because it comes back in an exchange of
    #: TransferShedder, which in Pulsar does not look at the grace period there.
    ignores_grace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOutlook:
    """What a shedder aims at and expects, for people who look; nothing is decided by it.

    Usages are fractions of what a broker can carry, as the shedder weighs its resources.
    """

    #: Above this usage a broker gives bundles, the lowest one where that differs by resource; None: there is none.
    limit: float | None = None
    #: To this usage a broker above the limit is brought, at most the limit; None: there is none.
    goal: float | None = None
    #: Broker -> its highest usage at the times that the shedder foresees, if nothing moved.
    forecast: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadDecision:
    """What a shedder decided: unloads in the order chosen, and a verdict for everything examined."""

    unloads: tuple[Unload, ...] = ()
    verdicts: Sequence[Verdict] = ()
    #: One reason for the whole decision: why nothing is unloaded, or the reason of most unloads.
    reason: Reason
    #: None: the shedder knows no such usages.
    outlook: UsageOutlook | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A bundle to split.  The split algorithm computes the boundaries, unless the split policy gives them."""

    bundle: str
    broker: str
    why: Verdict
    #: All boundaries, both ends included; empty: the split algorithm computes them.
    boundaries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDecision:
    """What a split policy decided."""

    splits: tuple[Split, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An unload or a split that executors carry out on the cluster.

    The same decision always has the same ``id``.  Epoch and wall-clock time are not part of the command: they are
    added to the envelope when it is issued.
    """

    id: str
    action: Action
    cluster: str
    bundle: str
    #: T, epoch ms; also the logical time of issue.
    interval: int
    expires_at_ms: int
    mode: CommandMode
    #: Precondition: this broker must still own the bundle.
    source: str
    why: Verdict
    #: Unload only: where the bundle is to go.
    destination: str = ""
    #: Split only.
    algorithm: str = ""
    boundaries: tuple[int, ...] = ()
    unload_after_split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one cycle decided for interval T."""

    interval: int
    commands: tuple[Command, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    #: One sentence for people.
    summary: str
    #: The version of Pulsar that decided; None where nothing depends on it.
    pulsar: VersionInUse | None = None
    #: The shedder's; None: it was not asked, or has none.  The journal has none: decisions are equal without it.
    outlook: UsageOutlook | None = field(default=None, compare=False)
