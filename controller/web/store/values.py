"""The answers of the store: frozen values, without anything of SQLite or of the log.

Times are epoch ms.  A usage is in percent of the limit.  What is not known is None, never 0.  Names come from the log:
they are checked for length and control characters, and must still be escaped wherever they are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.model.controls import Controls
from controller.model.decision import Verdict
from controller.model.proposed import ProposedDecision

#: What a tile of brokers can show: the fullest resource, one resource, msg/s or bytes/s, connections.
BrokerMetric: TypeAlias = Literal[
    "usage", "cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut", "rate", "throughput", "connections"
]
#: What a tile of the keyspace can show: msg/s, bytes/s, or who owns what.
KeyspaceMetric: TypeAlias = Literal["rate", "throughput", "owner"]
#: How rows of brokers are sorted: by the highest usage in the span (descending), or by name.
RowOrder: TypeAlias = Literal["usage", "name"]

#: The largest tile.
MOST_COLUMNS: Final = 2_048
MOST_ROWS: Final = 512
#: The code of a cell without data.
NO_DATA: Final = 255
#: In tiles of owners: nobody owns it; the highlighted broker owns it.  Codes 1 to 253 are shades of the others.
NO_OWNER: Final = 0
HIGHLIGHTED: Final = 254


# ---- what is loaded ----


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """How far one source is read."""

    #: summaries, journal, results or controls.
    source: str
    #: 0.0 to 1.0; 1.0: all that was there when it was asked for last.
    done: float
    #: Append time of the last record that was read; None: none.
    read_until_ms: int | None
    #: Records that could not be used, since the process began.
    refused: int
    #: Why it cannot be read now; "": it can.
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is loaded, and how far back data reaches."""

    #: Everything that was in the log when the process began is loaded.
    complete: bool
    sources: tuple[SourceProgress, ...]
    #: First and last interval with a summary; None: none yet.
    oldest: int | None
    newest: int | None
    #: Intervals between them that have a decision in the journal and no summary.
    missing: int
    #: Why the store was built anew at the start, as after damage; "": it was not.
    rebuilt: str


# ---- now ----


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """How much of a budget is used, as of the last interval."""

    #: Its key below [guardrails].
    key: str
    #: cluster, source, destination, namespace or broker.
    scope: str
    #: Which broker or namespace; "" for the cluster.
    of: str
    used: int
    limit: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerState:
    """The breaker, as of the last interval."""

    in_a_row: int
    #: None: it does not trip by that.
    most_in_a_row: int | None
    in_window: int
    most_in_window: int | None
    tripped_at: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightCommand:
    """A command without a result, as of the last interval."""

    id: str
    action: str
    bundle: str
    source: str
    destination: str
    interval: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestState:
    """The cluster as of the last interval that the store knows; its age is the caller's clock less *interval*."""

    cluster: str
    epoch: int
    #: T.
    interval: int
    period_ms: int
    #: When it was decided and its commands were out, by the leader's clock.
    decided_at_ms: int
    #: From the moment at which the leader saw the tick; None: not known, as with a log in a folder.
    tick_to_decision_ms: int | None
    #: The decision in one sentence.
    summary: str
    #: Mode, pauses, maintenance, drained brokers, plan in force: what it was decided with.
    controls: Controls
    budgets: tuple[BudgetUse, ...]
    breaker: BreakerState
    in_flight: tuple[InFlightCommand, ...]
    #: In flight in all; the tuple has the first 512.
    in_flight_total: int
    #: Broker -> T at which it joined or left, while that freezes commands.
    joined: Mapping[str, int]
    departed: Mapping[str, int]
    #: Why active mode issues nothing because brokers balance by themselves; "": it does not.
    brokers_balance: str
    #: Mode approve: the decision that waits for approval; None: none does.
    proposed: ProposedDecision | None = None
    brokers: int
    brokers_without_data: int
    bundles: int
    namespaces: int
    topics: int
    connections: int
    rate: float
    throughput: float
    #: Reason -> number of verdicts.
    reasons: Mapping[str, int]
    #: The version of Pulsar that decided; "": nothing depended on it.
    pulsar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNow:
    """One broker in the last interval."""

    name: str
    #: False: it is active and sent no complete data, so that all figures are None.
    has_data: bool
    drained: bool
    #: Resource (names of model.load.RESOURCES) -> percent of its limit; None: not measured.
    usage: Mapping[str, float | None]
    #: The fullest resource and its usage; "" and None without data.
    fullest: str
    fullest_usage: float | None
    #: The highest usage that the shedder foresees if nothing moves; None: it foresees none.
    forecast: float | None
    rate_in: float | None
    rate_out: float | None
    throughput_in: float | None
    throughput_out: float | None
    bundles: int | None
    topics: int | None
    connections: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStates:
    """All brokers in the last interval, fullest first; those without data are last."""

    interval: int
    #: Above this usage the shedder takes bundles from a broker, and to which it brings it, percent; None: it was not
    #: asked in the last interval, or has none.
    limit: float | None
    goal: float | None
    brokers: tuple[BrokerNow, ...]
    #: Brokers of the cluster, with lower usage, that the summary had no room for.
    not_listed: int = 0


# ---- pictures ----


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRow:
    """A row of a tile."""

    #: The broker, the namespace, or the bundle (whole name); "" where the row folds several.
    name: str
    #: How many brokers, bundles or namespaces the row folds, at least 1; their maximum is shown.
    count: int
    #: First and last name that it folds; the same as *name* where it is one.
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tile:
    """A picture of rows × time: maxima, so that a hot minute never vanishes by zooming out."""

    metric: str
    #: Column c is the time from since_ms + c * column_ms on.
    since_ms: int
    until_ms: int
    column_ms: int
    rows: tuple[TileRow, ...]
    #: (rows, columns) uint8; NO_DATA where there is none.
    cells: NDArray[np.uint8]
    #: (255,) the value of each code in *unit*; empty for owners.
    values: NDArray[np.float64]
    #: percent, msg/s, bytes/s, connections, or "" for owners.
    unit: str
    #: The top of the colour scale: 100 for usages, else the 99.9th percentile of all that is stored.
    top: float
    #: Brokers that the last summary had no room for; rows that do not fit into a tile are folded instead.
    rows_left_out: int
    #: The span is over and loaded: the same request always has the same answer.
    final: bool


# ---- decisions ----


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMeasure:
    """One side of a move: usage of the broker's fullest resource, percent; None: not known."""

    broker: str
    before: float | None
    promised: float | None
    #: Two intervals later.
    measured: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What became of a move, as the leader audited it (docs/audit.md)."""

    #: arrived, elsewhere, stayed, split, merged, unlisted, not_recorded, too_many.
    outcome: str
    source: BrokerMeasure
    destination: BrokerMeasure
    #: The first other broker that listed the bundle; "": none did.
    came_to: str
    #: Back on its source within an hour; None: that hour is not over, or is not known.
    undone: bool | None
    undone_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCommand:
    """A command, with its result and what became of it as far as that is known."""

    id: str
    interval: int
    #: unload or split.
    action: str
    bundle: str
    namespace: str
    source: str
    #: "": the brokers choose, or a split.
    destination: str
    #: active or dry_run.
    mode: str
    #: Why, with both numbers.
    why: Verdict
    #: The executor's status (docs/executor.md); "": no result yet.
    status: str
    detail: str
    started_at: int | None
    finished_at: int | None
    #: None: not audited yet, or a split.
    measured: Measured | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A decision in a list."""

    interval: int
    epoch: int
    summary: str
    mode: str
    paused: bool
    commands: int
    #: Commands by outcome status: done, failed, ..., "" for those without a result.
    statuses: Mapping[str, int]
    #: Reason -> number of verdicts; None: no summary of this interval.
    reasons: Mapping[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionQuery:
    """Which decisions are looked for; None or False: all.  All that are given must apply."""

    #: Source or destination of a command.
    broker: str | None = None
    #: Of a command's bundle.
    namespace: str | None = None
    bundle: str | None = None
    #: Of a command, or of a verdict.
    reason: str | None = None
    #: First and last T.
    since_ms: int | None = None
    until_ms: int | None = None
    #: Only decisions with commands.
    with_commands: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPage:
    """One page of decisions, the newest first."""

    rows: tuple[DecisionRow, ...]
    #: To be given for the next (older) page; None: this is the last one.
    cursor: str | None
    #: The same for the page before (newer); None: this is the first one.
    newer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDetail:
    """One decision, whole."""

    row: DecisionRow
    decided_at_ms: int | None
    tick_to_decision_ms: int | None
    controls: Controls
    commands: tuple[IssuedCommand, ...]
    #: The most important verdicts; the rest is in *row.reasons* as numbers.  Empty without a summary.
    verdicts: tuple[Verdict, ...]
    #: How many verdicts there were in all; None without a summary.
    verdicts_total: int | None
    budgets: tuple[BudgetUse, ...]
    #: T of the decision before and after this one; None: there is none.
    earlier: int | None
    later: int | None


# ---- histories ----


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """Values over time, coarser with age.  All arrays have the same length, oldest first."""

    #: (n,) begin of each step, epoch ms.
    at: NDArray[np.int64]
    #: Length of each step, ms.
    step: NDArray[np.int64]
    #: Name -> (n,) maxima in the step; NaN where there is no data.
    values: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedSpan:
    """Who owned a bundle from when to when; "": nobody that sent data."""

    owner: str
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HottestTopic:
    """A topic that has much of its bundle's load in the last interval.  Its name is not stored anywhere."""

    #: On the hash ring; other topics of the bundle may be at the same one, and are then counted with it.
    place: int
    #: msg/s and bytes/s, in + out.
    rate: float
    throughput: float
    #: Its share of the bundle's messages or bytes, whichever is larger, 0 to 1.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HotMoment:
    """The hot topics of a bundle in one interval."""

    #: T, epoch ms.
    at_ms: int
    #: The hottest first.
    topics: tuple[HottestTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BundlePast:
    """A bundle: owner and load over time, what was done to it, its neighbours in the keyspace."""

    bundle: str
    namespace: str
    #: False: nobody has seen it in the span.
    known: bool
    #: The cluster has more bundles than summaries list: load and owners are those of a range of neighbours that has
    #: this bundle in it, and owners are completed by its moves.
    folded: bool
    owner: str
    #: In the last interval: more than 1 where *bundle* is no bundle, but a range that stands for so many in pictures.
    bundles: int = 1
    #: rate, throughput.
    load: Series
    owners: tuple[OwnedSpan, ...]
    commands: tuple[IssuedCommand, ...]
    #: Verdicts on it in the last interval, as far as the summary has them.
    verdicts: tuple[Verdict, ...]
    #: Bundles, or ranges, of its namespace in the last interval, in order.
    siblings: tuple[str, ...]
    #: Exact figures of the last interval where the summary lists the bundle: rate_in, rate_out, throughput_in,
    #: throughput_out, topics, producers, consumers.
    figures: Mapping[str, float] = field(default_factory=dict)
    #: The hottest first; empty where its topics are not known one by one, as for bundles far from a split threshold.
    hot_topics: tuple[HottestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerPast:
    """A broker: usage and load over time, and commands from it or to it."""

    broker: str
    known: bool
    #: None: it is not active in the last interval.
    now: BrokerNow | None
    #: Every BrokerMetric.
    load: Series
    commands: tuple[IssuedCommand, ...]
    verdicts: tuple[Verdict, ...]
    #: Its bundles in the last interval, the busiest first, as far as the summary lists them (at most 512).
    bundles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableTopicState:
    """A scalable topic in the last interval."""

    #: Of topic://... on the hash ring.
    place: int
    #: Segments with load; brokers that serve any, and brokers that may.
    segments: int
    serving: int
    may_serve: int
    #: Bytes/s, in + out: of the topic, and on its busiest broker.
    throughput: float
    peak: float
    #: "": it is not listed.
    busiest: str
    #: The peak over the mean of all that may serve it; 0 without traffic.
    unevenness: float
    #: A key hash that would divide a lopsided pair of segments evenly; None: none is.
    cut: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamespacePast:
    """A namespace: the load of its busiest bundle over time, its bundles now, and what was done to them."""

    namespace: str
    known: bool
    #: rate, throughput.
    load: Series
    #: Its bundles, or ranges, in the last interval, in order, with their owners; of a range that of its busiest bundle.
    bundles: tuple[tuple[str, str], ...]
    #: How many bundles these are.
    bundles_in_all: int
    commands: tuple[IssuedCommand, ...]
    #: Those with the most on one broker first.
    scalable: tuple[ScalableTopicState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEvent:
    """Something that a person did."""

    at_ms: int
    by: str
    #: pause, resume, mode, stop-all, stop-plan, accept-loss, drain, release or apply; refused: it was not done.
    action: str
    detail: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPage:
    """What people did, the newest first."""

    events: tuple[ControlEvent, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMatch:
    """A name that a person may have meant."""

    #: broker, namespace or bundle.
    kind: str
    name: str
    #: A bundle that is none: a range that stands for several in pictures.
    is_range: bool = False
