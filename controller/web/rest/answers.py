"""The answers of REST that no command prints: what the store knows, and how far long work is."""

from typing import Literal

from pydantic import Field

from controller.web.store.values import (
    BrokerPast,
    BrokerStates,
    BundlePast,
    ControlPage,
    DecisionDetail,
    DecisionPage,
    IssuedCommand,
    NamespacePast,
    Progress,
    Series,
)
from controller.web.topic_names import NamesByPlace
from controller.wire.answers.base import JsonAnswer, VerdictAnswer
from controller.wire.answers.explain import JournalAnswer
from controller.wire.answers.proposals import ProposalAnswer
from controller.wire.answers.status import ControlChangeAnswer, PauseAnswer


class SourceAnswer(JsonAnswer):
    """How far one source of the store is read."""

    source: str
    """summaries, journal, results or controls."""
    done: float
    """0 to 1; 1: all that was there when it was asked for last."""
    read_until_ms: int | None
    refused: int
    """Records that could not be used."""
    error: str
    """Why it cannot be read now; "": it can."""


class ClusterAnswer(JsonAnswer):
    """One of the clusters, and how much of its past is loaded."""

    cluster: str
    complete: bool
    """Everything that was in the log when the process began is loaded."""
    oldest: int | None
    """The first interval that is known, epoch ms."""
    newest: int | None
    missing: int
    """Intervals between them of which nothing but the decision is known."""
    rebuilt: str
    """Why what was remembered was built anew at the start; "": it was not."""
    sources: list[SourceAnswer]

    @classmethod
    def of(cls, cluster: str, progress: Progress) -> "ClusterAnswer":
        """How far *cluster* is loaded."""
        sources = [SourceAnswer.from_object(each) for each in progress.sources]
        return cls.from_object(progress, cluster=cluster, sources=sources)


class ClustersAnswer(JsonAnswer):
    """The clusters that this server shows."""

    clusters: list[ClusterAnswer]
    viewer: str
    """Who you are."""
    role: str
    """viewer, operator or approver."""


class BrokerNowAnswer(JsonAnswer):
    """A broker in the last interval; null: not known."""

    name: str
    has_data: bool
    drained: bool
    usage: dict[str, float | None]
    """Resource -> percent of its limit."""
    fullest: str
    fullest_usage: float | None
    forecast: float | None
    """The highest usage that the shedder foresees if nothing moves, percent; null: it foresees none."""
    rate_in: float | None
    """Messages/s."""
    rate_out: float | None
    throughput_in: float | None
    """Bytes/s."""
    throughput_out: float | None
    bundles: int | None
    topics: int | None
    connections: int | None


class BrokersAnswer(JsonAnswer):
    """All brokers in the last interval, the fullest first."""

    interval: int | None
    """T, epoch ms; null: nothing is known yet."""
    limit: float | None
    """Percent: above it the shedder takes bundles from a broker; null: it was not asked, or has no limit."""
    goal: float | None
    """Percent: to this usage it brings a broker; null: it has no goal."""
    not_listed: int
    """Brokers of the cluster, with lower usage, that the summary had no room for."""
    brokers: list[BrokerNowAnswer]
    cursor: str | None
    """For the next page; null: this is the last one."""

    @classmethod
    def of(cls, states: BrokerStates | None, first: int, count: int) -> "BrokersAnswer":
        """*count* brokers from number *first* on."""
        if states is None:
            return cls(interval=None, limit=None, goal=None, not_listed=0, brokers=[], cursor=None)
        page = states.brokers[first : first + count]
        after = first + count
        return cls.from_object(
            states,
            brokers=[BrokerNowAnswer.from_object(each, usage=dict(each.usage)) for each in page],
            cursor=str(after) if after < len(states.brokers) else None,
        )


class MeasureAnswer(JsonAnswer):
    """One side of a move: usage of the broker's fullest resource, percent; null: not known."""

    broker: str
    before: float | None
    promised: float | None
    measured: float | None
    """Two intervals later."""


class MeasuredAnswer(JsonAnswer):
    """What became of a move."""

    outcome: str
    """arrived, elsewhere, stayed, split, merged, unlisted, not_recorded or too_many."""
    source: MeasureAnswer
    destination: MeasureAnswer
    came_to: str
    undone: bool | None
    undone_by: str


class IssuedCommandAnswer(JsonAnswer):
    """A command, with its result and what became of it as far as that is known."""

    id: str
    interval: int
    action: str
    """unload or split."""
    bundle: str
    namespace: str
    source: str
    destination: str
    """"": the brokers choose, or a split."""
    mode: str
    """active or dry_run."""
    why: VerdictAnswer
    status: str
    """The executor's (docs/executor.md); "": no result yet."""
    detail: str
    started_at: int | None
    finished_at: int | None
    measured: MeasuredAnswer | None

    @classmethod
    def of(cls, command: IssuedCommand) -> "IssuedCommandAnswer":
        """All of *command*."""
        return cls.from_object(
            command,
            why=VerdictAnswer.of(command.why),
            measured=None if command.measured is None else MeasuredAnswer.from_object(command.measured),
        )


class DecisionRowAnswer(JsonAnswer):
    """A decision in a list."""

    interval: int
    """T, epoch ms."""
    epoch: int
    summary: str
    mode: str
    paused: bool
    commands: int
    statuses: dict[str, int]
    """Commands by the executor's status; "": no result yet."""
    reasons: dict[str, int] | None
    """Reason -> number of verdicts; null: not known."""


class DecisionsAnswer(JsonAnswer):
    """A page of decisions, the newest first."""

    decisions: list[DecisionRowAnswer]
    cursor: str | None
    """For the next, older page; null: this is the last one."""
    newer: str | None
    """For the page before; null: this is the first one."""

    @classmethod
    def of(cls, page: DecisionPage) -> "DecisionsAnswer":
        """All of *page*."""
        return cls.from_object(page, decisions=[DecisionRowAnswer.from_object(row) for row in page.rows])


class BudgetUseAnswer(JsonAnswer):
    """How much of a budget was used."""

    key: str
    scope: str
    """cluster, source, destination, namespace or broker."""
    of: str
    """Which broker or namespace; "" for the cluster."""
    used: int
    limit: int
    unit: str


class DecidedWithAnswer(JsonAnswer):
    """The controls that an interval was decided with."""

    mode: str
    paused: bool
    stale: bool
    reason: str
    by: str
    pauses: list[PauseAnswer]
    maintenance: str


class DecisionAnswer(JsonAnswer):
    """One decision, whole."""

    row: DecisionRowAnswer
    decided_at_ms: int | None
    tick_to_decision_ms: int | None
    controls: DecidedWithAnswer
    commands: list[IssuedCommandAnswer]
    verdicts: list[VerdictAnswer]
    """The most important ones."""
    verdicts_total: int | None
    """How many there were in all; null: not known."""
    budgets: list[BudgetUseAnswer]
    earlier: int | None
    """T of the decision before; null: there is none."""
    later: int | None

    @classmethod
    def of(cls, detail: DecisionDetail) -> "DecisionAnswer":
        """All of *detail*."""
        pauses = [PauseAnswer.from_object(each) for each in detail.controls.pauses]
        return cls.from_object(
            detail,
            row=DecisionRowAnswer.from_object(detail.row),
            controls=DecidedWithAnswer.from_object(detail.controls, pauses=pauses),
            commands=[IssuedCommandAnswer.of(each) for each in detail.commands],
            verdicts=[VerdictAnswer.of(each) for each in detail.verdicts],
            budgets=[BudgetUseAnswer.from_object(each) for each in detail.budgets],
        )


class SeriesAnswer(JsonAnswer):
    """Values over time, coarser with age; all lists have the same length, the oldest first."""

    at: list[int]
    """Begin of each step, epoch ms."""
    step: list[int]
    """Length of each step, ms."""
    values: dict[str, list[float | None]]
    """Name -> the highest value in each step; null: no data."""

    @classmethod
    def of(cls, series: Series) -> "SeriesAnswer":
        """All of *series*."""
        values = {
            name: [None if value != value else value for value in column.tolist()]
            for name, column in series.values.items()
        }
        return cls(at=series.at.tolist(), step=series.step.tolist(), values=values)


class OwnedSpanAnswer(JsonAnswer):
    """Who owned a bundle from when to when."""

    owner: str
    since_ms: int
    until_ms: int


class HotTopicAnswer(JsonAnswer):
    """A topic that has much of its bundle's load in the last interval."""

    place: int
    """On the hash ring."""
    rate: float
    """Messages/s, in and out."""
    throughput: float
    """Bytes/s, in and out."""
    share: float
    """Of the bundle's messages or bytes, whichever is larger, 0 to 1."""
    names: list[str]
    """What the brokers call the topic now; empty where they do not say, several where topics are at one place."""


class BundlePastAnswer(JsonAnswer):
    """A bundle: owner and load over time, what was done to it, its neighbours."""

    bundle: str
    namespace: str
    known: bool
    """false: nobody has seen it in the span."""
    folded: bool
    """Load and owners are those of a range of neighbours that has this bundle in it."""
    owner: str
    load: SeriesAnswer
    """rate in messages/s, throughput in bytes/s."""
    owners: list[OwnedSpanAnswer]
    commands: list[IssuedCommandAnswer]
    """The newest 500."""
    verdicts: list[VerdictAnswer]
    """Of the last interval."""
    siblings: list[str]
    figures: dict[str, float] = Field(default_factory=dict)
    """Of the last interval."""
    hot_topics: list[HotTopicAnswer] = Field(default_factory=list)
    """Of the last interval, or of `hotAt`, the hottest first; empty where topics are not known one by one."""

    @classmethod
    def of(cls, past: BundlePast, topic_names: NamesByPlace) -> "BundlePastAnswer":
        """All of *past*, with the names of its hot topics."""
        return cls.from_object(
            past,
            load=SeriesAnswer.of(past.load),
            owners=[OwnedSpanAnswer.from_object(each) for each in past.owners],
            commands=[IssuedCommandAnswer.of(each) for each in past.commands],
            verdicts=[VerdictAnswer.of(each) for each in past.verdicts],
            siblings=list(past.siblings),
            figures=dict(past.figures),
            hot_topics=[
                HotTopicAnswer.from_object(each, names=list(topic_names.get(each.place, ())))
                for each in past.hot_topics
            ],
        )


class BrokerPastAnswer(JsonAnswer):
    """A broker: usage and load over time, and the commands from it or to it."""

    broker: str
    known: bool
    now: BrokerNowAnswer | None
    """null: it is not active in the last interval."""
    load: SeriesAnswer
    commands: list[IssuedCommandAnswer]
    verdicts: list[VerdictAnswer]
    bundles: list[str]
    """The busiest first."""

    @classmethod
    def of(cls, past: BrokerPast) -> "BrokerPastAnswer":
        """All of *past*."""
        now = None if past.now is None else BrokerNowAnswer.from_object(past.now, usage=dict(past.now.usage))
        return cls.from_object(
            past,
            now=now,
            load=SeriesAnswer.of(past.load),
            commands=[IssuedCommandAnswer.of(each) for each in past.commands],
            verdicts=[VerdictAnswer.of(each) for each in past.verdicts],
            bundles=list(past.bundles),
        )


class OwnedBundleAnswer(JsonAnswer):
    """A bundle, or a range of several, and who owns it."""

    bundle: str
    owner: str


class ScalableTopicAnswer(JsonAnswer):
    """A scalable topic in the last interval."""

    place: int
    """Of topic://... on the hash ring."""
    names: list[str]
    """The scalable topics at this place, as the brokers say; empty where they do not."""
    segments: int
    """Those with load."""
    serving: int
    """Brokers that serve any."""
    may_serve: int
    """Brokers that may, by isolation policies and kinds of topics."""
    throughput: float
    """Bytes/s, in + out."""
    peak: float
    """The same on its busiest broker."""
    busiest: str
    """That broker; "": it is not listed."""
    unevenness: float
    """The peak over the mean of all that may serve it; 0 without traffic."""
    cut: int | None
    """A key hash that would divide a lopsided pair of segments evenly; null: none is."""


class NamespacePastAnswer(JsonAnswer):
    """A namespace: the load of its busiest bundle over time, its bundles, what was done to them."""

    namespace: str
    known: bool
    load: SeriesAnswer
    bundles: list[OwnedBundleAnswer]
    commands: list[IssuedCommandAnswer]
    scalable: list[ScalableTopicAnswer] = Field(default_factory=list)
    """Its scalable topics of Pulsar 5.0, those with the most on one broker first."""

    @classmethod
    def of(cls, past: NamespacePast, names: NamesByPlace) -> "NamespacePastAnswer":
        """All of *past*; *names*: of its scalable topics."""
        return cls.from_object(
            past,
            load=SeriesAnswer.of(past.load),
            bundles=[OwnedBundleAnswer(bundle=bundle, owner=owner) for bundle, owner in past.bundles],
            commands=[IssuedCommandAnswer.of(each) for each in past.commands],
            scalable=[
                ScalableTopicAnswer.from_object(each, names=list(names.get(each.place, ()))) for each in past.scalable
            ],
        )


class HistoryAnswer(JsonAnswer):
    """What people did with the controls, the newest first."""

    events: list[ControlChangeAnswer]
    cursor: str | None
    """For the next, older page; null: this is the last one."""

    @classmethod
    def of(cls, page: ControlPage) -> "HistoryAnswer":
        """All of *page*."""
        return cls(events=[ControlChangeAnswer.from_object(each) for each in page.events], cursor=page.cursor)


class ControlsWrittenAnswer(JsonAnswer):
    """A change of the controls that is stored.  Controllers read it at the next interval: `GET /controls` says when."""

    cluster: str
    action: str
    by: str
    at_ms: int
    reason: str
    epoch: int | None
    """Of a stop of everything: executors begin no command of an older epoch.  null: none was started."""
    proposal: str | None
    """Status 202: nothing is changed yet, it waits for approval as this proposal.  null: it is stored."""


class ProposalsAnswer(JsonAnswer):
    """Proposals, the oldest first, by what they say of themselves; one alone is verified."""

    proposals: list[ProposalAnswer]
    unreadable: dict[str, str]
    """Hash -> why what lies there cannot be read."""


class ProposedAnswer(JsonAnswer):
    """The result of a job that has proposed a plan."""

    proposal: str
    """Its hash."""


class ProposalWrittenAnswer(JsonAnswer):
    """A proposal after somebody has done something with it."""

    proposal: ProposalAnswer
    job: str | None
    """The job that goes on with it, as Location says; null: it is done."""


class PlanMoveAnswer(JsonAnswer):
    """A move of the plan that is being applied."""

    bundle: str
    source: str
    destination: str
    step: int
    """From 1."""
    wave: int
    """From 1; a wave that is handed over in parts may have several numbers."""
    state: Literal["done", "in_flight", "failed", "waiting"]
    detail: str
    """Why it failed, or was not begun; "": it did not."""
    interval: int | None
    """T of its newest command, epoch ms; null: none was issued."""


class PlanProgressAnswer(JsonAnswer):
    """How far the plan is that is being applied."""

    sha256: str
    step: int
    """From 1."""
    wave: int
    waves: int
    """Of this step."""
    by: str
    checked_at: int
    """T of the load that the wave was checked against, epoch ms."""
    expires_at_ms: int
    """No later interval obeys, epoch ms."""
    done: int
    in_flight: int
    failed: int
    waiting: int
    """Moves that are handed over, or are issued again; those of later waves are not known here."""
    moves: list[PlanMoveAnswer]
    """At most 10,000, the newest first."""


class PlanInForceAnswer(JsonAnswer):
    """The plan that is being applied, and what people did about plans."""

    plan: str
    """Its hash, step and wave; "": none is being applied."""
    progress: PlanProgressAnswer | None
    """Null: none is being applied, or the page's store does not know of it yet."""
    applied: list[ControlChangeAnswer]
    """The newest first."""


class JournalPageAnswer(JsonAnswer):
    """What `trimtab journal --json` prints, as one object."""

    decisions: list[JournalAnswer]
    """The newest first."""


class JobAnswer(JsonAnswer):
    """Long work: how far it is."""

    id: str
    kind: str
    """audit, explain, doctor, journal, status, plan, whatif or incident."""
    cluster: str
    by: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    progress: str
    """How far it is, in words."""
    problem: str
    """Why it failed; "": it did not."""
    created_ms: int
    ended_ms: int | None
    size: int
    """Bytes of the result."""


class JobsAnswer(JsonAnswer):
    """The jobs that are remembered, the newest first."""

    jobs: list[JobAnswer]
