"""What a shard of the bundle state remembers between batches, and what its fold needs to know besides the log."""

from dataclasses import dataclass, field

from controller.aggregate.bundles import KnownBundles
from controller.aggregate.claims import Claims
from controller.aggregate.intervals import Clock
from controller.aggregate.limits import Arrivals, WaitLimits
from controller.aggregate.seeds import Seeds
from controller.aggregate.states import States
from controller.aggregate.waiting import Facts, Headers
from controller.model.records import BrokerState, NamespaceState


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLimits:
    """From where on a bundle's topics are kept one by one: a share of the split thresholds."""

    topics: float
    sessions: float
    msg_rate: float
    throughput: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions:
    """What the fold needs to know besides the log."""

    #: A bundle that no roster broker lists for so long (ms) is forgotten.
    bundle_ttl_ms: int
    detail: DetailLimits
    #: One batch closes so many intervals at most, and later ones the rest; None: all that can be closed.
    close_at_most: int | None = None
    waiting: WaitLimits = field(default_factory=WaitLimits)
    #: States and stored averages are forgotten when they were not written again while so many intervals were closed;
    #: None: never.
    state_ttl: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardState:
    """Everything a shard remembers between batches."""

    shard: int
    shards: int
    clock: Clock = field(default_factory=Clock)
    #: Brokers and sweep ids that claims and headers refer to by position.
    pool: list[str] = field(default_factory=list)
    bundles: KnownBundles = field(default_factory=KnownBundles.empty)
    claims: Claims = field(default_factory=Claims.empty)
    headers: Headers = field(default_factory=Headers.empty)
    facts: Facts = field(default_factory=Facts.empty)
    #: Averages to start from, until the bundle is first seen.
    seeds: Seeds = field(default_factory=lambda: Seeds.of(()))
    namespaces: States[NamespaceState] = field(default_factory=lambda: States[NamespaceState].of(()))
    brokers: States[BrokerState] = field(default_factory=lambda: States[BrokerState].of(()))
    arrivals: Arrivals = field(default_factory=Arrivals)
    #: (T, source, partition) of which parts of sweeps were dropped: its brokers have no data at T.
    torn: frozenset[tuple[int, int, int]] = frozenset()
    #: Intervals closed, since the beginning; and so are the next four.
    closes: int = 0
    #: Rows that came after their tick.
    late: int = 0
    #: Rows of intervals that were never ticked in partition 0.
    unrostered: int = 0
    #: Rows that waited for a tick when too much did.
    dropped: int = 0
    #: Files of a folder log seen so far, so that offsets go on rising.
    files: int = 0
