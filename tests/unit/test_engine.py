"""The protocol of one interval: which port the engine asks, in which order, and what is left after a failure."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from controller.engine import Engine, decide_interval, take_over
from controller.model.controls import Controls
from controller.model.errors import (
    EntryTooLargeError,
    JournalError,
    JournalLostError,
    LeadershipLostError,
    StateError,
)
from controller.model.journal import DecidedInterval, JournalEntry, JournalHead
from controller.model.memory import Breaker, Memory
from tests.batches import snapshots
from tests.logs import Shape, located, log
from tests.pure_controller import POLICY

CLOSED = snapshots([*located(log(Shape(calm=True)))])
INTERVALS = [each.interval for each in CLOSED]
FIRST, SECOND, THIRD = INTERVALS[:3]
ACTIVE = Controls(mode="active")
STALE = replace(ACTIVE, stale=True)


@dataclass
class Ports:
    """All ports of an engine at once: what they were asked, in order, and the entries that were committed."""

    head: JournalHead = field(default_factory=lambda: JournalHead(last=None, epoch=0))
    controls: Callable[[int], Controls] = lambda _: ACTIVE
    #: Effect -> what it raises.
    fails: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    entries: list[JournalEntry] = field(default_factory=list)
    stamps: list[tuple[int, int]] = field(default_factory=list)

    def ask(self, effect: str) -> None:
        self.asked.append(effect)
        if effect in self.fails:
            raise self.fails.pop(effect)

    # ---- journal ----

    def open(self) -> JournalHead:
        self.ask("open")
        return self.head

    def begin_epoch(self, epoch: int) -> None:
        self.ask(f"begin epoch {epoch}")

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        self.ask(f"append {INTERVALS.index(entry.interval)}")
        before_commit()
        self.entries.append(entry)
        self.stamps.append((epoch, issued_at_ms))

    def prune(self, **_: int) -> None:
        raise AssertionError("only the sink knows what Spark has committed")

    # ---- leadership ----

    def acquire(self, *_: object, **__: object) -> bool:
        raise AssertionError("an engine is made by who leads already")

    def claim(self, journal_epoch: int) -> int:
        self.ask(f"claim above {journal_epoch}")
        return journal_epoch + 1

    def check(self) -> None:
        self.ask("check")

    def agreement(self, name: str) -> None:
        raise AssertionError(f"an engine has nothing to agree on, not {name}")

    def lost(self) -> bool:
        raise AssertionError("the flag alone is not enough")

    def session_lost(self) -> bool:
        raise AssertionError("of no interest to an engine")

    def release(self) -> None:
        raise AssertionError("an engine does not end the leadership")

    # ---- controls ----

    def controls_of(self, interval: int) -> Controls:
        self.ask(f"controls {INTERVALS.index(interval)}")
        return self.controls(interval)


def lead(ports: Ports, checkpoint: str | None = None) -> Engine:
    return take_over(
        policy=POLICY,
        seed=1,
        journal=ports,
        leadership=ports,
        controls=ports.controls_of,
        now_ms=lambda: 77,
        checkpoint=checkpoint,
    )


def leading(ports: Ports) -> Engine:
    engine = lead(ports)
    ports.asked.clear()
    return engine


def decided_alone() -> list[JournalEntry]:
    """Every interval decided without an engine."""
    memory, entries = POLICY.initial_memory(1), list[JournalEntry]()
    for closed in CLOSED:
        entries.append(decide_interval([closed], memory, ACTIVE, POLICY))
        memory = entries[-1].memory
    return entries


def test_every_interval_is_decided_from_the_memory_of_the_one_before_and_journalled() -> None:
    ports = Ports()
    engine = leading(ports)
    engine.decide(CLOSED)
    assert ports.entries == decided_alone()
    assert any(entry.decision.commands for entry in ports.entries)
    assert engine.memory == ports.entries[-1].memory


def test_leadership_is_checked_before_each_decision_and_again_before_its_commit() -> None:
    ports = Ports()
    leading(ports).decide(CLOSED[:3])
    assert ports.asked == [
        "controls 0", "controls 1", "check", "append 0", "check",
        "controls 2", "check", "append 1", "check",
        "check", "append 2", "check",
    ]  # fmt: skip


def test_intervals_are_decided_oldest_first_in_whatever_order_their_snapshots_come() -> None:
    ports = Ports()
    leading(ports).decide(reversed(CLOSED))
    assert ports.entries == decided_alone()


def test_an_interval_that_is_in_the_journal_is_not_decided_again() -> None:
    ports = Ports()
    engine = leading(ports)
    engine.decide(CLOSED[:2])
    ports.asked.clear()
    assert engine.decide(CLOSED[:2]).known == 2
    assert ports.asked == []
    assert engine.decide(CLOSED[:3]).known == 2
    assert [entry.interval for entry in ports.entries] == [FIRST, SECOND, THIRD]


def test_commands_are_stamped_with_the_epoch_and_the_wall_clock() -> None:
    ports = Ports(head=JournalHead(last=None, epoch=6))
    leading(ports).decide(CLOSED[:1])
    assert ports.stamps == [(7, 77)]


def test_an_interval_of_which_a_shard_is_missing_is_refused_and_leaves_nothing_behind() -> None:
    ports = Ports()
    engine = leading(ports)
    with pytest.raises(StateError, match=rf"interval {FIRST}: expected shards 0\.\.1 once each, got \[0\]"):
        engine.decide([replace(CLOSED[0], shards=2)])
    assert ports.entries == []
    assert engine.memory == POLICY.initial_memory(1)


@pytest.mark.parametrize(
    "error", [LeadershipLostError("another leads"), JournalError("no space left"), RuntimeError("a bug")]
)
@pytest.mark.parametrize("effect", ["check", "append 0"])
def test_what_a_port_raises_is_raised_and_the_memory_stays_as_the_journal_has_it(effect: str, error: Exception) -> None:
    ports = Ports(fails={effect: error})
    engine, told = leading(ports), list[DecidedInterval]()
    with pytest.raises(type(error)):
        engine.decide(CLOSED, told.append)
    assert (ports.entries, told, engine.memory) == ([], [], POLICY.initial_memory(1))


def test_leadership_that_was_lost_while_deciding_leaves_no_entry() -> None:
    ports, calls = Ports(), 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise LeadershipLostError("another leads")

    ports.check = check  # type: ignore[method-assign]
    engine = leading(ports)
    with pytest.raises(LeadershipLostError):
        engine.decide(CLOSED)
    assert (ports.entries, engine.memory) == ([], POLICY.initial_memory(1))


def test_each_interval_is_told_once_it_is_journalled_with_its_verdicts() -> None:
    ports, told = Ports(), list[tuple[int, int, int]]()

    def tell(decided: DecidedInterval) -> None:
        told.append((decided.entry.interval, len(ports.entries), len(decided.entry.decision.verdicts)))

    leading(ports).decide(CLOSED, tell)
    assert [(interval, count) for interval, count, _ in told] == [(t, n) for n, t in enumerate(INTERVALS, 1)]
    assert all(verdicts for *_, verdicts in told)


def test_of_stale_intervals_the_last_is_journalled_and_holds_what_all_of_them_changed() -> None:
    ports, told = Ports(controls=lambda _: STALE), list[DecidedInterval]()
    batch = leading(ports).decide(CLOSED, told.append)
    assert [decided.journalled for decided in told] == [*[False] * (len(CLOSED) - 1), True]
    assert batch.too_old == len(CLOSED) - 1
    assert [entry.interval for entry in ports.entries] == INTERVALS[-1:]
    one_by_one = Ports(controls=lambda _: STALE)
    engine = leading(one_by_one)
    for closed in CLOSED:
        engine.decide([closed])
    assert one_by_one.entries[-1:] == ports.entries
    assert len(one_by_one.entries) == len(CLOSED)


def test_a_stale_interval_is_journalled_where_the_next_one_has_other_controls() -> None:
    ports = Ports(controls=lambda t: replace(STALE, paused=t >= SECOND))
    leading(ports).decide(CLOSED[:3])
    assert [entry.interval for entry in ports.entries] == [FIRST, THIRD]


def test_commands_that_the_journal_cannot_hold_are_held_back_and_the_interval_is_journalled() -> None:
    with_commands = next(entry for entry in decided_alone() if entry.decision.commands).interval
    number = INTERVALS.index(with_commands)
    ports = Ports(fails={f"append {number}": EntryTooLargeError("too many")})
    told: list[DecidedInterval] = []
    leading(ports).decide(CLOSED[: number + 1], told.append)
    assert [decided.too_large is None for decided in told] == [*[True] * number, False]
    held = ports.entries[-1]
    assert (held.interval, held.controls.mode, held.decision.commands) == (with_commands, "observe", ())
    assert not held.memory.in_flight


def test_rows_that_shards_dropped_are_added_up() -> None:
    told: list[DecidedInterval] = []
    others = [f"another-{name}" for name in CLOSED[0].names]
    halves = [replace(CLOSED[0], shards=2, dropped=3), replace(CLOSED[0], shards=2, shard=1, dropped=4, names=others)]
    leading(Ports()).decide(halves, told.append)
    assert [decided.dropped_rows for decided in told] == [7]


@pytest.mark.parametrize(("tripped_at", "tripped"), [(None, False), (FIRST, False), (SECOND, True)])
def test_a_breaker_trips_in_one_interval(tripped_at: int | None, tripped: bool) -> None:
    [_, entry, *_] = decided_alone()
    entry = replace(entry, memory=replace(entry.memory, breaker=Breaker(tripped_at=tripped_at)))
    decided = DecidedInterval(
        entry=entry, journalled=True, too_large=None, dropped_rows=0, dropped_states=0, bundles=0, settled=()
    )
    assert decided.breaker_tripped is tripped


def test_a_new_leader_fences_earlier_writers_before_it_claims_an_epoch_and_journals_it_last() -> None:
    ports = Ports(head=JournalHead(last=None, epoch=6))
    assert lead(ports).epoch == 7
    assert ports.asked == ["open", "claim above 6", "begin epoch 7"]


def test_a_new_leader_goes_on_from_the_journals_memory() -> None:
    first = Ports()
    leading(first).decide(CLOSED[:2])
    second = Ports(head=JournalHead(last=first.entries[-1], epoch=1))
    engine = leading(second)
    assert engine.memory == first.entries[-1].memory
    assert engine.decide(CLOSED).known == 2
    assert [*first.entries, *second.entries] == decided_alone()


def test_the_first_leader_begins_with_the_seed_of_the_settings() -> None:
    assert lead(Ports()).memory == POLICY.initial_memory(1) != Memory()


def test_an_empty_journal_beside_a_used_checkpoint_is_refused_before_an_epoch_is_claimed() -> None:
    ports = Ports()
    with pytest.raises(JournalLostError, match="'demo' is empty, and the checkpoint /state says that it was not"):
        lead(ports, checkpoint="/state")
    assert ports.asked == ["open"]


@pytest.mark.parametrize("head", [JournalHead(last=None, epoch=1), JournalHead(last=decided_alone()[0], epoch=0)])
def test_a_journal_with_an_epoch_or_an_entry_is_not_lost(head: JournalHead) -> None:
    lead(Ports(head=head), checkpoint="/state")


def test_the_snapshots_of_an_interval_may_come_in_any_order() -> None:
    halves = [replace(CLOSED[0], shards=2, results=()), replace(CLOSED[0], shards=2, shard=1, results=(), names=[])]
    empty = {
        name: getattr(CLOSED[0], name)[:0]
        for name in (
            "owner", "load", "short_samples", "short_term", "long_samples", "long_term", "topics", "producers",
            "consumers", "detail_size", "detail_position", "detail_load", "detail_segment", "contested", "claimant",
        )
    }  # fmt: skip
    halves[1] = replace(halves[1], **empty, brokers=())
    one, other = (decide_interval(each, Memory(seed=1), ACTIVE, POLICY) for each in (halves, halves[::-1]))
    assert one == other
