"""Cells in a topic against damaged, repeated and late records, a full store, and topics that are deleted."""

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from controller.log.election.cells import ABSENT, EXISTS, MAX_BYTES, MAX_CELL_BYTES, MAX_CELLS
from controller.log.election.store import ElectionCells, end, has, put
from controller.log.election.system import LogElection
from controller.log.memory import MemoryLog, MemoryReader
from controller.log.port import OLDEST, LogRecord, LogTopic, Out, Start
from controller.model.controls import OperatorControls
from controller.model.errors import StateError, TrimtabError
from tests.simulation.loop import Process, Simulation
from tests.simulation.standins import standing_in
from tests.unit.log.test_cells import SESSION, Site, loses, never


@pytest.fixture
def site() -> Iterator[Site]:
    simulation = Simulation(7)
    with standing_in(simulation):
        yield Site(simulation)


def by_number(cells: ElectionCells) -> None:
    for start in range(0, MAX_CELLS, 1_000):
        cells.commit([], [put(f"proposals/{number}", b"") for number in range(start, start + 1_000)])
    while cells.commit([], [put(f"proposals/more{len(cells.below(''))}", b"")]) is not None:
        pass


def by_size(cells: ElectionCells) -> None:
    for nth in range(MAX_BYTES // MAX_CELL_BYTES):
        cells.commit([], [put(f"proposals/{nth}", bytes(MAX_CELL_BYTES))])
    for size in (1 << 20, 1 << 10, 1):
        while cells.commit([], [put(f"proposals/more{len(cells.below(''))}", bytes(size))]) is not None:
            pass


@pytest.mark.parametrize("fill", [by_number, pytest.param(by_size, marks=pytest.mark.slow)])
def test_proposals_that_fill_the_store_leave_room_to_pause_to_stop_and_to_lead(
    site: Site, fill: Callable[[ElectionCells], None]
) -> None:
    seen = list[int]()

    def work() -> None:
        fill(site.cells())
        controls, leadership = site.election().controls(), site.election().leadership()
        assert controls.write(OperatorControls(), ABSENT)
        controls.raise_epoch(1_000)
        assert leadership.acquire(never)
        seen.append(leadership.claim(0))
        leadership.check()

    site.play(work)
    assert seen == [1_001]


def test_a_long_chain_of_owners_ends_at_once(site: Site) -> None:
    cells = site.cells()
    cells.commit([], [put("0", b"")])
    for number in range(1, 3_000):
        assert cells.commit([], [put(f"{number}", b"", owner=f"{number - 1}")]) is not None
    assert cells.commit([], [end("0")]) is not None
    assert cells.below("") == []


def test_what_gets_an_owner_that_the_same_operation_ends_ends_too(site: Site) -> None:
    cells = site.cells()
    cells.commit([], [put("a", b"")])
    cells.commit([], [put("b", b"", owner="a")])
    cells.commit([], [end("a"), put("c", b"", owner="b"), put("d", b"", owner="a")])
    assert cells.below("") == []


def test_an_unexpected_error_does_not_end_the_thread_that_keeps_the_session(site: Site) -> None:
    seen = list[str]()
    fails = list[int]()

    def broken(when: str, what: str) -> None:
        if fails and when == "before" and what == "append":
            fails.pop()
            raise RuntimeError("a library's bug")

    site.server.at_effect = broken

    def work() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        leadership.claim(0)
        fails.append(1)
        site.sim.sleep(3 * SESSION)
        assert not fails
        assert not leadership.lost()
        leadership.check()
        seen.append("leads")

    site.play(work)
    assert seen == ["leads"]


def with_snapshots(site: Site, times: int = 60) -> None:
    cells = site.cells()

    def work() -> None:
        cells.commit([], [put("old", b"stays")])
        site.fill(cells, times)

    site.play(work, seconds=times + 2.0)


@pytest.mark.parametrize("late", [False, True])
def test_parts_of_a_snapshot_that_are_stored_twice_change_nothing(site: Site, late: bool) -> None:
    """Right after the first, or when other snapshots have been written."""
    behind = site.cells()
    behind.commit([], [put("mine", b"1")])
    with_snapshots(site, 15)
    behind.refresh()
    [part] = [each.value for each in site.server.topic("election")[0].records if b'"type":"part"' in each.value]
    if late:
        with_snapshots(site, 100)
    MemoryLog(site.server).append([Out("election", part, partition=0)], within_seconds=1)
    assert behind.commit([has("mine", EXISTS)], [put("mine", b"2")]) is not None
    assert site.cells().refresh()


def test_records_that_are_deleted_while_a_process_reads_for_the_first_time_are_no_damage(site: Site) -> None:
    with_snapshots(site, 15)
    deleted = list[bool]()

    class Slow(MemoryLog):
        """Others write, and delete, while its first reader is at the first record."""

        def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> MemoryReader:
            reader = super().read(topic, start, partition=partition)
            return reader if deleted else Behind(site.server, topic, start, partition)

    class Behind(MemoryReader):
        def next(self, timeout_seconds: float) -> LogRecord | None:
            record = super().next(timeout_seconds)
            if not deleted:
                deleted.append(True)
                with_snapshots(site, 100)
            return record

    late = ElectionCells(lambda: Slow(site.server), cluster="east", session_seconds=SESSION, snapshot_every=20)
    assert late.refresh()
    assert deleted
    assert (cell := late.get("old")) is not None
    assert cell.value == b"stays"


def test_a_hint_that_leads_nowhere_is_not_followed(site: Site) -> None:
    cells = site.cells()
    cells.commit([], [put("a", b"1")])
    last = site.server.topic("election")[0].records[-1].value
    for since in (1, (1 << 63) - 1):
        wrong = re.sub(b'"since":[0-9]+', b'"since":%d' % since, last)
        MemoryLog(site.server).append([Out("election", wrong, partition=0)], within_seconds=1)
        late = site.cells()
        assert late.refresh()
        assert late.get("a") is not None


def test_an_operation_that_is_stored_twice_is_made_once(site: Site) -> None:
    cells = site.cells()
    first = cells.commit([has("a", ABSENT)], [put("a", b"1")])
    again = site.server.topic("election")[0].records[-1].value
    second = cells.commit([has("a", first or 0)], [put("a", b"2")])
    MemoryLog(site.server).append([Out("election", again, partition=0)], within_seconds=1)
    cells.refresh()
    assert (cell := cells.get("a")) is not None
    assert (cell.value, cell.version) == (b"2", second)


def test_a_log_that_takes_no_snapshot_costs_nobody_the_leadership(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """As a topic does that somebody created with a small max.message.bytes."""
    lost = list[bool]()

    class Small(MemoryLog):
        def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
            outs = list(outs)
            if b'"type":"part"' in outs[0].value:
                raise TrimtabError("message too large")
            super().append(outs, within_seconds=within_seconds)

    def work() -> None:
        leadership = LogElection(
            lambda: Small(site.server), cluster="east", session_seconds=SESSION, where="memory/election"
        ).leadership()
        assert leadership.acquire(never)
        leadership.claim(0)
        for _ in range(3_600):
            site.sim.sleep(1.0)
            lost.append(loses(leadership))

    site.play(work, seconds=4_000)
    assert lost == [False] * 3_600
    assert "message too large" in caplog.text


def test_names_may_be_in_any_script(site: Site) -> None:
    cells = site.cells()
    cells.commit([], [put("processes/контроллер-東京-🚦", "é".encode())])
    with_snapshots(site)
    late = site.cells()
    assert late.refresh()
    assert late.get("processes/контроллер-東京-🚦") is not None


@pytest.mark.slow
@pytest.mark.parametrize("key", ["東" * 290, "\x01" * 290, '"' * 290])
def test_a_part_of_a_snapshot_is_no_larger_than_a_log_takes_whatever_the_keys_are(site: Site, key: str) -> None:
    cells = site.cells()
    cells.commit([], [put(key, b"")])
    for start in range(0, 2_000, 500):
        cells.commit([], [put(f"{key}{nth}", b"", owner=key) for nth in range(start, start + 500)])
    with_snapshots(site)
    parts = [len(each.value) for each in site.server.topic("election")[0].records if b'"type":"part"' in each.value]
    assert parts
    assert max(parts) < 1_000_000
    late = site.cells()
    assert late.refresh()
    assert len(late.below(key)) == 2_001


def test_a_cell_that_no_part_of_a_snapshot_would_hold_is_refused(site: Site) -> None:
    cells = site.cells()
    assert cells.commit([], [put("large", bytes(MAX_CELL_BYTES))]) is not None
    assert cells.commit([], [put("small", b""), put("larger", bytes(MAX_CELL_BYTES + 1))]) is None
    assert cells.get("small") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda part: part.replace(b'"ordinal":', b'"ordinal":9'),
        lambda part: part.replace(b'"digest":"', b'"digest":"' + b"0" * 8, 1),
        lambda part: part.replace(b'"part":0', b'"part":7'),
        lambda part: part.replace(b'"value":"', b'"value":"***'),
        lambda part: part[:-20],
    ],
)
def test_a_damaged_snapshot_never_becomes_the_cells_of_who_comes_later(
    site: Site, damage: Callable[[bytes], bytes]
) -> None:
    with_snapshots(site, 30)
    partition = site.server.topic("election")[0]
    [at, *_] = [nth for nth, each in enumerate(partition.records) if b'"type":"part"' in each.value]
    partition.records[at] = partition.records[at]._replace(value=damage(partition.records[at].value))
    late = site.cells()
    try:
        late.refresh()
    except TrimtabError:
        return
    assert (cell := late.get("old")) is not None
    assert cell.value == b"stays"


def test_a_process_that_reaches_the_log_later_than_others_after_an_outage_keeps_its_session(site: Site) -> None:
    slow = list[Process]()
    seen = list[str]()

    def cut(when: str, what: str) -> None:
        if site.sim.now < site.cut_until + (SESSION if site.sim.process in slow else 0.0):
            raise TrimtabError("no answer: cut off")

    site.server.at_effect = cut

    def leads() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        slow.append(site.sim.process)
        site.sim.sleep(10.0)
        site.cut_until = site.sim.now + 60.0
        site.sim.sleep(60.0 + 2 * SESSION)
        assert not leadership.session_lost()
        seen.append("leads")

    def waits() -> None:
        site.cells().session()
        site.sim.sleep(200.0)

    site.play(leads, waits, waits)
    assert seen == ["leads"]


def test_a_contender_whose_answer_was_lost_is_entered_once(site: Site) -> None:
    seen = list[int]()

    def work() -> None:
        leadership, other = site.election().leadership(), site.cells()
        site.server.at_effect = lose_the_contenders_answer
        assert leadership.acquire(never)
        leadership.claim(0)
        leadership.check()
        other.refresh()
        seen.append(len(other.below("contenders/")))

    def lose_the_contenders_answer(when: str, what: str) -> None:
        records = site.server.topic("election")[0].records
        if when == "after" and records and b"contenders/" in records[-1].value:
            site.server.at_effect = site._at_effect
            raise TrimtabError("no answer: lost")

    site.play(work)
    assert seen == [1]


def test_who_registers_again_before_its_old_session_has_ended_stays_registered(site: Site) -> None:
    seen = list[int]()

    def work() -> None:
        site.election().controls().raise_epoch(1)
        site.cells().commit([], [put("sessions/old", b"1000")])
        old = site.cells()
        old.commit([], [put("processes/a", b"old", "sessions/old")])
        registry = site.election().registry()
        assert registry.write("a", b"new")
        site.sim.sleep(3 * SESSION)
        old.refresh()
        assert old.get("sessions/old") is None
        seen.append(len(registry.read(100).entries))

    site.play(work)
    assert seen == [1]


def test_a_topic_that_was_created_again_and_counts_on_gets_the_cells_of_those_who_run(site: Site) -> None:
    """As on Pulsar, whose positions never come again: the next snapshot brings back what the leader has read."""
    seen = list[str]()

    def work() -> None:
        leadership, controls = site.election().leadership(), site.election().controls()
        assert leadership.acquire(never)
        leadership.claim(0)
        controls.write(OperatorControls(), ABSENT)
        site.sim.sleep(SESSION)
        partition = site.server.topic("election")[0]
        partition.records.clear()
        partition.first = partition.next
        site.sim.sleep(SESSION)
        leadership.check()
        with pytest.raises(StateError, match="first records are gone"):
            site.cells().refresh()
        site.sim.sleep(400 * SESSION)
        assert controls.version() == site.election().controls().version() != ABSENT
        leadership.check()
        seen.append("leads")

    site.play(work, seconds=500 * SESSION)
    assert seen == ["leads"]
