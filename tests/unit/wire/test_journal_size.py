"""How much a journal of 1,000 brokers comes to: by the bytes of its entries, for a year of minutes."""

from dataclasses import replace
from random import Random

from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.journal import JournalEntry
from controller.model.memory import InFlight, Memory
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.journal import encode_entry
from controller.wire.journal_records import EntryWriter
from tests.journal_entries import UNLOAD

_START, _MINUTE, _A_YEAR, _A_MONTH = 1_735_689_600_000, 60_000, 525_600, 43_200
_BROKERS = [f"pulsar-broker-{number}.pulsar.svc.cluster.local:8080" for number in range(1_000)]
_INTERVALS, _COMMANDS = 12, 10


def entries() -> list[JournalEntry]:
    """Every broker's load is another in every interval, and ten bundles are moved."""
    rng, usage, recent, found = Random(1), dict.fromkeys(_BROKERS, 0.5), dict[str, int](), []
    for number in range(_INTERVALS):
        interval = _START + number * _MINUTE
        commands = [command(rng, interval, turn) for turn in range(_COMMANDS)]
        usage = {name: 0.9 * value + 0.1 * rng.random() for name, value in usage.items()}
        recent = recent | {each.bundle: interval for each in commands}
        memory = Memory(
            last_interval=interval,
            samples=number,
            shedder=UsageHistory(usage=usage),
            recently_unloaded=recent,
            in_flight={each.id: flight(each) for each in commands},
        )
        decision = Decision(interval=interval, commands=tuple(commands), summary="100000 bundles on 1000 brokers")
        controls = Controls(mode="active")
        found.append(JournalEntry(cluster="east", decision=decision, memory=memory, controls=controls))
    return found


def command(rng: Random, interval: int, turn: int) -> Command:
    lower = rng.randrange(1 << 31)
    return replace(
        UNLOAD,
        id=f"{interval:08x}-0000-5000-8000-{turn:012d}",
        bundle=f"tenant-{turn}/namespace-{rng.randrange(500)}/0x{lower:08x}_0x{lower + 65_536:08x}",
        interval=interval,
        source=rng.choice(_BROKERS),
        destination=rng.choice(_BROKERS),
    )


def flight(command: Command) -> InFlight:
    return InFlight(
        action=command.action,
        bundle=command.bundle,
        source=command.source,
        destination=command.destination,
        interval=command.interval,
        expires_at_ms=command.expires_at_ms,
    )


def test_a_year_of_1000_brokers_is_a_third_of_what_it_was_and_a_month_is_kept_in_less_than_2_gb() -> None:
    writer, sizes, before = EntryWriter(whole_every_ms=3_600_000, base=None), list[int](), list[int]()
    for entry in entries():
        encoded = writer.encode(entry)
        writer.wrote(encoded)
        sizes.append(len(encoded.value))
        before.append(len(encode_entry(entry)))
    whole, deltas = sizes[0], sizes[1:]
    assert before[0] == whole
    an_interval = (whole + 59 * sum(deltas) / len(deltas)) / 60
    before_an_interval = sum(before) / len(before)
    assert before_an_interval * _A_YEAR > 37e9
    assert an_interval < before_an_interval * 0.4
    assert an_interval * _A_MONTH < 2e9
