"""The answers of ``trimtab status``, ``lookup``, ``pause``, ``resume``, ``mode`` and ``stop-all``."""

from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field

from controller.model.proposed import ProposedDecision
from controller.wire.answers.base import CommandAnswer, JsonAnswer, PulsarVersionAnswer, Shown, VerdictAnswer
from controller.wire.base import Number


class LeaderAnswer(JsonAnswer):
    """The process that leads."""

    host: str
    """Empty if the process did not identify itself."""
    process: int
    since_ms: int


class LastDecisionAnswer(JsonAnswer):
    """The newest decision."""

    interval: int
    """T, epoch ms."""
    summary: str
    mode: str
    paused: bool
    stale: bool
    samples: int
    """Intervals that were decided since the controller's memory began."""
    pulsar: PulsarVersionAnswer | None
    """null: nothing depended on it, or an earlier release decided."""


class InFlightAnswer(JsonAnswer):
    """A command whose result had not come back when the last decision was made.  Its keys are in snake_case."""

    model_config = ConfigDict(alias_generator=None)

    action: str
    bundle: str
    source: str
    destination: str
    interval: int
    expires_at_ms: int
    dry_run: bool
    idle: bool
    """The bundle had neither clients nor traffic."""


class ImbalanceAnswer(JsonAnswer):
    """The load of the busiest broker divided by the mean of all; 1 is even.  Its keys are in snake_case."""

    model_config = ConfigDict(alias_generator=None)

    brokers: int
    msg_rate: float
    msg_throughput: float
    busiest: str
    """The busiest broker by messages."""


class ChoiceAnswer(JsonAnswer):
    """A setting that a person changed."""

    value: str
    reason: str
    by: str
    at_ms: int


class ModeAnswer(JsonAnswer):
    """Which mode is in force, and why."""

    in_force: str
    settings: str
    set: ChoiceAnswer | None


class PauseAnswer(JsonAnswer):
    """One person's pause."""

    by: str
    reason: str
    at_ms: int
    until_ms: int
    """When it ends by itself, epoch ms; 0: never."""


class PausedAnswer(JsonAnswer):
    """Whether the controller is paused, and why."""

    in_force: bool
    settings: bool
    pauses: list[PauseAnswer]
    """Every pause that stands, the oldest first."""


class ControlChangeAnswer(JsonAnswer):
    """``trimtab controls --json``, a line for each change, the newest first."""

    at_ms: int
    by: str
    action: str
    """pause, resume, mode, stop-all, stop-plan, accept-loss, drain, release, apply, approve or reject; refused: it was
    not done."""
    detail: str
    """What it changed."""
    reason: str


class BreakerAnswer(JsonAnswer):
    """The circuit breaker."""

    tripped_at: int | None
    """Epoch ms; null: it is closed."""
    why: str
    failures_in_a_row: int


class BudgetAnswer(JsonAnswer):
    """How much of a budget is used."""

    budget: str
    """The setting in trimtab.toml."""
    of: str
    """The cluster, a broker or a namespace."""
    used: int
    limit: int
    unit: str


class PredictedBrokerAnswer(JsonAnswer):
    """Usage of a broker's fullest resource, as a share of what it can carry."""

    before: float
    after: float


class ProposedDecisionAnswer(JsonAnswer):
    """A decision of strategies that waits for approval in mode approve."""

    decision: str
    """Its hash: what an approval is for."""
    interval: int
    """T in which it was decided, epoch ms."""
    expires_at_ms: int
    commands: list[CommandAnswer]
    """What is issued once it is approved, without results."""
    connections: int
    """Producers and consumers that have to reconnect."""
    usage: dict[str, PredictedBrokerAnswer]
    """Broker that it touches -> as it was, and as predicted."""

    @classmethod
    def of(cls, decision: ProposedDecision) -> Self:
        """All of *decision*."""
        return cls(
            decision=decision.hash,
            interval=decision.interval,
            expires_at_ms=decision.expires_at_ms,
            commands=[CommandAnswer.of(each, None) for each in decision.commands],
            connections=decision.connections,
            usage={
                name: PredictedBrokerAnswer(before=each.before, after=each.after)
                for name, each in decision.usage.items()
            },
        )


class GuardrailsAnswer(JsonAnswer):
    """What blocks commands now, and how much of the budgets is used."""

    mode: ModeAnswer
    paused: PausedAnswer
    drained: list[str]
    """Brokers that get no bundles until `trimtab release`."""
    excluded: list[str]
    """Bundles and namespaces that persons keep where they are, until `trimtab include`."""
    plan: str
    """The plan that is being applied: its hash, step and wave; "": none."""
    proposed: ProposedDecisionAnswer | None = None
    """Mode approve: the decision that waits for approval."""
    unknown: str
    """Why the controls cannot be read; "": they can."""
    maintenance: str
    """Why maintenance windows forbid commands now; "": they allow them."""
    breaker: BreakerAnswer
    unconfirmed: dict[str, list[str]]
    """Broker -> bundles that were moved to it and that it should list by now: it gets nothing, and counts as a broker
    without data."""
    unlisted: dict[str, int]
    """Broker -> how many bundles were moved to it and not listed by it so far, for whatever reason."""
    fatal: dict[str, int] = Field(default_factory=dict)
    """Bundle -> how many of its owners died one after another; it is not moved."""
    brokers_balance: str
    """Why no commands are issued in mode active: brokers balance by themselves, or that is unknown; "": neither."""
    came: dict[str, int]
    """Broker -> the interval in which it joined, epoch ms."""
    went: dict[str, int]
    budgets: list[BudgetAnswer]


class ProblemAnswer(JsonAnswer):
    """Something that a person should look at."""

    code: str
    """Never changes its meaning: no-leader, nobody-executes, no-collector, versions-differ ..."""
    title: str
    detail: str


class ProcessAnswer(JsonAnswer):
    """A process that runs, as it describes itself in the election's registry."""

    role: str
    """controller, collector or executor."""
    host: str
    process: int
    """Its process id on that host."""
    version: str
    commit: str
    """Empty where it is not known."""
    started_at: int
    """By the clock of its host, epoch ms."""
    seen_at: int
    """Its last sign of life: when its main loop last made progress, epoch ms."""
    ready: bool
    """What /readyz answers."""
    state: str
    """What it does, or why it is not ready."""
    leads: bool
    """A controller: whether it decides.  A collector: whether it ends the intervals."""
    brokers: int | None
    """A collector: how many brokers it sweeps."""
    group: str
    """An executor: the consumer group, or the subscription, in which it shares the commands."""
    commands: str
    """An executor: the command topic, or folder."""
    partitions: int | None
    """An executor: how many partitions of the commands it has."""


class ProcessesAnswer(JsonAnswer):
    """The processes in the election's registry."""

    running: list[ProcessAnswer]
    """Controllers, collectors, executors; of each role the one that leads first.  A process that may not write to the
    registry is missing."""
    unusable: dict[str, str]
    """Entries that cannot be used, and why."""
    left_out: int
    """Entries beyond those that were read."""
    unknown: str
    """Why the registry cannot be read; "": it can."""


class StatusAnswer(JsonAnswer):
    """``trimtab status --json``."""

    cluster: str
    problems: list[ProblemAnswer]
    """What needs attention, most urgent first; empty: no problems."""
    epoch: int
    """The number of the newest leadership; 0 before the first."""
    leader: LeaderAnswer | None
    """null: no controller leads, or leader_unknown says why nobody knows."""
    leader_unknown: str
    ticked: int | None
    """The newest interval that has ended, epoch ms."""
    last: LastDecisionAnswer | None
    """null: nothing has been decided yet."""
    """Then guardrails and in_flight do not know what the controller remembers."""
    in_flight: dict[str, InFlightAnswer]
    """By the id of the command."""
    commands: list[CommandAnswer]
    """Those of the last intervals, the newest first."""
    judged: int | None
    """The interval that the reasons are of, epoch ms."""
    reasons: dict[str, int]
    """How often each reason was given in that interval."""
    unreadable_policies: list[str]
    """Why isolation policies could not be read in that interval, of the first ones."""
    imbalance: ImbalanceAnswer | None
    silent: dict[str, str]
    """Brokers, or "all", that did not answer, and why."""
    guardrails: GuardrailsAnswer
    processes: ProcessesAnswer


class BundleAnswer(JsonAnswer):
    """``trimtab status BUNDLE --json``."""

    bundle: str
    exists: bool | None = None
    """Whether the namespace has this bundle now; not given without a section [pulsar]."""
    owner: str | None = None
    """null: no broker has it.  Not given without a section [pulsar]."""
    load: dict[str, float] = Field(default_factory=dict)
    """msg/s, bytes/s and topics, under Pulsar's names; empty where no broker has it."""
    last_command: CommandAnswer | None
    judged: int | None
    """The interval that the verdicts are of, epoch ms."""
    verdicts: list[VerdictAnswer]
    """About the bundle, its owner, and the cluster."""


class SegmentAnswer(JsonAnswer):
    """An active segment of a scalable topic."""

    number: Annotated[int, Shown(heading="segment")]
    keys: str
    """The first and the last hash of its keys, in hexadecimal."""
    owner: str
    """"": no broker says that it serves it."""
    msg_rate_in: Annotated[Number, Shown(heading="msg/s in", form=".4g")]
    msg_rate_out: Annotated[Number, Shown(heading="msg/s out", form=".4g")]
    msg_throughput_in: Annotated[Number, Shown(heading="bytes/s in", form=".4g")]
    msg_throughput_out: Annotated[Number, Shown(heading="bytes/s out", form=".4g")]


class TopicBrokerAnswer(JsonAnswer):
    """A broker that serves segments of a scalable topic."""

    broker: str
    segments: int
    throughput: Annotated[Number, Shown(heading="bytes/s", form=".4g")]
    """Bytes/s of these segments, in and out."""


class TopicAnswer(JsonAnswer):
    """``trimtab status TOPIC --json``: a scalable topic of Pulsar 5.0 as the brokers have it now."""

    topic: str
    exists: bool
    segments: int
    """How many are active."""
    sealed: int
    """Segments that were split or merged and take no more messages."""
    unowned: int
    """Active segments that no broker says it serves."""
    unreadable: int
    """Active segments whose entry cannot be read."""
    active_brokers: int
    may_serve: int
    """How many of them may serve the topic, by isolation policies."""
    unevenness: Number | None
    """Bytes/s of the broker with most of the topic, over the mean of all that may serve it; null without traffic."""
    brokers: list[TopicBrokerAnswer]
    """Those with the most traffic of it, at most 1,000."""
    busiest: list[SegmentAnswer]
    """The segments with the most traffic, at most 1,000, in the order of their keys."""


class LookupAnswer(JsonAnswer):
    """``trimtab lookup --json``; load and what follows it are given with --live alone."""

    topic: str
    namespace: str
    hash: int
    """The topic's position on the ring."""
    position: str
    """The same in hexadecimal."""
    bundle: str
    bundles: int
    """How many the namespace has."""
    scalable_topic: str | None = None
    """Given of a scalable topic and of its segments, each of which lies in a bundle of its own."""
    segment: int | None = None
    """The segment's number."""
    key_hashes: str | None = None
    """The first and the last hash of its keys."""
    owner: str | None = None
    """null: nobody.  Not given where neither a log nor the brokers were asked."""
    as_of: int | None = None
    """When the log said so, epoch ms."""
    exists: bool | None = None
    load: dict[str, float] = Field(default_factory=dict)
    last_command: CommandAnswer | None = None
    judged: int | None = None
    verdicts: tuple[VerdictAnswer, ...] = ()


class ControlsAnswer(JsonAnswer):
    """The controls in force from now on: pause, resume, mode, release, stop-all and accept-loss with --json."""

    cluster: str
    paused: bool | None = None
    """Whether a pause is in force."""
    ended: list[PauseAnswer] | None = None
    """The pauses that resume ended."""
    pauses: list[PauseAnswer] | None = None
    """The pauses still in force after a resume."""
    mode: str | None = None
    epoch: int | None = None
    """The epoch that stop-all started; executors refuse older commands that they have not started."""
    drained: list[str] | None = None
    """Brokers that get no bundles until they are released."""
    excluded: list[str] | None = None
    """Bundles and namespaces that persons excluded."""
    proposal: str | None = None
    """The proposal that waits for approval, where the change needs one; or that was in force at once."""


class CollectAnswer(JsonAnswer):
    """``trimtab collect --dry-run``."""

    interval: int
    """T, epoch ms."""
    pulsar_leader: str
    """The broker that leads Pulsar's own load manager."""
    brokers: dict[str, dict[str, Any]]
    """Broker -> number of chunks and header of its sweep, as in broker_sweep.json, and what broker_state.json says."""
    missing: dict[str, str]
    """Brokers that could not be swept, and why."""
    records: int
    bytes: int
    namespaces: dict[str, dict[str, Any]]
    stored_bundle_data: int
    """Records with stored averages."""


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.collect": CollectAnswer,
    "answer.control_change": ControlChangeAnswer,
    "answer.controls": ControlsAnswer,
    "answer.lookup": LookupAnswer,
    "answer.status": StatusAnswer,
    "answer.status_bundle": BundleAnswer,
    "answer.status_topic": TopicAnswer,
}
