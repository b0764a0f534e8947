"""The state of a shard between batches, and the options of its fold."""

from dataclasses import dataclass, field

from controller.aggregate.state.bundles import KnownBundles, Seeds
from controller.aggregate.state.states import States
from controller.aggregate.ticks.intervals import TickClock
from controller.aggregate.waiting.limits import ArrivedBytes, WaitLimits
from controller.aggregate.waiting.waiting_rows import WaitingClaims, WaitingFacts, WaitingHeaders
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Bools, Floats, Ints
from controller.model.records import BrokerState, NamespaceState


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLimits:
    """A bundle at or above one of these loads keeps its topics one by one: a share of the split thresholds."""

    topics: float
    sessions: float
    msg_rate: float
    throughput: float

    def near_split(self, topics: Ints | Floats, sessions: Ints | Floats, load: Floats) -> Bools:
        """(bundles,) whether a bundle is near a split: *topics*, *sessions* (bundles,), *load* (bundles, 4)."""
        near: Bools = (
            (topics >= self.topics)
            | (sessions >= self.sessions)
            | (load[:, RATE_IN] + load[:, RATE_OUT] >= self.msg_rate)
            | (load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT] >= self.throughput)
        )
        return near


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions:
    """The options of the fold."""

    #: A bundle that no roster broker lists for this long (ms) is forgotten.
    bundle_ttl_ms: int
    detail: DetailLimits
    #: Topics one by one in a snapshot at most; topics of further bundles come in later intervals.  None: no limit.
    most_topics: int | None = None
    #: Maximum number of intervals that one batch closes; later batches close the rest.  None: no limit.
    close_at_most: int | None = None
    waiting: WaitLimits = field(default_factory=WaitLimits)
    #: States and stored averages are forgotten if they are not written again during this many closed intervals;
    #: None: never.
    state_ttl: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardState:
    """Everything a shard remembers between batches."""

    shard: int
    shards: int
    clock: TickClock = field(default_factory=TickClock)
    #: Names of brokers and sweep ids; claims and headers refer to them by position.
    pool: list[str] = field(default_factory=list)
    bundles: KnownBundles = field(default_factory=KnownBundles.empty)
    claims: WaitingClaims = field(default_factory=WaitingClaims.empty)
    headers: WaitingHeaders = field(default_factory=WaitingHeaders.empty)
    facts: WaitingFacts = field(default_factory=WaitingFacts.empty)
    #: Stored averages of bundles that were not seen yet.
    seeds: Seeds = field(default_factory=lambda: Seeds.of(()))
    namespaces: States[NamespaceState] = field(default_factory=lambda: States[NamespaceState].of(()))
    brokers: States[BrokerState] = field(default_factory=lambda: States[BrokerState].of(()))
    arrivals: ArrivedBytes = field(default_factory=ArrivedBytes)
    #: (T, source, partition) where parts of sweeps were dropped: brokers swept there have no data at T.
    torn: frozenset[tuple[int, int, int]] = frozenset()
    #: Number of closed intervals.  This and the next five count since the beginning.
    closes: int = 0
    #: Rows that came after the tick of their interval.
    late: int = 0
    #: Rows of intervals without a tick in partition 0.
    unrostered: int = 0
    #: Rows dropped because too much waited for a tick.
    dropped: int = 0
    #: States of namespaces and brokers dropped because all of them are too long.
    dropped_states: int = 0
    #: Files of a folder log, so that offsets keep rising.
    files: int = 0
