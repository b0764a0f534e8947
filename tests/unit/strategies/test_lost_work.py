"""What a member that left was running, and who gets it when: the rule by itself."""

import pytest

from controller.strategies.common.worker_group import NOTHING, ConnectorsAndTasks
from controller.strategies.rebalance.incremental_cooperative import LeaderMemory, Release, compared, settled

LOST = ConnectorsAndTasks(connectors=("a", "b"))
HELD = ConnectorsAndTasks(connectors=("c",))
RUNNING = {"w1": HELD, "w2": NOTHING, "w3": NOTHING}
LEFT = LeaderMemory(members=frozenset({"w0", "w1"}), assigned=LOST + HELD, generation=1)
DELAY = 1000
NOW = 5_000


def test_lost_is_what_was_assigned_and_is_configured_and_nobody_holds() -> None:
    configured = ConnectorsAndTasks(connectors=("a", "c", "d"))
    found, memory = compared({"w1": HELD}, configured, LEFT, last_completed_generation=1)
    assert found.lost == ConnectorsAndTasks(connectors=("a",))
    assert found.deleted == ConnectorsAndTasks(connectors=("b",))
    assert found.new == ConnectorsAndTasks(connectors=("d",))
    assert (found.active, memory) == (HELD, LEFT)


def test_after_an_answer_that_may_not_have_arrived_nothing_is_lost_and_all_that_nobody_holds_is_new() -> None:
    found, _ = compared({"w1": HELD}, LOST + HELD, LEFT, last_completed_generation=0)
    assert (found.lost, found.new) == (NOTHING, LOST)


@pytest.mark.parametrize("release", list(Release))
def test_it_waits_for_the_delay_and_members_without_work_are_noted(release: Release) -> None:
    found = settled(LOST, RUNNING, LEFT, NOW, release=release, longest_ms=DELAY)
    assert (found.dealt_out, set(found.taken_over.values())) == (NOTHING, {NOTHING})
    assert (found.memory.scheduled_rebalance_ms, found.memory.delay_ms) == (NOW + DELAY, DELAY)
    assert found.memory.candidates == ("w2", "w3")


@pytest.mark.parametrize(
    ("release", "taken_over", "dealt_out"),
    [
        (Release.V2_6_0, {"w2": ("a", "b")}, NOTHING),
        (Release.V2_6_3, {"w2": ("a",), "w3": ("b",)}, NOTHING),
        (Release.V3_9, {"w2": ("a",), "w3": ("b",)}, NOTHING),
        (Release.TRIMTAB, {}, LOST),
    ],
)
def test_after_the_delay_members_without_work_take_it_over_or_it_is_dealt_out(
    release: Release, taken_over: dict[str, tuple[str, ...]], dealt_out: ConnectorsAndTasks
) -> None:
    waiting = settled(LOST, RUNNING, LEFT, NOW, release=release, longest_ms=DELAY).memory
    found = settled(LOST, RUNNING, waiting, NOW + DELAY, release=release, longest_ms=DELAY)
    assert {name: work.connectors for name, work in found.taken_over.items() if work} == taken_over
    assert found.dealt_out == dealt_out
    assert (found.memory.scheduled_rebalance_ms, found.memory.delay_ms, found.memory.candidates) == (0, 0, ())


def test_without_a_delay_later_releases_deal_it_out_at_once() -> None:
    for release in (Release.V3_9, Release.TRIMTAB):
        assert settled(LOST, RUNNING, LEFT, NOW, release=release, longest_ms=0).dealt_out == LOST
