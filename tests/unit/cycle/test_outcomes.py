"""Results of commands: answered, lost, failed; and how long failures are remembered."""

import pytest

from controller.cycle.outcomes import Patience, on_their_way, resting, settle
from controller.model.decision import Reason
from controller.model.memory import Failed, InFlight, Memory
from controller.model.records import CommandResult

MINUTE = 60_000
T = 1_735_689_600_000
PATIENCE = Patience(lost_after_ms=3 * MINUTE, retry_after_ms=5 * MINUTE)
BUNDLE = "acme/test/0x00000000_0x80000000"


def flight(bundle: str = BUNDLE, *, interval: int = T, destination: str = "b:8080") -> InFlight:
    return InFlight(
        action="unload",
        bundle=bundle,
        source="a:8080",
        destination=destination,
        interval=interval,
        expires_at_ms=interval + 5 * MINUTE,
    )


def waiting(**memory: object) -> Memory:
    """A memory with command c-1 of T in flight."""
    given = {"in_flight": {"c-1": flight()}, "recently_unloaded": {BUNDLE: T}, **memory}
    return Memory(**given)  # type: ignore[arg-type]


def answered(status: str, memory: Memory, interval: int = T + MINUTE) -> Memory:
    return settle(memory, [CommandResult(id="c-1", status=status)], interval, PATIENCE)[0]


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_a_bundle_whose_command_failed_rests_and_stays_recently_unloaded(status: str) -> None:
    memory = answered(status, waiting())
    assert memory.failed == {BUNDLE: Failed(times=1, interval=T + MINUTE)}
    assert memory.recently_unloaded == {BUNDLE: T}
    assert resting(memory.failed, T + 6 * MINUTE - 1, PATIENCE) == [BUNDLE]
    assert resting(memory.failed, T + 6 * MINUTE, PATIENCE) == []


@pytest.mark.parametrize("status", ["expired", "fenced"])
def test_a_bundle_whose_command_was_never_begun_may_be_unloaded_at_once(status: str) -> None:
    memory = answered(status, waiting())
    assert (memory.failed, memory.recently_unloaded) == ({}, {})


def test_a_bundle_whose_command_no_executor_believed_rests_and_does_not_count_as_unloaded() -> None:
    memory = answered("refused", waiting())
    assert memory.failed == {BUNDLE: Failed(times=1, interval=T + MINUTE)}
    assert (memory.recently_unloaded, memory.issued, memory.breaker.in_a_row) == ({}, {}, 1)


def test_an_earlier_unload_of_the_bundle_still_counts_when_a_later_command_was_never_begun() -> None:
    assert answered("expired", waiting(recently_unloaded={BUNDLE: T - MINUTE})).recently_unloaded == {
        BUNDLE: T - MINUTE
    }


@pytest.mark.parametrize(("times", "minutes"), [(1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (100_000, 60)])
def test_every_further_failure_doubles_the_rest_up_to_an_hour(times: int, minutes: int) -> None:
    assert PATIENCE.rests_for_ms(Failed(times=times, interval=T)) == minutes * MINUTE


def test_a_configured_rest_above_an_hour_is_kept() -> None:
    patient = Patience(lost_after_ms=0, retry_after_ms=90 * MINUTE)
    assert [patient.rests_for_ms(Failed(times=times, interval=T)) for times in (1, 9)] == [90 * MINUTE] * 2


@pytest.mark.parametrize(
    ("status", "times"),
    [("failed", 3), ("done", 0), ("already_done", 0), ("obsolete", 2), ("dry_run", 2), ("expired", 2)],
)
def test_failures_are_counted_until_a_command_succeeds(status: str, times: int) -> None:
    memory = answered(status, waiting(failed={BUNDLE: Failed(times=2, interval=T - MINUTE)}))
    assert (memory.failed[BUNDLE].times if memory.failed else 0) == times


def test_an_old_failure_does_not_count() -> None:
    held = {BUNDLE: Failed(times=2, interval=T)}
    for later, expected in ((20 * MINUTE, held), (20 * MINUTE + 1, {})):
        assert settle(Memory(failed=held), [], T + later, PATIENCE)[0].failed == expected


def test_a_command_without_a_result_is_lost_in_the_end_and_its_bundle_does_not_rest() -> None:
    last = T + 5 * MINUTE + PATIENCE.lost_after_ms
    assert settle(waiting(), [], last, PATIENCE)[0].in_flight
    memory, (verdict,) = settle(waiting(), [], last + 1, PATIENCE)
    assert (memory.in_flight, memory.failed) == ({}, {})
    assert (verdict.subject, verdict.reason) == (BUNDLE, Reason.LOST)


def test_results_of_unknown_commands_change_nothing() -> None:
    memory = waiting()
    assert settle(memory, [CommandResult(id="other", status="failed")], T + MINUTE, PATIENCE) == (memory, [])


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        ("done", {BUNDLE: "b:8080"}),
        ("already_done", {BUNDLE: "b:8080"}),
        ("failed", {}),
        ("unknown", {}),
        ("expired", {}),
    ],
)
def test_a_bundle_whose_unload_failed_is_not_preallocated(status: str, sent: dict[str, str]) -> None:
    flights = {"c-1": flight(), "c-2": flight("acme/test/0x80000000_0xffffffff", destination="")}
    assert on_their_way(flights, []) == {BUNDLE: "b:8080"}
    assert on_their_way(flights, [CommandResult(id="c-1", status=status)]) == sent
