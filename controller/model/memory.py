"""The memory that one cycle passes to the next, journalled with each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

import numpy as np

from controller.model.history_column import HistoryColumn
from controller.model.load import Bools, Floats, Ints
from controller.model.peak_history import PeakHistory
from controller.model.pulsar_version import VersionInUse


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMemory:
    """The memory of a strategy that needs none."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """The smoothed resource usage of each broker, by name (fraction, 1.0 = 100 %)."""

    kind: Literal["usage_history"] = "usage_history"
    usage: Mapping[str, float] = field(default_factory=dict)

    def smoothed(
        self,
        names: tuple[str, ...],
        usage: Floats,
        history_fraction: float,
        *,
        rows: Ints | slice = slice(None),
        restarted: Bools | None = None,
    ) -> tuple[Floats, Self]:
        """Update the averages of *names*, or of those at *rows*: ``f * history + (1 - f) * usage``.

        f is *history_fraction*.  *usage*, *restarted* and the result are (rows,); usages are fractions.  The first
        sample initialises a broker's average, and so does the first one after a restart.  Brokers at other rows keep
        theirs.  Pulsar: updateAvgResourceUsage.
        """
        column = HistoryColumn.of(self.usage, names)
        goes_on = column.known[rows] if restarted is None else column.known[rows] & ~restarted
        with np.errstate(invalid="ignore"):
            smoothed = np.where(
                goes_on, column.numbers[rows] * history_fraction + (1 - history_fraction) * usage, usage
            )
        return smoothed, type(self)(usage=column.with_numbers(rows, smoothed))

    def of(self, names: tuple[str, ...]) -> tuple[Floats, Bools]:
        """(n,) the averages of *names*, and (n,) whether each has one."""
        column = HistoryColumn.of(self.usage, names)
        return column.numbers, column.known

    def only(self, names: tuple[str, ...]) -> Self:
        """Forget brokers that are not in *names*.  Pulsar: onActiveBrokersChange."""
        keep = set(names)
        return type(self)(usage={k: v for k, v in self.usage.items() if k in keep})


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalUsageHistory:
    """A usage history that is updated once in an interval, however often it is read."""

    kind: Literal["interval_usage_history"] = "interval_usage_history"
    #: T of the last update, epoch ms; -1 before the first.
    as_of_ms: int = -1
    #: Broker -> smoothed resource usage (fraction, 1.0 = 100 %).
    usage: Mapping[str, float] = field(default_factory=dict)
    #: Broker -> digest of the bundles that it owned; older entries have none.
    bundles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHitCounts:
    """AvgShedder's hit counts: rounds in which a broker's usage differed from its pair's by a threshold, by name."""

    kind: Literal["broker_hit_counts"] = "broker_hit_counts"
    #: Rounds with a difference at or above the high threshold.
    high: Mapping[str, int] = field(default_factory=dict)
    #: Rounds with a difference at or above the low threshold.
    low: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinTurn:
    """The position of the round robin placement."""

    kind: Literal["round_robin_turn"] = "round_robin_turn"
    #: Placements so far; after 2,147,483,647 the count starts again at 0.
    count: int = 0
    #: The brokers in round robin order.
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferHistory:
    """What TransferShedder remembers; all mappings are by broker name."""

    kind: Literal["transfer_history"] = "transfer_history"
    #: Consecutive rounds in which the load was uneven.
    hit_count: int = 0
    #: Smoothed weighted usage (fraction), smoothed bytes/s in + out, and T of the last data, epoch ms.
    weighted_max_ema: Mapping[str, float] = field(default_factory=dict)
    msg_throughput_ema: Mapping[str, float] = field(default_factory=dict)
    updated_at_ms: Mapping[str, int] = field(default_factory=dict)
    #: When the broker's last unload was done, epoch ms, kept during its cool-down; older entries have the T before it.
    recently_unloaded_brokers: Mapping[str, int] = field(default_factory=dict)
    #: Digest of the bundles that the broker owned; older entries have none.
    bundles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMembership:
    """The brokers of the last round, and those that joined or left recently."""

    kind: Literal["broker_membership"] = "broker_membership"
    #: Sorted; empty before the first round.
    brokers: tuple[str, ...] = ()
    #: Broker that joined -> rounds in which it received bundles, until it has its share.
    joined: Mapping[str, int] = field(default_factory=dict)
    #: Broker that left -> rounds since then, while its return is waited for.
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHitCounts:
    """Consecutive rounds in which a bundle was over a limit, by name; only bundles that are over one."""

    kind: Literal["split_hit_counts"] = "split_hit_counts"
    hits: Mapping[str, int] = field(default_factory=dict)
    #: The broker that each of them was counted at; older entries have none.
    owners: Mapping[str, str] = field(default_factory=dict)


#: Every kind of memory that a strategy can have; ``kind`` is its name in the journal.
StrategyMemory: TypeAlias = (
    NoMemory
    | UsageHistory
    | IntervalUsageHistory
    | BrokerHitCounts
    | RoundRobinTurn
    | TransferHistory
    | BrokerMembership
    | SplitHitCounts
    | PeakHistory
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A command whose result has not come back yet."""

    action: str
    bundle: str
    source: str
    destination: str
    interval: int
    expires_at_ms: int
    #: A dry run changes nothing: its result never counts as a failure, and it is forgotten once the mode is active.
    dry_run: bool = False
    #: The bundle had neither clients nor traffic: no broker has to list it after the move.
    idle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A command that counts against the budgets of the rolling window."""

    action: str
    namespace: str
    source: str
    #: "" for splits.
    destination: str
    #: Producers and consumers that have to reconnect.
    connections: int
    interval: int
    #: When the interval was decided, epoch ms, wall clock; 0: in its own time, or by an earlier release.
    at_ms: int = 0
    #: Of a dry run: forgotten once the mode is active.
    dry_run: bool = False

    @property
    def decided_at(self) -> int:
        """When it was issued, epoch ms, as far as that is known."""
        return self.at_ms or self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """The breaker: stops all commands after many failures, until a person runs `trimtab resume`."""

    #: Failed commands since the last success.
    in_a_row: int = 0
    #: T at which it tripped, epoch ms; None while it is closed.
    tripped_at: int | None = None
    #: Why it tripped.
    why: str = ""
    #: Time of the last resume before it tripped, epoch ms, wall clock; a later resume closes it.
    resumed_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The active brokers, and those that joined or left recently."""

    #: Sorted; empty before the first interval.
    brokers: tuple[str, ...] = ()
    #: Broker -> T at which it joined (came) or left (went), epoch ms, kept while that freezes commands.
    came: Mapping[str, int] = field(default_factory=dict)
    went: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBalancing:
    """What is known of the brokers' own balancing, which must be off while trimtab moves load."""

    #: Why nothing is issued in mode active; "": nothing speaks against it.
    why: str = ""
    #: How many brokers do by themselves what trimtab does.
    on: int = 0
    #: Active broker whose switches are not known -> the last T at which they were, epoch ms; 0: they never were.
    unknown: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Consecutive failed commands about one bundle."""

    times: int
    #: T in which the last failure became known, epoch ms.
    interval: int
    #: Only commands of a dry run failed: forgotten once the mode is active.
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedBundle:
    """A bundle that was moved to a broker, by an answered command, and that the broker has not listed since."""

    #: T in which the result became known, epoch ms.
    answered: int
    #: Intervals since then in which the broker sent data without it, one a minute at most, up to the limit.
    sweeps: int = 0
    #: As of its command: see InFlight.
    idle: bool = False
    #: Whether the executor saw that the broker owns it.
    verified: bool = False
    #: It counts against the limit, but is no reason to send the broker nothing.
    lapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What became of the bundles that were moved to one broker."""

    #: Of those, how many it has listed; no more than it owns now, but at least 1 once it has listed one.
    listed: int = 0
    unlisted: Mapping[str, UnlistedBundle] = field(default_factory=dict)
    #: Consecutive times that it did not list what it was sent, and T until which it gets nothing, epoch ms.
    failed: int = 0
    rests_until: int = 0
    #: The last `trimtab resume` that is known here, epoch ms, wall clock; a later one clears the record.
    resumed_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The controller's memory between cycles; a new cluster starts with ``Memory(seed=...)``."""

    seed: int = 0
    #: The last decided T, epoch ms; None before the first decision.
    last_interval: int | None = None
    #: When it was decided, epoch ms, wall clock; 0 where that was in its own time, or is not known.
    decided_at_ms: int = 0
    #: Consecutive closed intervals without a gap; no commands until there are ``warm_up_samples``.
    samples: int = 0
    shedder: StrategyMemory = field(default_factory=NoMemory)
    placement: StrategyMemory = field(default_factory=NoMemory)
    split: StrategyMemory = field(default_factory=NoMemory)
    membership: StrategyMemory = field(default_factory=NoMemory)
    #: Bundle -> T of its last unload, epoch ms.
    recently_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Bundle -> T of the last unload that a dry run issued, epoch ms: forgotten once the mode is active.
    dry_run_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Command id -> the command, until its result comes back.
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
    #: Bundle -> its consecutive failures, until they no longer count.
    failed: Mapping[str, Failed] = field(default_factory=dict)
    #: Command id -> what it counts against the budgets, for the length of the rolling window.
    issued: Mapping[str, Issued] = field(default_factory=dict)
    #: Command id -> T at which it failed, epoch ms, for the length of the rolling window.
    failures: Mapping[str, int] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=Breaker)
    roster: Roster = field(default_factory=Roster)
    #: Broker -> what became of the bundles that were moved to it.
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    balancing: OwnBalancing = field(default_factory=OwnBalancing)
    #: The version of Pulsar that the last interval was decided by, as its decision says.
    pulsar: VersionInUse | None = None
