"""What other elections have got wrong, tried on the one in a topic, in simulated time."""

from collections.abc import Callable, Iterator

import pytest

from controller.log.election.cells import EXISTS
from controller.log.election.store import has, put
from controller.model.errors import TrimtabError
from tests.simulation.loop import Simulation
from tests.simulation.standins import standing_in
from tests.unit.log.test_cells import SESSION, Site, loses, never


@pytest.fixture
def site() -> Iterator[Site]:
    simulation = Simulation(11)
    with standing_in(simulation):
        yield Site(simulation)


@pytest.mark.parametrize("hangs", [SESSION + 1, 10 * SESSION])
def test_who_wakes_up_after_a_long_hang_ends_no_session_of_those_who_live(site: Site, hangs: float) -> None:
    """As etcd-io/etcd 15247 and 12528: a member that stood still revoked leases that others had renewed meanwhile."""
    seen = list[str]()

    def leads() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        leadership.claim(0)
        for _ in range(30):
            site.sim.sleep(SESSION)
            leadership.check()
            assert not leadership.session_lost()
        seen.append("leads")

    def hangs_again_and_again() -> None:
        cells = site.cells()
        for _ in range(5):
            site.sim.sleep(SESSION / 2)
            site.sim.process.paused_until = site.sim.now + hangs
            site.sim.sleep(0.0)
            cells.session()
            cells.refresh()

    site.play(leads, hangs_again_and_again)
    assert seen == ["leads"]


def test_a_session_that_was_never_renewed_ends(site: Site) -> None:
    """As apache/kafka 12075: who had registered, and sent no heartbeat since, was looked after by nobody."""
    seen = list[int]()

    def dies_at_once() -> None:
        site.cells().session()
        site.sim.kill(site.sim.process)

    def lives() -> None:
        cells = site.cells()
        cells.session()
        site.sim.sleep(3 * SESSION)
        cells.refresh()
        seen.append(len(cells.below("sessions/")))

    site.play(dies_at_once, lives)
    assert seen == [1]


def test_watchers_that_come_and_go_do_not_keep_a_dead_leader_in_office(site: Site) -> None:
    """As apache/kafka 19454: each new controller began to wait anew, so that nobody was ever fenced."""
    times = list[float]()

    def leads() -> None:
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        leadership.claim(0)
        site.sim.kill(site.sim.process)

    def comes_and_goes() -> None:
        for _ in range(20):
            cells = site.cells()
            cells.session()
            site.sim.sleep(SESSION / 3)
            cells.close()

    def stays() -> None:
        site.sim.sleep(1.0)
        leadership = site.election().leadership()
        assert leadership.acquire(never)
        times.append(site.sim.now)

    site.play(leads, comes_and_goes, stays)
    assert SESSION <= times[0] <= 2 * SESSION


def test_a_log_that_is_too_busy_for_heartbeats_ends_no_session(site: Site) -> None:
    """As apache/kafka 13759: heartbeats timed out at a controller that was busy, and who had sent them was fenced."""
    seen, turns = list[str](), [0]

    def busy(when: str, what: str) -> None:
        if site.sim.now < site.cut_until and when == "before" and what == "append":
            turns[0] += 1
            if turns[0] % 8:
                raise TrimtabError("no answer: busy")

    site.server.at_effect = busy

    def process(name: str) -> Callable[[], None]:
        def work() -> None:
            leadership = site.election().leadership()
            if not leadership.acquire(lambda: site.sim.now > 300):
                return
            leadership.claim(0)
            site.cut_until = site.sim.now + 20 * SESSION
            site.sim.sleep(25 * SESSION)
            seen.append(f"{name}: {loses(leadership)}")

        return work

    site.play(process("a"), process("b"))
    # The one whose heartbeats came too late lost it, and knows; nobody else believes to lead.
    assert len([each for each in seen if each.endswith("False")]) <= 1
    assert seen


def test_a_change_that_rests_on_what_a_process_once_held_is_refused(site: Site) -> None:
    """As JasperFx/wolverine 2607: a lock that its server had given to another one still looked held from within."""
    seen = list[object]()

    def holds() -> None:
        cells = site.cells()
        session = cells.session()
        assert cells.commit([], [put("lock", b"mine", owner=session)]) is not None
        site.sim.process.paused_until = site.sim.now + 5 * SESSION
        site.sim.sleep(0.0)
        seen.append(cells.commit([has(session, EXISTS)], [put("done", b"by whom held it")]))

    def watches() -> None:
        cells = site.cells()
        cells.session()
        site.sim.sleep(8 * SESSION)
        cells.refresh()
        seen.extend(key for key, _ in cells.below("") if key in ("lock", "done"))

    site.play(holds, watches)
    assert seen == [None]
