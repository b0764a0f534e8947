"""The answer of ``trimtab audit``."""

from typing import Annotated, Final, Literal

from controller.wire.answers.base import DestinationBroker, JsonAnswer, Moment, Shown, SourceBroker
from controller.wire.base import Number
from controller.wire.readable import compact


class BrokerFiguresAnswer(JsonAnswer):
    """How full a broker is."""

    usage: Number | None
    """Usage of the resource that is fullest by the shedder's weights, percent of its limit; null: unknown."""
    resource: str
    """That resource; "" if unknown."""
    msg_rate: Number
    """Messages/s of its bundles, in and out."""
    msg_throughput: Number
    """Bytes/s of its bundles, in and out."""


class AuditedSideAnswer(JsonAnswer):
    """The source or the destination of a move."""

    broker: str
    """"" if the brokers choose the destination."""
    before: BrokerFiguresAnswer | None
    """In the interval of the decision; null: the broker had no data, or the log does not have that interval."""
    predicted: BrokerFiguresAnswer | None
    """As of the decision, including everything decided by then."""
    predicted_by: Literal["promise", "computed", ""]
    """Of its usage: the decision's own record, or computed from the load that the decision saw."""
    actual: BrokerFiguresAnswer | None
    """Two intervals later."""
    presence: Literal["there", "no_data", "left", ""]
    """Whether the broker had data two intervals later; "": unknown."""
    error: Number | None
    """Percentage points: the actual usage less the predicted one."""


class CarriedLoadAnswer(JsonAnswer):
    """The load of a moved bundle in the interval of the decision."""

    msg_rate_in: Number
    msg_rate_out: Number
    msg_throughput_in: Number
    msg_throughput_out: Number
    topics: int
    producers: int
    consumers: int


class AuditedMoveAnswer(JsonAnswer):
    """One unload command."""

    id: str
    interval: Moment
    """T, the interval of the decision, epoch ms."""
    bundle: str
    namespace: str
    strategy: str
    """Who requested it: a strategy, or "plan"."""
    reason: str
    source: AuditedSideAnswer
    destination: AuditedSideAnswer
    result: str
    """The executor's status (docs/executor.md); "": no result arrived."""
    outcome: Annotated[
        Literal["arrived", "elsewhere", "stayed", "split", "merged", "unlisted", "not_recorded", "not_yet", "too_many"],
        Shown(form=lambda outcome: outcome.replace("_", " ")),
    ]
    """Where the bundle was two intervals later."""
    came_to: str
    """The first other broker that listed it after the decision; "": none did."""
    came_at: int | None
    """Epoch ms."""
    carried: CarriedLoadAnswer | None
    clients: int | None
    """Producers and consumers that had to reconnect; null: unknown whether the bundle was unloaded."""
    producers_back_seconds: Number | None
    """From the interval that first showed the bundle on another broker to the one in which it had as many producers
    there as when it was decided; 0: the same interval.  null: not seen within the hour, or not known, as without
    producers."""
    drift: Number | None
    """Traffic of the cluster two intervals later, as a multiple of that before."""
    later: int
    """Moves from or to its brokers that were decided in between, which predictions do not include."""
    helped: bool | None
    """The fuller broker lost more load than the cluster as a whole."""
    undone: bool | None
    """The bundle was back on its source within an hour; null: that hour is not over."""
    undone_at: int | None
    undone_by: Literal["trimtab", "others", "broker_left", ""]
    shorter: bool | None
    """A shorter sequence of moves would have had the same result; null: not known yet."""


class AuditSumsAnswer(JsonAnswer):
    """Totals over several moves."""

    moves: int
    arrived: int
    elsewhere: int
    stayed: int
    late: int
    """Those that were done later than two intervals after the decision."""
    gone: int
    """Split, merged or not listed any more."""
    unknown: int
    """No data about two intervals later."""
    helped: int
    judged: int
    """Moves of which it is known whether they helped."""
    undone: int
    undone_unknown: int
    """Moves of which it is not known yet whether they are undone."""
    shorter: int
    clients: int
    clients_unknown: int
    """Moves of which it is not known whether clients had to reconnect."""
    had_producers: int
    """Moves of bundles that had producers and came to another broker."""
    producers_back: int
    """Those whose bundle had as many producers as before on the new broker within an hour."""
    producers_back_at_once: int
    """Those where this was already so in the interval that first showed the bundle there."""
    msg_rate: Annotated[Number, Shown(heading="msg/s", form=compact)]
    """Messages/s of the moved bundles."""
    predictions: int
    """Brokers of moves that arrived, whose usage was predicted and observed."""
    promises: int
    """How many of these predictions are the decision's own record."""
    unpredicted: int
    """Brokers of moves that arrived, of whose usage nothing could be predicted: one was at its limit, and the usage of
    the others does not say why."""
    mean_error: Annotated[Number | None, Shown(heading="error", form=".1f")]
    """Percentage points, without sign: the actual usage less the predicted one; null without predictions."""
    mean_error_without_drift: Number | None
    """The same, if predictions had known how the traffic of the cluster was to change."""


class OwnerChangeAnswer(JsonAnswer):
    """A bundle that came to another broker without a command."""

    interval: Annotated[Moment, Shown(heading="seen")]
    """In which it was first seen there, epoch ms."""
    bundle: str
    source: SourceBroker
    destination: DestinationBroker
    why: Literal["others", "broker_left"]


class TopicAuditAnswer(JsonAnswer):
    """A scalable topic of Pulsar 5.0, over the intervals of the span in which it had traffic."""

    namespace: str
    place: Annotated[int, Shown(heading="topic at", form=lambda place: f"0x{place:08x}")]
    """Of topic://... on the hash ring: records say no more of a topic.  `trimtab lookup TOPIC` prints a topic's."""
    intervals: int
    segments: int
    """With load, in the last of these intervals."""
    min_segments: int
    max_segments: int
    changed: int
    """Intervals in which it had more or fewer segments with load than in the one before."""
    throughput: Annotated[Number, Shown(heading="bytes/s", form=compact)]
    """In and out, on average."""
    unevenness: Annotated[Number, Shown(heading="uneven", form=".3g")]
    """Bytes/s of the busiest broker over the mean of all that may serve the topic, on average."""
    worst: Annotated[Number, Shown(form=".3g")]
    """The highest of these."""
    worst_at: Moment
    """T of its interval, epoch ms."""
    cut: Annotated[int | None, Shown(heading="even cut", form=lambda cut: f"0x{cut:04x}")]
    """A key hash that would divide a lopsided pair of its segments evenly, in the last interval; null: none is."""


class AuditAnswer(JsonAnswer):
    """``trimtab audit --json``."""

    cluster: str
    first_interval: int
    """T of the first and the last interval whose load was read, epoch ms."""
    last_interval: int
    intervals: int
    """Intervals with load in the span that is audited."""
    decided: int
    """How many of the span have a decision."""
    total: AuditSumsAnswer
    strategies: dict[str, AuditSumsAnswer]
    namespaces: dict[str, AuditSumsAnswer]
    """Those with the most moves, at most 10,000."""
    hours: dict[str, AuditSumsAnswer]
    """Begin of the hour in UTC -> its sums; 10,000 at most."""
    not_needed: int
    """Moves that a plan which takes each bundle straight to its last broker would not need, over the whole span."""
    moves: list[AuditedMoveAnswer]
    """The first 10,000."""
    dry_run: int
    """Unloads of a dry run, which are not audited: they move nothing."""
    changed_by_others: int
    """Bundles that came to other brokers without a command, from brokers that were still there."""
    changed_as_broker_left: int
    changes: list[OwnerChangeAnswer]
    """The first 10,000 of both."""
    topics: list[TopicAuditAnswer]
    """Scalable topics, at most 10,000: those with the most traffic above their share on one broker first."""
    notes: list[str]


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.audit": AuditAnswer,
}
