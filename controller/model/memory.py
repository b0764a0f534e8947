"""What is carried from one cycle to the next, and journalled with each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

import numpy as np

from controller.model.history_column import HistoryColumn
from controller.model.load import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMemory:
    """The memory of a strategy that has none."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """A broker's smoothed resource usage (fraction, 1.0 = 100 %), by name."""

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
        """Move the history of *names*, or of those at *rows*: ``history_fraction * history + the rest * usage``.

        *usage*, *restarted* and the answer are (rows,), fractions.  A broker without history, or *restarted*, begins
        with its usage; all others keep theirs.  Pulsar: updateAvgResourceUsage.
        """
        column = HistoryColumn.of(self.usage, names)
        goes_on = column.known[rows] if restarted is None else column.known[rows] & ~restarted
        with np.errstate(invalid="ignore"):
            smoothed = np.where(
                goes_on, column.numbers[rows] * history_fraction + (1 - history_fraction) * usage, usage
            )
        return smoothed, type(self)(usage=column.with_numbers(rows, smoothed))

    def of(self, names: tuple[str, ...]) -> tuple[Floats, Bools]:
        """(n,) the history of *names*, and (n,) which of them have one."""
        column = HistoryColumn.of(self.usage, names)
        return column.numbers, column.known

    def only(self, names: tuple[str, ...]) -> Self:
        """Forget brokers that are not in *names*.  Pulsar: onActiveBrokersChange."""
        keep = set(names)
        return type(self)(usage={k: v for k, v in self.usage.items() if k in keep})


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalUsageHistory:
    """A usage history that moves once an interval, however often it is asked."""

    kind: Literal["interval_usage_history"] = "interval_usage_history"
    #: T at which it moved last, epoch ms; -1 before the first.
    as_of_ms: int = -1
    #: Broker -> smoothed resource usage (fraction, 1.0 = 100 %).
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHitCounts:
    """For how many rounds a broker has differed from the one it is paired with, by name."""

    kind: Literal["broker_hit_counts"] = "broker_hit_counts"
    #: By the high threshold or more.
    high: Mapping[str, int] = field(default_factory=dict)
    #: By the low threshold or more.
    low: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinTurn:
    """Whose turn it is."""

    kind: Literal["round_robin_turn"] = "round_robin_turn"
    #: Placements so far, from 0 again after 2,147,483,647.
    count: int = 0
    #: The brokers in the order in which they take turns.
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferHistory:
    """What TransferShedder remembers; everything of a broker goes by its name."""

    kind: Literal["transfer_history"] = "transfer_history"
    #: Rounds in a row in which load was unevenly spread.
    hit_count: int = 0
    #: Smoothed weighted usage (fraction), smoothed bytes/s in + out, and the T of the last data, epoch ms.
    weighted_max_ema: Mapping[str, float] = field(default_factory=dict)
    msg_throughput_ema: Mapping[str, float] = field(default_factory=dict)
    updated_at_ms: Mapping[str, int] = field(default_factory=dict)
    #: T at which bundles were last taken off the broker, epoch ms, while it has to settle.
    recently_unloaded_brokers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMembership:
    """Which brokers there were, and who has just come or gone."""

    kind: Literal["broker_membership"] = "broker_membership"
    #: Sorted; none before the first round.
    brokers: tuple[str, ...] = ()
    #: Broker that joined -> rounds in which it was given bundles, while there may be more.
    joined: Mapping[str, int] = field(default_factory=dict)
    #: Broker that left -> rounds since then, while it may come back.
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHitCounts:
    """For how many rounds in a row a bundle has been over a limit, by name; none that is not."""

    kind: Literal["split_hit_counts"] = "split_hit_counts"
    hits: Mapping[str, int] = field(default_factory=dict)


#: Every kind of memory a strategy can have; ``kind`` tells them apart in the journal.
StrategyMemory: TypeAlias = (
    NoMemory
    | UsageHistory
    | IntervalUsageHistory
    | BrokerHitCounts
    | RoundRobinTurn
    | TransferHistory
    | BrokerMembership
    | SplitHitCounts
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
    #: Executors only look at it; what becomes of it is no failure.
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A command that counts against the budgets of the rolling window."""

    action: str
    namespace: str
    source: str
    #: "" for splits.
    destination: str
    #: Producers and consumers that it disturbs.
    connections: int
    interval: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """The breaker: stops everything after many failed commands, until a person resumes."""

    #: Commands that failed since one last succeeded.
    in_a_row: int = 0
    #: T at which it tripped, epoch ms; None while it is closed.
    tripped_at: int | None = None
    #: What tripped it.
    why: str = ""
    #: The last resume that was known when it tripped, epoch ms, wall clock: a later one closes it.
    resumed_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The active brokers, and those that came or went a short while ago."""

    #: Sorted; none before the first interval.
    brokers: tuple[str, ...] = ()
    #: Broker -> T at which it came or went, epoch ms, while that holds commands back.
    came: Mapping[str, int] = field(default_factory=dict)
    went: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Commands about a bundle that failed one after the other."""

    times: int
    #: T at which the last failure was known, epoch ms.
    interval: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The controller's memory between cycles; a new cluster starts with ``Memory(seed=...)``."""

    seed: int = 0
    #: The last T decided, epoch ms; None before the first.
    last_interval: int | None = None
    #: Closed intervals seen without a gap; commands wait until there are enough.
    samples: int = 0
    shedder: StrategyMemory = field(default_factory=NoMemory)
    placement: StrategyMemory = field(default_factory=NoMemory)
    split: StrategyMemory = field(default_factory=NoMemory)
    membership: StrategyMemory = field(default_factory=NoMemory)
    #: Bundle -> T at which it was last unloaded.
    recently_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Command id -> the command under way.
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
    #: Bundle -> its last commands' failures, while they count.
    failed: Mapping[str, Failed] = field(default_factory=dict)
    #: Command id -> what it counts against the budgets, for as long as the window is.
    issued: Mapping[str, Issued] = field(default_factory=dict)
    #: Command id -> T at which it failed, epoch ms, for as long as the window is.
    failures: Mapping[str, int] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=Breaker)
    roster: Roster = field(default_factory=Roster)
