"""Cells in a topic, under what happens to processes and topics: in simulated time, so none of these tests waits."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from random import Random

import pytest

from controller.log.election.cells import ABSENT, EXISTS, MAX_CELLS
from controller.log.election.store import ElectionCells, end, has, put
from controller.log.election.system import LogElection
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import Out
from controller.model.errors import AnotherClusterError, LeadershipLostError, StateError, TrimtabError
from controller.model.leadership import Leadership
from tests.protocol.histories import History, controls_are_linearizable, election_is_linearizable, lead
from tests.protocol.histories import change_controls as change_at_random
from tests.simulation.loop import Process, Simulation
from tests.simulation.standins import standing_in

SESSION = 9.0
EVERY = 20


class Site:
    """Processes with a log in memory."""

    def __init__(self, simulation: Simulation) -> None:
        self.sim = simulation
        self.server = MemoryServer(seed=1, now_ms=simulation.true_ms)
        self.cut_until = 0.0
        self.server.at_effect = self._at_effect
        #: Effects whose answers are lost: how many.
        self.lost_answers = 0

    def _at_effect(self, when: str, what: str) -> None:
        if self.sim.now < self.cut_until:
            raise TrimtabError("no answer: cut off")
        if when == "after" and what == "append" and self.lost_answers:
            self.lost_answers -= 1
            raise TrimtabError("no answer: lost")

    def log(self) -> MemoryLog:
        return MemoryLog(self.server)

    def cells(self, cluster: str = "east") -> ElectionCells:
        return ElectionCells(
            lambda: MemoryLog(self.server), cluster=cluster, session_seconds=SESSION, snapshot_every=EVERY
        )

    def election(self) -> LogElection:
        return LogElection(self.log, cluster="east", session_seconds=SESSION, where="memory/election")

    def play(self, *works: Callable[[], object], seconds: float = 600.0) -> list[Process]:
        """Do *works*, each as a process; returns when all have ended or *seconds* are over."""
        processes = [Process(f"p{number}") for number in range(len(works))]
        for process, work in zip(processes, works, strict=True):
            self.sim.spawn(process, work)
        self.sim.run(self.sim.now + seconds)
        assert self.sim.failures == []
        for process in processes:
            self.sim.kill(process)
        self.sim.run(self.sim.now)
        return processes

    def records(self) -> int:
        return len(list(MemoryLog(self.server).read("election", partition=0).read_to_end()))

    def last(self) -> bytes:
        """The record that was written last."""
        return self.server.topic("election")[0].records[-1].value

    def fill(self, cells: ElectionCells, times: int) -> None:
        """Write a cell so often, with a session that lives long enough to have snapshots written."""
        cells.session()
        for number in range(times):
            assert cells.commit([], [put("filled", b"%d" % number)]) is not None
            self.sim.sleep(1.0)


@pytest.fixture
def site() -> Iterator[Site]:
    simulation = Simulation(7)
    with standing_in(simulation):
        yield Site(simulation)


def never() -> bool:
    return False


def loses(leadership: Leadership) -> bool:
    try:
        leadership.check()
    except LeadershipLostError:
        return True
    return False


def test_of_two_changes_on_one_version_the_first_in_the_topic_is_made(site: Site) -> None:
    one, other = site.cells(), site.cells()
    first = one.commit([has("a", ABSENT)], [put("a", b"1")])
    assert first is not None
    other.refresh()
    assert one.commit([has("a", first)], [put("a", b"2")]) is not None
    assert other.commit([has("a", first)], [put("a", b"3")]) is None
    assert other.get("a") == one.get("a") is not None


def test_an_operation_changes_everything_or_nothing(site: Site) -> None:
    cells = site.cells()
    assert cells.commit([has("a", ABSENT), has("b", EXISTS)], [put("a", b""), put("b", b"")]) is None
    assert cells.get("a") is None
    assert cells.commit([], [put("c", b"", owner="nobody"), put("a", b"")]) is None
    assert cells.get("a") is None


def test_a_version_never_comes_again_after_a_cell_has_ended(site: Site) -> None:
    cells = site.cells()
    first = cells.commit([], [put("a", b"1")])
    cells.commit([], [end("a")])
    cells.commit([], [put("a", b"1")])
    assert first is not None
    assert cells.commit([has("a", first)], [put("a", b"2")]) is None


def test_what_a_cell_owns_ends_with_it(site: Site) -> None:
    cells = site.cells()
    cells.commit([], [put("a", b"")])
    cells.commit([], [put("b", b"", owner="a")])
    cells.commit([], [put("c", b"", owner="b")])
    cells.commit([], [end("a")])
    assert [cells.get(key) for key in "abc"] == [None, None, None]


def test_two_processes_that_begin_at_once_share_one_store(site: Site) -> None:
    found = list[int | None]()

    def begin() -> None:
        with closing(site.cells()) as cells:
            found.append(cells.commit([has("a", ABSENT)], [put("a", b"")]))

    site.play(begin, begin, begin)
    assert sorted(each is None for each in found) == [False, True, True]


def test_a_leader_that_is_killed_is_replaced_after_its_timeout(site: Site) -> None:
    times = list[float]()

    def first() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        assert leadership.claim(0) == 1
        site.sim.kill(site.sim.process)

    def second() -> None:
        site.sim.sleep(1.0)
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        times.append(site.sim.now)
        assert leadership.claim(0) == 2

    site.play(first, second)
    assert SESSION <= times[0] <= 2 * SESSION


def test_a_leader_that_hangs_is_replaced_and_can_do_nothing_when_it_wakes_up(site: Site) -> None:
    seen = list[str]()

    def first() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        leadership.claim(0)
        site.sim.process.paused_until = site.sim.now + 60
        site.sim.sleep(0.0)
        assert leadership.lost()
        assert loses(leadership)
        site.sim.sleep(SESSION)
        assert leadership.session_lost()
        with pytest.raises(LeadershipLostError, match="session"):
            leadership.acquire(never)
        seen.append("first")

    def second() -> None:
        site.sim.sleep(1.0)
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        assert leadership.claim(0) == 2
        site.sim.sleep(100.0)
        leadership.check()
        seen.append("second")

    site.play(first, second)
    assert seen == ["first", "second"]


def test_a_leader_that_hangs_before_its_check_is_refused_by_the_topic_and_not_by_its_clock(site: Site) -> None:
    """It believes that it leads: nobody has told it otherwise, and its flag is not looked at."""
    leadership, operator = site.election().leadership(), site.cells()
    seen = list[bool]()

    def first() -> None:
        assert leadership.acquire(never)
        leadership.claim(0)
        operator.refresh()
        [(session, _)] = operator.below("sessions/")
        operator.commit([], [end(session)])
        assert not leadership.lost()
        seen.append(loses(leadership))

    site.play(first, seconds=5.0)
    assert seen == [True]


def test_a_newer_epoch_ends_a_leadership(site: Site) -> None:
    seen = list[int]()

    def work() -> None:
        leadership, controls = site.election().leadership(), site.election().controls()
        assert leadership.acquire(never)
        leadership.claim(0)
        controls.raise_epoch(9)
        assert loses(leadership)
        assert leadership.acquire(never)
        seen.append(leadership.claim(0))

    site.play(work)
    assert seen == [10]


def test_an_outage_of_the_log_ends_no_session(site: Site) -> None:
    seen = list[str]()

    def process(name: str) -> Callable[[], None]:
        def work() -> None:
            leadership = site.election().leadership()
            if not leadership.acquire(lambda: site.sim.now > 150):
                return
            leadership.claim(0)
            site.cut_until = site.sim.now + 60
            site.sim.sleep(30)
            assert leadership.lost(), "nobody knows what others do meanwhile"
            site.sim.sleep(60)
            assert not leadership.session_lost()
            assert leadership.acquire(never)
            leadership.check()
            site.sim.sleep(200)
            seen.append(name)

        return work

    site.play(process("a"), process("b"), process("c"))
    assert len(seen) == 1


def test_the_answer_to_a_claim_is_lost_and_the_next_claim_is_higher(site: Site) -> None:
    seen = list[int]()

    def work() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        site.lost_answers = 1
        with pytest.raises(LeadershipLostError):
            leadership.claim(0)
        assert leadership.acquire(never)
        seen.append(leadership.claim(0))
        leadership.check()

    site.play(work)
    assert seen == [2]


def test_who_comes_later_finds_the_same_cells_by_a_snapshot_and_the_topic_stays_short(site: Site) -> None:
    def work() -> None:
        with closing(site.cells()) as cells:
            cells.commit([], [put("old", b"stays")])
            site.fill(cells, 200)

    site.play(work)
    late = site.cells()
    assert late.refresh()
    assert [cell.value for key in ("old", "filled") if (cell := late.get(key)) is not None] == [b"stays", b"199"]
    assert site.records() < 6 * EVERY


def test_who_stood_still_while_records_were_deleted_reads_the_cells_anew(site: Site) -> None:
    behind = site.cells()
    behind.commit([], [put("old", b"before")])

    def work() -> None:
        with closing(site.cells()) as cells:
            cells.commit([], [put("old", b"after")])
            site.fill(cells, 200)

    site.play(work)
    assert behind.refresh()
    assert (cell := behind.get("old")) is not None
    assert cell.value == b"after"
    assert behind.commit([has("old", cell.version)], [put("old", b"mine")]) is not None


@pytest.mark.parametrize("written", [0, 1])
def test_a_snapshot_that_its_writer_did_not_finish_does_not_count(site: Site, written: int) -> None:
    """It dies after the mark, with so many of two parts written; later another process writes the next one."""

    class Torn(MemoryLog):
        def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
            outs = list(outs)
            if b'"type":"part"' not in outs[0].value:
                super().append(outs, within_seconds=within_seconds)
                return
            assert len(outs) == 2
            super().append(outs[:written], within_seconds=within_seconds)
            site.sim.kill(site.sim.process)
            site.sim.sleep(0.0)

    def dies() -> None:
        cells = ElectionCells(lambda: Torn(site.server), cluster="east", session_seconds=SESSION, snapshot_every=EVERY)
        cells.commit([], [put("large", bytes(400_000)), put("larger", bytes(400_001))])
        site.fill(cells, 100)

    site.play(dies)
    records = [each.value for each in site.server.topic("election")[0].records]
    assert sum(b'"type":"mark"' in each for each in records) == 1
    assert sum(b'"type":"part"' in each for each in records) == written
    found = list[int]()
    for _ in range(2):
        late = site.cells()
        assert late.refresh()
        found += [len(cell.value) for key in ("large", "larger") if (cell := late.get(key)) is not None]
        site.play(lambda: site.fill(site.cells(), 150))
    assert found == [400_000, 400_001] * 2
    assert site.records() < 8 * EVERY


@pytest.mark.parametrize("begun", [True, False])
def test_a_topic_that_was_deleted_ends_the_leadership_and_is_started_anew(site: Site, begun: bool) -> None:
    """Also where no other process has begun a store in the new one, into which the leader must not write."""
    seen = list[str]()

    def work() -> None:
        leadership, other = site.election().leadership(), site.cells()
        assert leadership.acquire(never)
        leadership.claim(0)
        del site.server.topic("election")[:]
        site.server.add_partitions("election")
        if begun:
            other.commit([], [put("new", b"")])
        assert loses(leadership)
        site.sim.sleep(2 * SESSION)
        assert leadership.session_lost()
        successor = site.election().leadership()
        assert successor.acquire(never)
        successor.claim(5)
        successor.check()
        seen.append("done")

    site.play(work)
    assert seen == ["done"]


def test_records_that_a_retention_has_deleted_are_missed(site: Site) -> None:
    cells = site.cells()
    for number in range(5):
        cells.commit([], [put("a", b"%d" % number)])
    partition = site.server.topic("election")[0]
    partition.first = partition.records[2].position
    with pytest.raises(StateError, match="first records are gone"):
        site.cells().refresh()
    cells.commit([], [put("a", b"who had read them goes on")])


@pytest.mark.parametrize("later", [(b'"v":1', b'"v":2'), (b'"type":"operation"', b'"type":"lease"')])
def test_what_is_no_record_is_passed_over_and_what_a_later_release_wrote_into_the_store_is_not(
    site: Site, later: tuple[bytes, bytes]
) -> None:
    cells = site.cells()
    cells.commit([], [put("a", b"1")])
    log = MemoryLog(site.server)
    for garbage in (b"", b"\xff\x00", b"[]", b'{"v":1,"type":"operation"}', b'{"v":1,"type":"operation","store":7}'):
        log.append([Out("election", garbage, partition=0)], within_seconds=1)
    assert cells.commit([], [put("b", b"2")]) is not None
    assert site.cells().refresh()
    log.append([Out("election", site.last().replace(*later), partition=0)], within_seconds=1)
    for each in (cells, site.cells()):
        with pytest.raises(StateError, match="later release"):
            each.refresh()


#: Of another topic, of nobody, and of a store that was there before.
MISROUTED = [
    b'{"v":null}',
    b'{"v":2,"type":"operation"}',
    b'{"v":1,"type":"broker_load","broker":"a"}',
    b'{"v":2,"store":["0"]}',
    b'{"v":2,"type":"begin","store":"%032d"}' % 7,
]


@pytest.mark.parametrize("record", MISROUTED)
def test_a_record_of_another_version_that_names_no_store_or_another_one_stops_nobody(
    site: Site, record: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with closing(site.cells()) as cells:
            for number in range(3):
                cells.commit([], [put("a", b"%d" % number)])
                MemoryLog(site.server).append([Out("election", record, partition=0)], within_seconds=1)
            late = site.cells()
            assert late.refresh()
            assert late.get("a") == cells.get("a") is not None
            site.fill(cells, 60)

    site.play(work)
    assert sum("no record of an election" in each.message for each in caplog.records) == 1


def test_a_store_that_a_later_release_began_is_not_begun_again(site: Site) -> None:
    site.cells().commit([], [put("a", b"1")])
    [begin, *rest] = site.server.topic("election")[0].records
    begin = begin._replace(value=begin.value.replace(b'"v":1', b'"v":2'))
    site.server.topic("election")[0].records[:] = [begin, *rest]
    with pytest.raises(StateError, match="later release"):
        site.cells().commit([], [put("b", b"2")])


def test_another_clusters_topic_is_refused(site: Site) -> None:
    site.cells().commit([], [put("a", b"1")])
    with pytest.raises(AnotherClusterError, match="'east'"):
        site.cells("west").refresh()


def test_a_store_that_is_full_refuses_more(site: Site) -> None:
    cells = site.cells()
    for start in range(0, MAX_CELLS, 1_000):
        cells.commit([], [put(f"{number}", b"") for number in range(start, start + 1_000)])
    assert cells.commit([], [put("one more", b"")]) is None
    assert cells.commit([], [end("0")]) is not None
    assert cells.commit([], [put("one more", b"")]) is not None


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed else []) for seed in range(30)])
def test_calls_of_many_processes_can_be_put_in_one_order(site: Site, seed: int) -> None:
    """While processes hang, answers are lost, and the log is cut off."""
    controls, elections, chance = History(), History(), Random(seed)

    def changes(name: str) -> Callable[[], None]:
        def work() -> None:
            store = site.election().controls()
            for nth in range(10):
                change_at_random(store, controls, f"{name}.{nth}", chance, 3)
                site.sim.sleep(chance.random() * 10)

        return work

    def leads(name: str) -> Callable[[], None]:
        def work() -> None:
            for nth in range(6):
                leadership = site.election().leadership()
                with suppress(TrimtabError):
                    lead(leadership, elections, f"{name}.{nth}", chance, _Ends(site, chance))
                leadership.release()
                site.sim.sleep(5.0)

        return work

    def faults() -> None:
        for _ in range(8):
            site.sim.sleep(chance.random() * 20)
            if chance.random() < 0.5:
                site.lost_answers = chance.randint(1, 3)
            else:
                site.cut_until = site.sim.now + chance.random() * 20

    def slow(when: str, what: str) -> None:
        if site.sim.task is not None:
            site.sim.sleep(chance.random() * 0.1 + (30 if chance.random() < 0.002 else 0))
        site._at_effect(when, what)

    site.server.at_effect = slow
    site.play(*(changes(name) for name in "ab"), *(leads(name) for name in "xyz"), faults)
    assert len(controls.calls) > 20
    assert len(elections.calls) > 20
    controls_are_linearizable(controls)
    election_is_linearizable(elections)


class _Ends(threading.Event):
    """An event that comes after some time, and waits in simulated time."""

    def __init__(self, site: Site, chance: Random) -> None:
        super().__init__()
        self._site, self._until = site, site.sim.now + chance.random() * 80

    def is_set(self) -> bool:
        return self._site.sim.now > self._until

    def wait(self, timeout: float | None = None) -> bool:
        self._site.sim.sleep((timeout or 0.0) * 50)
        return self.is_set()
