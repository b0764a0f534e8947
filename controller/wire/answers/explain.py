"""The answers of ``trimtab journal`` and ``trimtab explain``."""

from typing import Annotated, Final, Literal, TypeAlias

from controller.wire.answers.base import CommandAnswer, JsonAnswer, PulsarVersionAnswer, Shown, VerdictAnswer
from controller.wire.answers.status import PauseAnswer
from controller.wire.base import Number

ReasonKind: TypeAlias = Literal["normal", "throttled", "configuration", "impossible", ""]
SubjectKind: TypeAlias = Literal["bundle", "broker", "topic", "interval"]
#: Where the explained decision comes from.
ExplainedSource: TypeAlias = Literal["journal", "recording", "load"]
#: The status of a broker as the destination of a bundle: chosen, the source, possible, or excluded.
DestinationAnswer: TypeAlias = Literal["yes", "no", "chosen", "source"]


class JournalAnswer(JsonAnswer):
    """``trimtab journal --json``, a line for each decision, the newest first."""

    interval: int
    """T, epoch ms."""
    summary: str
    mode: str
    paused: bool
    stale: bool
    """Whether the interval was too old to act on."""
    by: str
    """Who set the mode, or paused first if it was paused; "": the settings."""
    reason: str
    """Why."""
    pauses: list[PauseAnswer]
    """Every pause in force."""
    commands: list[CommandAnswer]
    """Those that were looked for."""
    pulsar: PulsarVersionAnswer | None
    """null: nothing depended on it, or an earlier release decided."""
    verdicts: list[VerdictAnswer] | None
    """Those that were looked for; null: none were looked for, or those of this interval are not kept any more."""


class GivenAnswer(JsonAnswer):
    """The answer of a guardrail or a strategy."""

    asked: str
    """The option, or the strategy."""
    answer: Literal["yes", "no", "not asked"]
    """yes: it allows, or does, the move. not asked: an earlier one refused."""
    reason: str
    """"" with yes and not asked."""
    kind: Annotated[ReasonKind, Shown(heading="class")]
    """The class of the reason; "" without one."""
    text: Annotated[str, Shown(heading="found", prose=True)]
    """What was found."""
    means: Annotated[str, Shown(heading="meaning", prose=True)]
    """The meaning of the reason, and what changes it."""


class BrokerForBundleAnswer(JsonAnswer):
    """The answers of the filters and the placement about a broker as the destination of the bundle."""

    broker: str
    answer: DestinationAnswer
    """chosen: the bundle goes there. yes: it could. source: it is there."""
    by: str
    """The filter or the placement that excludes it."""
    reason: str
    """Of a filter; "" of a placement, which prefers another broker."""
    kind: ReasonKind
    text: str
    """The same in words."""
    filters: dict[str, bool | None]
    """Filter -> whether it keeps the broker; null: an earlier one has excluded it."""
    usage: Number
    """The largest weighted usage of a resource, a fraction of its limit; heap memory never counts."""
    resource: str
    """The resource that the usage is of; "" where that is not known."""
    msg_rate: Number
    """msg/s, in and out."""
    msg_throughput: Number
    """bytes/s, in and out."""
    bundles: int


class FlipAnswer(JsonAnswer):
    """A change after which the decision comes out otherwise."""

    kind: Annotated[Literal["usage", "load", "option"], Shown(heading="change")]
    """usage: of a broker, and its rates.  load: of the bundle, and its averages.  option: of broker.conf."""
    of: str
    before: Number
    """Of usage and load: 100 %."""
    after: Number
    """Of a switch: 1 is true."""
    unit: str
    then: str
    """What would be done; "": nothing would be."""


class ExplainedTopicAnswer(JsonAnswer):
    """A scalable topic of Pulsar 5.0 in the load that was decided on."""

    segments: int
    """Those with load."""
    bundles: int
    """In so many bundles."""
    serving: int
    """Brokers that serve any."""
    may_serve: int
    """Brokers that may, by isolation policies and kinds of topics."""
    throughput: Number
    """Bytes/s, in + out."""
    unevenness: Number
    """Bytes/s of the busiest broker over the mean of all that may serve the topic; 0 without traffic."""
    busiest: str
    """That broker."""
    changing: int
    """Segments that brokers are about to split or merge by their thresholds, so that PeakShedder leaves them."""
    cut: int | None
    """A key hash that would divide a lopsided pair of segments evenly; null: none is."""


class ExplainAnswer(JsonAnswer):
    """``trimtab explain --json``."""

    cluster: str
    subject: str
    """A bundle, a broker, a scalable topic, or "interval"."""
    kind: SubjectKind
    interval: int
    """T of the decision, epoch ms."""
    source: ExplainedSource
    """journal: what was decided.  load: what would be decided on the load that was given."""
    summary: str
    pulsar: PulsarVersionAnswer | None
    """null: nothing depended on it, or an earlier release decided."""
    because: str
    """In one sentence: why it was, or was not, done."""
    commands: list[CommandAnswer]
    """Those about the subject, with their results."""
    answers: list[GivenAnswer]
    """Of guardrails and strategies."""
    where_to: str
    """Of a bundle: where it goes; where the decision did not ask, where it would go; or why to no broker."""
    brokers: list[BrokerForBundleAnswer] | None
    """Of a bundle: each broker as its destination; null: the load of this interval is not known."""
    chosen: bool | None
    """Of a bundle: whether the decision looked for a destination; false: these answers are for a move at its end."""
    verdicts: list[VerdictAnswer]
    """Those about the subject; of an interval, all."""
    reproduced: bool | None
    """Whether recomputing the decision gave the same result; null: it was not recomputed."""
    notes: list[str]
    topic: ExplainedTopicAnswer | None = None
    """Of a scalable topic; not given of other subjects."""
    flips: list[FlipAnswer] | None = None
    """With --flip: single changes that would flip whether anything is done, the smallest first; null: not asked for, or
    the load of this interval is not known."""
    flips_unfinished: list[str] | None = None
    """With --flip: brokers, bundles and options that --flip-seconds did not suffice for: a change of them, or a smaller
    one, may flip it, too; null: as ``flips``."""


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.explain": ExplainAnswer,
    "answer.journal": JournalAnswer,
}
