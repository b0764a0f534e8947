"""Small intervals for audits, made by hand: brokers with a CPU usage, bundles with an owner and messages."""

from collections.abc import Mapping, Sequence

import numpy as np

from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.states import States
from controller.audit.auditor import AuditStep, MoveAuditor
from controller.model.decision import Command, CommandMode, Decision, Reason, Verdict
from controller.model.memory import InFlight, Memory
from controller.model.records import BrokerState, CommandResult, NamespaceState
from controller.model.resource_usage import ResourceWeights

MINUTE = 60_000
HOUR = 60 * MINUTE
#: An hour begins.
T = 1_735_689_600_000
SPACE = "acme/orders"
LEFT, RIGHT = f"{SPACE}/0x00000000_0x80000000", f"{SPACE}/0x80000000_0xffffffff"


def at(minute: int) -> int:
    return T + minute * MINUTE


def interval(
    minute: int,
    usage: Mapping[str, float | None],
    bundles: Mapping[str, tuple[str, float]],
    results: Mapping[str, str] | None = None,
    *,
    gone: Sequence[str] = (),
) -> Snapshot:
    """The load of the interval *minute*: broker -> CPU usage in percent (None: no data), bundle -> owner and msg/s.

    Each msg/s is 100 bytes/s.  A bundle has one producer for 10 msg/s, and 2 consumers.  Of *gone* brokers nothing is
    there.
    """
    roster = tuple(sorted(name for name in usage if name not in gone))
    names = sorted(name for name, (owner, _) in bundles.items() if owner in roster)
    rate = np.array([bundles[name][1] for name in names], np.float64)
    load = np.stack([rate / 2, rate / 2, 50 * rate, 50 * rate], axis=1).reshape(len(names), 4)
    rows = [
        BrokerRow(broker=name, last_update=at(minute), numbers=_numbers(percent))
        for name in roster
        if (percent := usage[name]) is not None
    ]
    zeros, n = np.zeros(0, np.int64), len(names)
    return Snapshot(
        interval=at(minute),
        shard=0,
        shards=1,
        roster=roster,
        unswept=(),
        brokers=tuple(rows),
        namespaces=States[NamespaceState].of(()),
        broker_states=States[BrokerState].of(()),
        results=tuple(CommandResult(id=key, status=status) for key, status in (results or {}).items()),
        late=0,
        unrostered=0,
        dropped=0,
        names=names,
        owner=np.array([roster.index(bundles[name][0]) for name in names], np.int64),
        load=load,
        short_samples=np.ones(n, np.int64),
        short_term=load,
        long_samples=np.ones(n, np.int64),
        long_term=load,
        kinds=np.ones(n, np.uint8),
        topics=np.ones(n, np.int64),
        producers=(rate // 10).astype(np.int64),
        consumers=np.full(n, 2, np.int64),
        detail_size=np.zeros(n, np.int64),
        detail_position=zeros,
        detail_load=np.zeros((0, 4)),
        detail_segment=np.zeros(0, np.int64),
    )


def _numbers(cpu: float) -> tuple[float, ...]:
    """Only CPU is used; every limit is 100."""
    resources = [number for usage in (cpu, 0, 0, 0, 0) for number in (float(usage), 100.0)]
    return (*resources, *[0.0] * 7)


def move(
    minute: int,
    bundle: str,
    source: str,
    destination: str,
    *,
    by: str = "ThresholdShedder",
    mode: CommandMode = "active",
) -> Command:
    return Command(
        id=f"{minute} {bundle}",
        action="unload",
        cluster="demo",
        bundle=bundle,
        interval=at(minute),
        expires_at_ms=at(minute + 5),
        mode=mode,
        source=source,
        destination=destination,
        why=Verdict(subject=source, reason=Reason.OVERLOADED, by=by),
    )


def decided(minute: int, *commands: Command) -> Decision:
    return Decision(interval=at(minute), commands=commands, summary="")


def remembering(*commands: Command) -> Memory:
    """A memory after *commands*, of which none has a result."""
    flights = {
        each.id: InFlight(
            action=each.action,
            bundle=each.bundle,
            source=each.source,
            destination=each.destination,
            interval=each.interval,
            expires_at_ms=each.expires_at_ms,
            dry_run=each.mode == "dry_run",
        )
        for each in commands
    }
    return Memory(in_flight=flights)


def auditor() -> MoveAuditor:
    return MoveAuditor(period_ms=MINUTE, weights=ResourceWeights())


def step_through(
    audits: MoveAuditor, intervals: Sequence[Snapshot], decisions: Mapping[int, Decision] | None = None
) -> list[AuditStep]:
    """*decisions*: minute -> what was decided."""
    by_interval = {at(minute): decision for minute, decision in (decisions or {}).items()}
    return [audits.take([each], by_interval.get(each.interval)) for each in intervals]
