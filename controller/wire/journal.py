"""Journal entries: a decision with the memory and the controls it was made with, or a new epoch.

No wall clock and no epoch lie in a decision's entry, mappings are written in the order of their keys, and
floats come back as they were: the same decision has the same bytes, whoever journals it.
"""

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from controller.cycle.stored_memory import UnreadableMemoryError, read_stored, stored
from controller.model.controls import Controls, Pause
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.model.memory import (
    Breaker,
    BrokerDeaths,
    Destination,
    Failed,
    FatalBundle,
    InFlight,
    Issued,
    Memory,
    OwnBalancing,
    Roster,
    UnlistedBundle,
)
from controller.model.pulsar_version import PulsarVersion, VersionInUse, VersionSource
from controller.model.strategy_memory import NoMemory, StrategyMemory
from controller.wire.base import (
    Count,
    Envelope,
    Millis,
    Record,
    bad_value,
    encode,
    is_empty,
)
from controller.wire.commands import CommandData, command_data, to_command
from controller.wire.controls import OrdersRecord, PauseRecord, orders_record, to_orders

V = TypeVar("V")


def _fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass; not as ``asdict``, which copies all that is in them."""
    return {each.name: getattr(thing, each.name) for each in dataclass_fields(thing)}


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
    came: dict[str, Millis] = Field(default_factory=dict)
    went: dict[str, Millis] = Field(default_factory=dict)


class BalancingRecord(Record):
    """What is known of the brokers' own balancing."""

    why: str = ""
    on: Count = 0
    unknown: dict[str, Millis] = Field(default_factory=dict)


def _pulsar_version(text: str) -> str:
    if PulsarVersion.parse(text) is None:
        raise ValueError(f"{text!r:.40} is no version of Pulsar")
    return text


class VersionRecord(Record):
    """The version of Pulsar that the interval was decided by."""

    version: Annotated[str, AfterValidator(_pulsar_version)]
    source: VersionSource
    """Who said so: the settings, Pulsar's own leader, all brokers alike, the oldest of several, the last interval in
    which it was known; or nobody."""
    leader: Annotated[str, Field(exclude_if=lambda value: not value)] = ""
    """Pulsar's own leader, where it said so."""


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
    unlisted: dict[str, UnlistedBundleRecord] = Field(default_factory=dict)
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
    fatal: Annotated[dict[str, FatalBundleRecord], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    resumed_ms: Millis = 0


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
    recently_unloaded: dict[str, Millis]
    dry_run_unloaded: Annotated[dict[str, Millis], Field(exclude_if=lambda value: not value)] = Field(
        default_factory=dict
    )
    in_flight: dict[str, InFlightRecord]
    #: Older entries have none.
    failed: dict[str, FailedRecord] = Field(default_factory=dict)
    #: Older entries have none of what follows.
    issued: dict[str, IssuedRecord] = Field(default_factory=dict)
    failures: dict[str, Millis] = Field(default_factory=dict)
    breaker: BreakerRecord = BreakerRecord()
    roster: RosterRecord = RosterRecord()
    destinations: Annotated[dict[str, DestinationRecord], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    balancing: Annotated[BalancingRecord | None, Field(exclude_if=is_empty)] = None
    deaths: Annotated[BrokerDeathsRecord | None, Field(exclude_if=is_empty)] = None


class ControlsRecord(Record):
    """What the operator and the age of the data allowed."""

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
    orders: Annotated[OrdersRecord | None, Field(exclude_if=is_empty)] = None


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
    decision, memory = entry.decision, entry.memory
    return encode(
        DecisionEntry(
            cluster=entry.cluster,
            interval=decision.interval,
            summary=decision.summary,
            commands=tuple(map(command_data, decision.commands)),
            memory=MemoryRecord(
                seed=memory.seed,
                last_interval=memory.last_interval,
                decided_at_ms=memory.decided_at_ms,
                samples=memory.samples,
                shedder=memory.shedder,
                placement=memory.placement,
                split=memory.split,
                membership=memory.membership,
                recently_unloaded=_by_key(memory.recently_unloaded),
                dry_run_unloaded=_by_key(memory.dry_run_unloaded),
                in_flight={key: InFlightRecord(**_fields(flight)) for key, flight in _by_key(memory.in_flight).items()},
                failed={bundle: FailedRecord(**_fields(each)) for bundle, each in _by_key(memory.failed).items()},
                issued={key: IssuedRecord(**_fields(each)) for key, each in _by_key(memory.issued).items()},
                failures=_by_key(memory.failures),
                breaker=BreakerRecord(**_fields(memory.breaker)),
                roster=RosterRecord(
                    brokers=memory.roster.brokers,
                    came=_by_key(memory.roster.came),
                    went=_by_key(memory.roster.went),
                ),
                destinations={
                    broker: _destination_record(each) for broker, each in _by_key(memory.destinations).items()
                },
                balancing=_balancing_record(memory.balancing),
                deaths=_deaths_record(memory.deaths),
            ),
            controls=controls_record(entry.controls),
            pulsar=_version_record(decision.pulsar),
        )
    )


def encode_epoch(cluster: str, epoch: int) -> bytes:
    """The entry that begins leadership *epoch*."""
    return encode(EpochEntry(cluster=cluster, epoch=epoch))


def to_decision(record: DecisionEntry | DeltaEntry) -> Decision:
    """The decision that *record* says."""
    return Decision(
        interval=record.interval,
        commands=tuple(map(to_command, record.commands)),
        summary=record.summary,
        pulsar=_to_version(record.pulsar),
    )


def to_entry(record: DecisionEntry) -> JournalEntry:
    """The entry that *record* says."""
    memory = record.memory
    return JournalEntry(
        cluster=record.cluster,
        decision=to_decision(record),
        memory=Memory(
            seed=memory.seed,
            last_interval=memory.last_interval,
            decided_at_ms=memory.decided_at_ms,
            samples=memory.samples,
            shedder=memory.shedder,
            placement=memory.placement,
            split=memory.split,
            membership=memory.membership,
            recently_unloaded=memory.recently_unloaded,
            dry_run_unloaded=memory.dry_run_unloaded,
            in_flight={key: InFlight(**dict(flight)) for key, flight in memory.in_flight.items()},
            failed={bundle: Failed(**dict(each)) for bundle, each in memory.failed.items()},
            issued={key: Issued(**dict(each)) for key, each in memory.issued.items()},
            failures=memory.failures,
            breaker=Breaker(**dict(memory.breaker)),
            roster=Roster(**dict(memory.roster)),
            destinations={broker: _to_destination(each) for broker, each in memory.destinations.items()},
            balancing=OwnBalancing() if memory.balancing is None else OwnBalancing(**dict(memory.balancing)),
            deaths=_to_deaths(memory.deaths),
            pulsar=_to_version(record.pulsar),
        ),
        controls=to_controls(record.controls),
    )


def _destination_record(destination: Destination) -> DestinationRecord:
    unlisted = {bundle: UnlistedBundleRecord(**_fields(each)) for bundle, each in _by_key(destination.unlisted).items()}
    return DestinationRecord(**{**_fields(destination), "unlisted": unlisted})


def _to_destination(record: DestinationRecord) -> Destination:
    unlisted = {bundle: UnlistedBundle(**dict(each)) for bundle, each in record.unlisted.items()}
    return Destination(**{**dict(record), "unlisted": unlisted})


def _balancing_record(balancing: OwnBalancing) -> BalancingRecord | None:
    if balancing == OwnBalancing():
        return None
    return BalancingRecord(why=balancing.why, on=balancing.on, unknown=_by_key(balancing.unknown))


def _deaths_record(deaths: BrokerDeaths) -> BrokerDeathsRecord | None:
    if deaths == BrokerDeaths():
        return None
    fatal = {bundle: FatalBundleRecord(**_fields(each)) for bundle, each in _by_key(deaths.fatal).items()}
    return BrokerDeathsRecord(**{**_fields(deaths), "fatal": fatal})


def _to_deaths(record: BrokerDeathsRecord | None) -> BrokerDeaths:
    if record is None:
        return BrokerDeaths()
    fatal = {bundle: FatalBundle(**dict(each)) for bundle, each in record.fatal.items()}
    return BrokerDeaths(**{**dict(record), "fatal": fatal})


def _version_record(used: VersionInUse | None) -> VersionRecord | None:
    return None if used is None else VersionRecord(**{**_fields(used), "version": str(used.version)})


def _to_version(record: VersionRecord | None) -> VersionInUse | None:
    """The version that *record* says."""
    version = None if record is None else PulsarVersion.parse(record.version)
    if record is None or version is None:
        return None
    return VersionInUse(version=version, source=record.source, leader=record.leader)


def controls_record(controls: Controls) -> ControlsRecord:
    """The record of *controls*."""
    fields = {each.name: getattr(controls, each.name) for each in dataclass_fields(controls)}
    pauses = tuple(PauseRecord.model_construct(**_fields(each)) for each in controls.pauses)
    return ControlsRecord(**{**fields, "pauses": pauses, "orders": orders_record(controls.orders)})


def to_controls(record: ControlsRecord) -> Controls:
    """The controls that *record* says."""
    pauses = tuple(Pause(**dict(each)) for each in record.pauses)
    return Controls(**{**dict(record), "pauses": pauses, "orders": to_orders(record.orders)})


def _by_key(mapping: Mapping[str, V]) -> dict[str, V]:
    return dict(sorted(mapping.items()))
