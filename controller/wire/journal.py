"""Journal entries: a decision with the memory and the controls it was made with, or a new epoch.

No wall clock and no epoch lie in a decision's entry, mappings are written in the order of their keys, and
floats come back as they were: the same decision has the same bytes, whoever journals it.
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from controller.cycle.stored_memory import UnreadableMemoryError, read_stored, stored
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.model.memory import BrokerDeaths, Memory
from controller.model.proposed import ProposedDecision
from controller.model.pulsar_version import PulsarVersion, VersionInUse, VersionSource
from controller.model.strategy_memory import NoMemory, StrategyMemory
from controller.wire.base import (
    Count,
    Envelope,
    Millis,
    Number,
    Record,
    bad_value,
    encode,
    is_empty,
)
from controller.wire.commands import CommandData, command_data, to_command
from controller.wire.controls import DecisionApprovalRecord, DecisionRejectionRecord, OrdersRecord, PauseRecord
from controller.wire.conversion import from_record, to_record
from controller.wire.proposals import GrantRecord

V = TypeVar("V")

#: A mapping that is written in the order of its keys.
ByKey: TypeAlias = Annotated[dict[str, V], AfterValidator(lambda values: dict(sorted(values.items())))]


def _read_memory(value: Any) -> StrategyMemory:
    """The memory that JSON, *value*, holds; of another strategy than trimtab's as it is stored."""
    if isinstance(value, StrategyMemory):
        return value
    try:
        return read_stored(value)
    except UnreadableMemoryError as error:
        raise bad_value(str(error)) from error


#: A strategy's memory, of whatever kind.
StrategyMemoryField: TypeAlias = Annotated[
    StrategyMemory,
    PlainValidator(_read_memory),
    PlainSerializer(stored, return_type=dict[str, Any]),
    WithJsonSchema(
        {
            "description": "What a strategy remembers: its kind, and the fields of the class of that kind.",
            "type": "object",
            "properties": {"kind": {"type": "string"}},
            "required": ["kind"],
        }
    ),
]


class InFlightRecord(Record):
    """A command whose result had not come back."""

    action: str
    bundle: str
    source: str
    destination: str
    interval: Millis
    expires_at_ms: Millis
    #: Older entries have none.
    dry_run: bool = False
    idle: Annotated[bool, Field(exclude_if=is_empty)] = False


class IssuedRecord(Record):
    """A command that counts against the budgets of the rolling window."""

    action: str
    namespace: str
    source: str
    destination: str
    connections: Count
    interval: Millis
    at_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    """When it was issued; left out where that was at its interval, and by earlier releases."""
    dry_run: Annotated[bool, Field(exclude_if=lambda value: not value)] = False


class BreakerRecord(Record):
    """The breaker: what it counted, and whether it tripped."""

    in_a_row: Count = 0
    tripped_at: Millis | None = None
    why: str = ""
    resumed_ms: Millis = 0


class RosterRecord(Record):
    """The active brokers, and those that came or went a short while ago."""

    brokers: tuple[str, ...] = ()
    came: ByKey[Millis] = Field(default_factory=dict)
    went: ByKey[Millis] = Field(default_factory=dict)


class BalancingRecord(Record):
    """What is known of the brokers' own balancing."""

    why: str = ""
    on: Count = 0
    unknown: ByKey[Millis] = Field(default_factory=dict)


def _pulsar_version(value: Any) -> PulsarVersion:
    version = PulsarVersion.parse(value) if isinstance(value, str) else value
    if not isinstance(version, PulsarVersion):
        raise ValueError(f"{value!r:.40} is no version of Pulsar")
    return version


class VersionRecord(Record):
    """The version of Pulsar that the interval was decided by."""

    version: Annotated[
        PulsarVersion, PlainValidator(_pulsar_version), PlainSerializer(str), WithJsonSchema({"type": "string"})
    ]
    source: VersionSource
    """Who said so: the settings, Pulsar's own leader, all brokers alike, the oldest of several, the last interval in
    which it was known; or nobody."""
    leader: Annotated[str, Field(exclude_if=lambda value: not value)] = ""
    """Pulsar's own leader, if that is the source."""


class FailedRecord(Record):
    """Commands about a bundle that failed one after the other."""

    times: Count
    interval: Millis
    dry_run: Annotated[bool, Field(exclude_if=lambda value: not value)] = False


class UnlistedBundleRecord(Record):
    """A bundle that was moved to a broker and that the broker had not listed."""

    answered: Millis
    sweeps: Count = 0
    idle: bool = False
    verified: bool = False
    lapsed: bool = False


class DestinationRecord(Record):
    """What became of the bundles that were moved to a broker."""

    listed: Count = 0
    unlisted: ByKey[UnlistedBundleRecord] = Field(default_factory=dict)
    failed: Count = 0
    rests_until: Millis = 0
    resumed_ms: Millis = 0


class FatalBundleRecord(Record):
    """A bundle whose owners died one after the other."""

    at: Millis
    deaths: Count
    brokers: tuple[str, ...] = ()


class BrokerDeathsRecord(Record):
    """Who owned each bundle, in columns, and which brokers died last."""

    bundles: str
    hashes: str
    owners: str
    deaths: str
    chances: str
    brokers: tuple[str, ...]
    alive: tuple[str, ...]
    died: tuple[str, ...]
    choices: Count
    died_at: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    fatal: Annotated[ByKey[FatalBundleRecord], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    resumed_ms: Millis = 0


_NO_BALANCING: Final = BalancingRecord()
_NO_DEATHS: Final = to_record(BrokerDeathsRecord, BrokerDeaths())


@dataclass(frozen=True)
class _Or:
    """Read null as *nothing*: schemas of earlier releases allow it.

    Not a BeforeValidator: behind one a strict model refuses the arrays of JSON, as if they were lists of Python.
    """

    nothing: Record

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """What there is, or null, and then *nothing* in its place."""
        nullable = core_schema.nullable_schema(handler(source))
        return core_schema.no_info_after_validator_function(self._of, nullable)

    def _of(self, value: Record | None) -> Record:
        return self.nothing if value is None else value


class PredictedBrokerRecord(Record):
    """Usage of a broker that a decision touches, as a share of what it can carry."""

    before: Number
    after: Number


class ProposedDecisionRecord(Record):
    """A decision that waited for approval in mode approve."""

    cluster: str
    interval: Millis
    """T in which it was decided."""
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """What an approval is for.  For those who look: the controller computes it itself."""
    expires_at_ms: Millis
    commands: tuple[CommandData, ...]
    connections: Count = 0
    """Producers and consumers that have to reconnect."""
    limit: Number | None = None
    """Usage above which the shedder takes bundles from a broker, as a share; null: it has no such limit."""
    usage: ByKey[PredictedBrokerRecord] = Field(default_factory=dict)
    """Brokers that it touches: as they were, and as predicted."""
    brokers: str
    """A digest of the active brokers."""


class MemoryRecord(Record):
    """The controller's memory after the decision."""

    seed: int
    last_interval: Millis | None
    decided_at_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    """When that interval was decided; left out as in a command that was issued."""
    samples: Count
    shedder: StrategyMemoryField
    placement: StrategyMemoryField
    split: StrategyMemoryField
    #: Older entries have none.
    membership: StrategyMemoryField = NoMemory()
    recently_unloaded: ByKey[Millis]
    dry_run_unloaded: Annotated[ByKey[Millis], Field(exclude_if=lambda value: not value)] = Field(default_factory=dict)
    in_flight: ByKey[InFlightRecord]
    #: Older entries have none.
    failed: ByKey[FailedRecord] = Field(default_factory=dict)
    #: Older entries have none of what follows.
    issued: ByKey[IssuedRecord] = Field(default_factory=dict)
    failures: ByKey[Millis] = Field(default_factory=dict)
    breaker: BreakerRecord = BreakerRecord()
    roster: RosterRecord = RosterRecord()
    destinations: Annotated[ByKey[DestinationRecord], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    balancing: Annotated[BalancingRecord, _Or(_NO_BALANCING), Field(exclude_if=_NO_BALANCING.__eq__)] = _NO_BALANCING
    deaths: Annotated[BrokerDeathsRecord, _Or(_NO_DEATHS), Field(exclude_if=_NO_DEATHS.__eq__)] = _NO_DEATHS
    proposed: Annotated[ProposedDecisionRecord | None, Field(exclude_if=is_empty)] = None
    """Mode approve: the decision that waits for approval."""
    rejected: Annotated[ByKey[Millis], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    """Mode approve: bundles of decisions that somebody rejected, and when these would have expired."""


class ControlsRecord(Record):
    """What the operator's controls and the age of the data allowed."""

    mode: str
    paused: bool
    stale: bool
    #: Older entries have none of what follows.
    reason: str = ""
    by: str = ""
    since_ms: Millis = 0
    pauses: Annotated[tuple[PauseRecord, ...], Field(exclude_if=is_empty)] = ()
    mode_since_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    drained_since_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    resumed_ms: Millis = 0
    maintenance: str = ""
    unknown: str = ""
    decided_at_ms: Annotated[Millis, Field(exclude_if=lambda value: value == 0)] = 0
    """When the interval was decided, wall clock; left out where that was in its own time, and by earlier releases."""
    drained: Annotated[tuple[str, ...], Field(exclude_if=is_empty)] = ()
    excluded: Annotated[tuple[str, ...], Field(exclude_if=is_empty)] = ()
    """Bundles and namespaces that a person keeps where they are; left out without any, and by earlier releases."""
    orders: Annotated[OrdersRecord | None, Field(exclude_if=is_empty)] = None
    approved: Annotated[tuple[DecisionApprovalRecord, ...], Field(exclude_if=is_empty)] = ()
    rejected: Annotated[tuple[DecisionRejectionRecord, ...], Field(exclude_if=is_empty)] = ()
    not_approved: Annotated[tuple[str, ...], Field(exclude_if=is_empty)] = ()
    """What was not obeyed since the policy demands approvals; left out where all was."""
    granted: Annotated[tuple[GrantRecord, ...], Field(exclude_if=is_empty)] = ()
    """Under a policy, the newest change of each action that is in force."""


class DecisionEntry(Envelope):
    """One decided interval, with the whole memory behind it."""

    type: Literal["decision"] = "decision"
    interval: Millis
    summary: str
    commands: tuple[CommandData, ...]
    memory: MemoryRecord
    controls: ControlsRecord
    pulsar: Annotated[VersionRecord | None, Field(exclude_if=is_empty)] = None
    """Left out where nothing depends on it, and by earlier releases."""


class DeltaEntry(Envelope):
    """One decided interval, with what it changed in the memory."""

    type: Literal["decision_delta"] = "decision_delta"
    interval: Millis
    summary: str
    commands: tuple[CommandData, ...]
    base: Millis
    """The interval of the entry before, whose memory the changes are made to."""
    changes: dict[str, Any]
    """What makes this entry's memory of the base's."""
    controls: ControlsRecord
    pulsar: Annotated[VersionRecord | None, Field(exclude_if=is_empty)] = None
    """As in a decision."""


class EpochEntry(Envelope):
    """A leadership begins."""

    type: Literal["epoch"] = "epoch"
    epoch: Count


MODELS: Final[dict[str, type[Any]]] = {"decision": DecisionEntry, "epoch": EpochEntry}


def encode_entry(entry: JournalEntry) -> bytes:
    """*entry* as it lies in the journal."""
    decision = entry.decision
    return encode(
        DecisionEntry(
            cluster=entry.cluster,
            interval=decision.interval,
            summary=decision.summary,
            commands=tuple(map(command_data, decision.commands)),
            memory=memory_record(entry.memory),
            controls=to_record(ControlsRecord, entry.controls),
            pulsar=None if decision.pulsar is None else to_record(VersionRecord, decision.pulsar),
        )
    )


def memory_record(memory: Memory) -> MemoryRecord:
    """The record of *memory*."""
    waiting = proposed_record(memory.proposed)
    return to_record(MemoryRecord, replace(memory, proposed=None)).model_copy(update={"proposed": waiting})


def proposed_record(decision: ProposedDecision | None) -> ProposedDecisionRecord | None:
    """The record of *decision*, if there is one."""
    if decision is None:
        return None
    values = {each.name: getattr(decision, each.name) for each in fields(decision)}
    commands = tuple(map(command_data, decision.commands))
    return to_record(ProposedDecisionRecord, {**values, "hash": decision.hash, "commands": commands})


def to_proposed(record: ProposedDecisionRecord | None) -> ProposedDecision | None:
    """The decision that *record* says, if there is one; its hash is not taken from the record."""
    if record is None:
        return None
    return from_record(ProposedDecision, record, commands=tuple(map(to_command, record.commands)))


def encode_epoch(cluster: str, epoch: int) -> bytes:
    """The entry that begins leadership *epoch*."""
    return encode(EpochEntry(cluster=cluster, epoch=epoch))


def to_decision(record: DecisionEntry | DeltaEntry) -> Decision:
    """The decision that *record* says."""
    return Decision(
        interval=record.interval,
        commands=tuple(map(to_command, record.commands)),
        summary=record.summary,
        pulsar=_version_in(record),
    )


def to_entry(record: DecisionEntry) -> JournalEntry:
    """The entry that *record* says."""
    return JournalEntry(
        cluster=record.cluster,
        decision=to_decision(record),
        memory=from_record(
            Memory, record.memory, proposed=to_proposed(record.memory.proposed), pulsar=_version_in(record)
        ),
        controls=to_controls(record.controls),
    )


def _version_in(record: DecisionEntry | DeltaEntry) -> VersionInUse | None:
    return None if record.pulsar is None else from_record(VersionInUse, record.pulsar)


def to_controls(record: ControlsRecord) -> Controls:
    """The controls that *record* says."""
    return from_record(Controls, record)
