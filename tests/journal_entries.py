"""Entries of the journal for the tests of whoever writes or reads one."""

from dataclasses import replace

from controller.model.controls import Controls
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.journal import JournalEntry
from controller.model.memory import Breaker, Failed, InFlight, Issued, Memory, Roster
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.journal import EpochEntry
from controller.wire.journal_records import EntryReader
from tests.records import CLUSTER, LEFT, RIGHT, T

WHY = Verdict(
    subject="broker-1:8080",
    reason=Reason.OVERLOADED,
    observed=0.9,
    limit=0.6,
    unit="usage",
    by="ThresholdShedder",
)
UNLOAD = Command(
    id="0c5c2b9e-0000-5000-8000-000000000001",
    action="unload",
    cluster=CLUSTER,
    bundle=LEFT,
    interval=T,
    expires_at_ms=T + 300_000,
    mode="active",
    source="broker-1:8080",
    why=WHY,
    destination="broker-2:8080",
)
SPLIT = replace(
    UNLOAD,
    id="0c5c2b9e-0000-5000-8000-000000000002",
    action="split",
    bundle=RIGHT,
    destination="",
    algorithm="range_equally_divide",
    boundaries=(0xC0000000,),
    unload_after_split=True,
    why=replace(WHY, reason=Reason.TOPICS, subject=RIGHT, detail="1200 topics"),
)


def parse_entry(value: bytes) -> JournalEntry | EpochEntry:
    """The entry that the one record *value* holds, with its whole memory, or WireError."""
    read = EntryReader(None).read(value)
    assert read is not None
    return read if isinstance(read, EpochEntry) else read.entry


def entry(interval: int = T, *commands: Command, **memory: object) -> JournalEntry:
    """The entry of *interval*: *commands*, and a memory with something in every place."""
    flight = InFlight(
        action="unload",
        bundle=LEFT,
        source="broker-1:8080",
        destination="",
        interval=interval,
        expires_at_ms=interval + 300_000,
    )
    remembered = {
        "seed": 3,
        "last_interval": interval,
        "samples": 2,
        "shedder": UsageHistory(usage={"broker-2:8080": 0.1, "broker-1:8080": 1 / 3}),
        "recently_unloaded": {RIGHT: interval, LEFT: interval - 60_000},
        "in_flight": {"c-2": flight, "c-1": flight},
        "failed": {RIGHT: Failed(times=2, interval=interval), LEFT: Failed(times=1, interval=interval - 60_000)},
        "issued": {
            "c-1": Issued(
                action="unload",
                namespace="acme/orders",
                source="broker-1:8080",
                destination="broker-2:8080",
                connections=12,
                interval=interval,
            )
        },
        "failures": {"c-0": interval - 60_000},
        "breaker": Breaker(in_a_row=3, tripped_at=interval, why="3 commands failed in a row", resumed_ms=7),
        "roster": Roster(brokers=("broker-1:8080", "broker-2:8080"), came={"broker-2:8080": interval}),
        **memory,
    }
    return JournalEntry(
        cluster=CLUSTER,
        decision=Decision(interval=interval, commands=commands, summary=f"{len(commands)} commands"),
        memory=Memory(**remembered),  # type: ignore[arg-type]
        controls=Controls(
            mode="active", stale=True, reason="upgrade", by="ada", since_ms=5, resumed_ms=6, maintenance="not now"
        ),
    )
