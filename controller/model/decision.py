"""A decision is a value: what to do, and for everything looked at, why or why not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import overload


class Reason(StrEnum):
    """Why something was, or was not, done.

    Pulsar's words where it has one: extensions.models.{UnloadDecision, SplitDecision}.Reason.
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
    BACK_OFF = "BackOff"
    SYSTEM_NAMESPACE = "SystemNamespace"
    EXCLUDED = "Excluded"
    NOT_THIS_INTERVAL = "NotThisInterval"
    DISABLED = "Disabled"
    WARMING_UP = "WarmingUp"
    GAP = "Gap"
    STALE = "Stale"
    PAUSED = "Paused"
    OBSERVE_ONLY = "ObserveOnly"
    FROZEN = "Frozen"
    BUDGET = "Budget"
    BREAKER = "Breaker"
    MAINTENANCE = "Maintenance"
    CONTROLS_UNKNOWN = "ControlsUnknown"
    NAMESPACE_UNKNOWN = "NamespaceUnknown"
    ISOLATION_POLICY = "IsolationPolicy"
    MAX_TOPICS = "MaxTopics"
    ANTI_AFFINITY = "AntiAffinity"
    FEWEST_BUNDLES = "FewestBundles"
    BROKER_VERSION = "BrokerVersion"
    BUNDLE_WITH_POLICIES = "BundleWithPolicies"
    # what the cycle remembers
    STARTED_ANEW = "StartedAnew"
    # results that came back
    SETTLED = "Settled"
    FAILED = "Failed"
    LOST = "Lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One thing that was looked at: what was observed, the limit, the unit, and what followed."""

    #: A broker, a bundle, a command id, or "cluster".
    subject: str
    reason: Reason
    observed: float | None = None
    limit: float | None = None
    unit: str = ""
    #: The strategy, filter or guardrail that says so.
    by: str = ""
    detail: str = ""

    def __str__(self) -> str:
        numbers = ""
        if self.observed is not None:
            against = "" if self.limit is None else f" vs {self.limit:g}"
            numbers = f" ({self.observed:g}{against}{' ' + self.unit if self.unit else ''})"
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.subject}: {self.reason}{numbers}{detail}"


class Told(Sequence[Verdict]):
    """Verdicts that are put into words when they are read: of 1,000 brokers that takes longer than the decision."""

    def __init__(self, tell: Callable[[], Iterable[Verdict]]) -> None:
        """What *tell*, which is asked once, says; it looks at nothing that is ever written to."""
        self._tell = tell

    @cached_property
    def _verdicts(self) -> tuple[Verdict, ...]:
        return tuple(self._tell())

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
    """A bundle to take off its broker; ``why`` is the verdict about that broker."""

    bundle: str
    source: str
    why: Verdict
    #: The broker that a shedder which plans both ends means it for; "" leaves that to the placement.
    destination: str = ""
    #: Whether it goes there or nowhere.  Pulsar: the extensible load manager transfers, the modular one places anew.
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadDecision:
    """A shedder's answer: unloads in the order chosen, a verdict for everything looked at."""

    unloads: tuple[Unload, ...] = ()
    verdicts: Sequence[Verdict] = ()
    #: One reason for the whole: why nothing is unloaded, or what most of it is for.
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A bundle to divide; boundaries are computed by the split algorithm, unless the policy gives them."""

    bundle: str
    broker: str
    why: Verdict
    #: All boundaries, both ends included; empty leaves them to the split algorithm.
    boundaries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDecision:
    """A split policy's answer."""

    splits: tuple[Split, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What subscribers of the command topic are to carry out on the cluster.

    The same decision always has the same ``id``; epoch and wall-clock time are stamped on the envelope
    when it is issued and are no part of it.
    """

    id: str
    action: str  # "unload" or "split"
    cluster: str
    bundle: str
    #: T, epoch ms; also the logical time of issue.
    interval: int
    expires_at_ms: int
    mode: str  # "active" or "dry_run"
    #: Precondition: the broker that must still own the bundle.
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
    """One cycle's outcome for interval T."""

    interval: int
    commands: tuple[Command, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    #: One human sentence.
    summary: str
