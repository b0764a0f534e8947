"""The breaker: after many failed commands nothing is issued until a person runs `trimtab resume`."""

from dataclasses import replace

import pytest

from controller.cycle import decide
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason
from controller.model.memory import Breaker, InFlight, Memory
from controller.model.records import CommandResult
from tests.cluster import INTERVAL
from tests.unit.cycle.test_cycle import ACTIVE, PERIOD, POLICY, UNEVEN, WARM, moved

LIMITED = replace(POLICY, limits=Limits(failures_in_a_row=3, failures_in_window=5, window_ms=10 * PERIOD))


def waiting_for(*commands: str, dry_run: bool = False, expires_at_ms: int = INTERVAL + PERIOD) -> Memory:
    flights = {
        command: InFlight(
            action="unload",
            bundle=f"gone-{command}",
            source="hot",
            destination="cold",
            interval=INTERVAL - PERIOD,
            expires_at_ms=expires_at_ms,
            dry_run=dry_run,
        )
        for command in commands
    }
    return replace(WARM, in_flight=flights)


def results(status: str, *commands: str) -> list[CommandResult]:
    return [CommandResult(id=command, status=status) for command in commands]


def at(number: int, memory: Memory, *answers: CommandResult, controls: Controls = ACTIVE) -> tuple[Decision, Memory]:
    return decide(replace(UNEVEN, as_of_ms=INTERVAL + number * PERIOD), answers, memory, controls, LIMITED)


def tripped(decision: Decision) -> bool:
    told = [verdict for verdict in decision.verdicts if verdict.reason is Reason.BREAKER]
    assert not told or decision.commands == ()
    return bool(told)


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_failures_in_a_row_stop_everything_and_the_next_interval_too(status: str) -> None:
    decision, memory = at(0, waiting_for("a", "b", "c"), *results(status, "a", "b", "c"))
    assert tripped(decision)
    assert memory.breaker.tripped_at == INTERVAL
    assert decision.summary.endswith(
        "; Breaker: 3 commands failed without a success between them (failures_in_a_row = 3): nothing is issued;"
        " mend the cause, then run `trimtab resume`"
    )
    later, memory = at(1, memory)
    assert tripped(later)
    assert memory.breaker.tripped_at == INTERVAL


def test_a_command_without_an_answer_counts_as_failed() -> None:
    long_ago = INTERVAL - POLICY.executor_timeout_ms - 2 * PERIOD - 1
    decision, _ = at(0, waiting_for("a", "b", "c", expires_at_ms=long_ago))
    assert tripped(decision)


@pytest.mark.parametrize("status", ["expired", "fenced", "obsolete", "skipped", "dry_run"])
def test_commands_that_were_not_carried_out_do_not_count_as_failed(status: str) -> None:
    decision, memory = at(0, waiting_for("a", "b", "c"), *results(status, "a", "b", "c"))
    assert not tripped(decision)
    assert memory.failures == {}


def test_a_failed_or_lost_dry_run_does_not_count_as_failed() -> None:
    long_ago = INTERVAL - POLICY.executor_timeout_ms - 2 * PERIOD - 1
    for memory, answers in (
        (waiting_for("a", "b", "c", dry_run=True), results("failed", "a", "b", "c")),
        (waiting_for("a", "b", "c", dry_run=True, expires_at_ms=long_ago), []),
    ):
        assert not tripped(at(0, memory, *answers)[0])


def test_a_success_resets_the_failures_in_a_row_but_not_in_the_window() -> None:
    memory = waiting_for("a", "b", "c", "d", "e", "f")
    decision, memory = at(0, memory, *results("failed", "a", "b"), *results("done", "c"))
    assert not tripped(decision)
    assert moved(decision)
    assert (memory.breaker.in_a_row, len(memory.failures)) == (0, 2)
    decision, memory = at(1, memory, *results("failed", "d", "e"))
    assert not tripped(decision)
    flight = replace(waiting_for("g").in_flight["g"], bundle="other")
    decision, memory = at(2, replace(memory, in_flight={"g": flight, "h": flight}), *results("failed", "g"))
    assert tripped(decision), "three in a row, and five in the window"


def test_failures_leave_the_window() -> None:
    memory = replace(WARM, failures={str(n): INTERVAL - 9 * PERIOD for n in range(4)})
    one = waiting_for("a").in_flight
    assert tripped(at(0, replace(memory, in_flight=one), *results("failed", "a"))[0])
    older = replace(memory, failures={str(n): INTERVAL - 10 * PERIOD for n in range(4)}, in_flight=one)
    decision, after = at(0, older, *results("failed", "a"))
    assert not tripped(decision)
    assert after.failures == {"a": INTERVAL}


def test_only_a_resume_after_the_trip_closes_the_breaker() -> None:
    before = Controls(mode="active", resumed_ms=5)
    decision, memory = at(0, waiting_for("a", "b", "c"), *results("failed", "a", "b", "c"), controls=before)
    assert tripped(decision)
    decision, memory = at(1, memory, controls=before)
    assert tripped(decision), "this resume is older"
    decision, memory = at(2, memory, controls=replace(before, resumed_ms=6))
    assert not tripped(decision)
    assert moved(decision)
    assert (memory.breaker, memory.failures) == (Breaker(), {})
