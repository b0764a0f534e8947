"""The summary of one interval: what the page shows of it.  No decision depends on one.

Its size is bounded whatever the cluster's is: brokers, ranges of the keyspace, bundles and verdicts have maxima.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.model.controls import Controls
from controller.model.decision import Verdict
from controller.model.load import Ints, read_only
from controller.model.memory import Breaker, InFlight
from controller.model.proposed import ProposedDecision

#: Brokers, the fullest first to stay; ranges of the keyspace; bundles with figures of their own; verdicts that are
#: whole; commands in flight; moves whose outcome is reported; brokers that joined or left.
MOST_BROKERS: Final = 4_096
MOST_RANGES: Final = 16_384
MOST_BUNDLES: Final = 512
MOST_VERDICTS: Final = 256
MOST_IN_FLIGHT: Final = 512
MOST_OUTCOMES: Final = 512
MOST_CHANGES: Final = 256
#: Scalable topics, those whose busiest broker has the most above its share.
MOST_SCALABLE: Final = 128
#: Topics of a bundle that are listed, the hottest.
MOST_HOT_TOPICS: Final = 2
#: Stands for a place on the ring where there is no further topic, or topics are not known one by one.
NO_PLACE: Final = -1

#: Steps of a coded rate for each doubling: neighbouring codes differ by 12 %.
_STEPS: Final = 6
_HIGHEST: Final = 254


def coded_rate(rate: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Rates (0 to 5e12) as codes from 0 to 254, which grow with the rate."""
    with np.errstate(invalid="ignore"):
        codes = np.rint(_STEPS * np.log2(1.0 + np.maximum(rate, 0.0)))
    capped: NDArray[np.uint8] = np.minimum(np.nan_to_num(codes), _HIGHEST).astype(np.uint8)
    return capped


def decoded_rates() -> NDArray[np.float64]:
    """(255,) the rate that each code stands for."""
    return np.exp2(np.arange(_HIGHEST + 1) / _STEPS) - 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummarizedBrokers:
    """Active brokers, sorted by name.  Rows of those without data have NaN and 0."""

    names: tuple[str, ...]
    has_data: NDArray[np.bool_]
    #: (n, 5) percent of the limit; NaN where it is not measured.
    usage: NDArray[np.float32]
    #: (n,) the highest usage that the shedder foresees, percent; NaN where it foresees none.
    forecast: NDArray[np.float32]
    #: (n, 4) as in BrokerTable.load.
    load: NDArray[np.float32]
    bundles: Ints
    topics: Ints
    #: Producers and consumers of its bundles.
    connections: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummarizedRanges:
    """The keyspace: one row for each bundle, or for each range of neighbours in large clusters, sorted."""

    #: Sorted.  "" stands for all namespaces that are not listed.
    namespaces: tuple[str, ...]
    #: Code into ``namespaces``.
    namespace: Ints
    #: Ends of the range on the ring, as in the name of a bundle.
    lower: Ints
    upper: Ints
    #: Bundles in the range; 1: the row is a bundle.
    bundles: Ints
    #: Row of the owner of the busiest bundle in SummarizedBrokers; -1: it is not listed there.
    owner: Ints
    #: Maxima of the bundles: msg/s and bytes/s, in + out, by ``coded_rate``.
    rate: NDArray[np.uint8]
    throughput: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummarizedBundles:
    """Bundles that matter individually: the busiest, and those that something was done to.  Sorted by name."""

    names: tuple[str, ...]
    #: Row of the owner in SummarizedBrokers; -1: it is not listed there.
    owner: Ints
    #: (n, 4) as in BundleTable.load.
    load: NDArray[np.float32]
    topics: Ints
    producers: Ints
    consumers: Ints
    #: (n, MOST_HOT_TOPICS) places of the hottest topics on the hash ring, the hottest first, or NO_PLACE.
    hot_place: Ints
    #: (n, MOST_HOT_TOPICS) msg/s and bytes/s of these, in + out.
    hot_rate: NDArray[np.float32]
    hot_throughput: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummarizedTopics:
    """Scalable topics of Pulsar 5.0, by namespace, and in it those with the most on one broker first."""

    #: Code into ``namespaces`` of SummarizedRanges, and the place of topic://... on the hash ring.
    namespace: Ints
    place: Ints
    #: Segments with load, brokers that serve any, and brokers that may.
    segments: Ints
    serving: Ints
    may_serve: Ints
    #: (n,) bytes/s, in + out: of the topic, and of its segments on the broker with most of it.
    throughput: NDArray[np.float32]
    peak: NDArray[np.float32]
    #: Row of that broker in SummarizedBrokers; -1: it is not listed there.
    busiest: Ints
    #: A key hash that would divide a lopsided pair of segments evenly; -1: none is.
    cut: Ints

    @property
    def unevenness(self) -> NDArray[np.float64]:
        """(n,) the peak over the mean of all brokers that may serve the topic; 0 without traffic."""
        mean = self.throughput.astype(np.float64) / np.maximum(self.may_serve, 1)
        return np.divide(self.peak, mean, out=np.zeros(len(mean)), where=mean > 0)


def no_topics() -> SummarizedTopics:
    """None."""
    none, rates = as_column([]), as_column([], np.float32)
    return SummarizedTopics(
        namespace=none,
        place=none,
        segments=none,
        serving=none,
        may_serve=none,
        throughput=rates,
        peak=rates,
        busiest=none,
        cut=none,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetInForce:
    """A budget and how much of it is used."""

    #: Its key below [guardrails].
    key: str
    scope: str
    of: str
    used: int
    limit: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSide:
    """One broker of a move: usage of its fullest resource, percent; None: not known."""

    broker: str
    before: float | None = None
    promised: float | None = None
    measured: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeOfMove:
    """What became of a move, as the leader's audit saw it; a later one of the same command replaces it."""

    id: str
    outcome: str
    source: MoveSide
    destination: MoveSide
    came_to: str = ""
    undone: bool | None = None
    undone_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """What may hold commands back, as of the interval."""

    controls: Controls
    budgets: tuple[BudgetInForce, ...] = ()
    breaker: Breaker = field(default_factory=Breaker)
    failures_in_window: int = 0
    #: Limits of the breaker; None: it does not trip by that.
    most_in_a_row: int | None = None
    most_in_window: int | None = None
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
    in_flight_total: int = 0
    joined: Mapping[str, int] = field(default_factory=dict)
    departed: Mapping[str, int] = field(default_factory=dict)
    brokers_balance: str = ""
    #: Mode approve: the decision that waits for approval.
    proposed: ProposedDecision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSubjects:
    """What was examined: all verdicts counted, the most important ones whole."""

    #: Reason -> number.
    reasons: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalTotals:
    """Sums over the whole cluster, also over what is not listed."""

    brokers: int = 0
    brokers_without_data: int = 0
    bundles: int = 0
    namespaces: int = 0
    topics: int = 0
    connections: int = 0
    #: msg/s and bytes/s, in + out.
    rate: float = 0.0
    throughput: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalSummary:
    """See the module docstring."""

    cluster: str
    #: T, epoch ms.
    interval: int
    epoch: int
    period_ms: int
    #: When the decision and its commands were out, epoch ms, by the leader's clock.
    decided_at_ms: int
    #: None: not known.
    tick_to_decision_ms: int | None = None
    #: The decision in one sentence.
    summary: str
    #: The version of Pulsar that decided; "": nothing depended on it.
    pulsar: str = ""
    #: Usage above which the shedder takes bundles from a broker, and to which it brings it, percent; None: it was not
    #: asked in this interval, or has none.
    limit: float | None = None
    goal: float | None = None
    totals: IntervalTotals
    guarding: Guarding
    judged: JudgedSubjects
    outcomes: tuple[OutcomeOfMove, ...] = ()
    brokers: SummarizedBrokers
    ranges: SummarizedRanges
    bundles: SummarizedBundles
    scalable: SummarizedTopics = field(default_factory=no_topics)


def as_column(values: Any, kind: Any = np.int64) -> NDArray[Any]:
    """*values* as a read-only column."""
    return read_only(np.asarray(values, kind))
