"""Commands of a dry run move nothing: they keep its pace, and hold nothing back once the mode is active."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from controller.cycle import decide, without_dry_run
from controller.cycle.limits import Budget, Limits
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.batches import snapshots
from tests.cluster import INTERVAL
from tests.logs import Shape, located, log
from tests.pure_controller import POLICY as ENGINES_POLICY
from tests.unit.cycle.test_guardrails_grace import POLICY, VIEW, WARM

MINUTE = 60_000
DRY, ACTIVE, OBSERVE = (Controls(mode=mode) for mode in ("dry_run", "active", "observe"))
TIGHT = Limits(window=Budget(unloads=2), in_flight=2)


def decided(
    memory: Memory,
    controls: Controls,
    minute: int,
    results: Sequence[CommandResult] = (),
    limits: Limits | None = None,
) -> tuple[Decision, Memory]:
    """The decision *minute* minutes later, on the same load; the view is made as the engine makes it."""
    policy = POLICY if limits is None else replace(POLICY, limits=limits)
    memory = without_dry_run(memory, controls)
    recent = memory.recently_unloaded.keys() | memory.dry_run_unloaded.keys()
    view = replace(
        VIEW,
        as_of_ms=INTERVAL + minute * MINUTE,
        recently_unloaded=np.array([name in recent for name in VIEW.bundles.names]),
    )
    return decide(view, results, memory, controls, policy)


def answered(decision: Decision, status: str) -> list[CommandResult]:
    return [CommandResult(id=each.id, status=status, detail="") for each in decision.commands]


def moved(decision: Decision) -> list[str]:
    return [each.bundle for each in decision.commands]


@pytest.mark.parametrize("status", ["dry_run", "failed", None])
def test_bundles_of_a_dry_run_move_in_the_first_active_interval(status: str | None) -> None:
    rehearsed, memory = decided(WARM, DRY, 0)
    results = [] if status is None else answered(rehearsed, status)
    assert moved(rehearsed) == ["big", "small"]
    assert moved(decided(memory, ACTIVE, 1, results)[0]) == ["big", "small"]


@pytest.mark.parametrize("between", [DRY, OBSERVE, replace(DRY, paused=True), replace(ACTIVE, paused=True)])
def test_they_move_whatever_lies_between_the_dry_run_and_the_active_mode(between: Controls) -> None:
    rehearsed, memory = decided(WARM, DRY, 0)
    nothing, memory = decided(memory, between, 1, answered(rehearsed, "failed"))
    assert moved(nothing) == []
    assert moved(decided(memory, ACTIVE, 2)[0]) == ["big", "small"]


def test_a_dry_run_uses_no_budget_of_real_moves_and_no_place_in_flight() -> None:
    rehearsed, memory = decided(WARM, DRY, 0, limits=TIGHT)
    first, memory = decided(memory, ACTIVE, 1, limits=TIGHT)
    assert moved(rehearsed) == moved(first) == ["big", "small"]
    assert len(memory.in_flight) == len(memory.issued) == 2


def test_a_dry_run_keeps_the_pace_of_a_real_run() -> None:
    rehearsed, memory = decided(WARM, DRY, 0)
    assert moved(decided(memory, DRY, 1, answered(rehearsed, "dry_run"))[0]) == []


def test_real_moves_still_hold_after_a_dry_run_in_between() -> None:
    real, memory = decided(WARM, ACTIVE, 0)
    nothing, memory = decided(memory, DRY, 1, answered(real, "done"))
    again, memory = decided(memory, ACTIVE, 2)
    assert moved(nothing) == moved(again) == []
    assert {each.reason for each in again.verdicts if each.subject == "big"} == {Reason.RECENTLY_UNLOADED}


def test_verdicts_do_not_say_that_a_dry_run_unloaded_a_bundle() -> None:
    rehearsed, memory = decided(WARM, DRY, 0)
    waiting, _ = decided(memory, DRY, 1)
    rested, _ = decided(memory, DRY, 2, answered(rehearsed, "dry_run"))
    for decision in (waiting, rested):
        reasons = {each.reason for each in decision.verdicts}
        assert Reason.DRY_RUN in reasons
        assert not reasons & {Reason.RECENTLY_UNLOADED, Reason.IN_FLIGHT}


def test_failures_of_real_moves_are_remembered_when_a_dry_run_fails_too() -> None:
    real, memory = decided(WARM, ACTIVE, 0)
    _, memory = decided(memory, DRY, 1, answered(real, "failed"))
    _, memory = decided(memory, ACTIVE, 2)
    assert memory.failed["big"].times == 1


def test_strategies_expect_nothing_of_moves_that_a_dry_run_issued() -> None:
    _, memory = decided(WARM, DRY, 0)
    promises = {"big": MovePromise(source="hot", destination="cold"), "z": MovePromise(source="x", destination="y")}
    peak = replace(memory, shedder=PeakHistory(promises=promises))
    found = without_dry_run(peak, ACTIVE).shedder
    assert isinstance(found, PeakHistory)
    assert set(found.promises) == {"z"}
    cooling = replace(memory, shedder=TransferHistory(recently_unloaded_brokers={"hot": INTERVAL, "x": INTERVAL}))
    assert without_dry_run(cooling, ACTIVE).shedder == TransferHistory(recently_unloaded_brokers={"x": INTERVAL})


@pytest.mark.parametrize("seed", range(3))
def test_what_is_decided_after_a_dry_run_is_what_is_decided_after_observing(seed: int) -> None:
    closed = snapshots([*located(log(Shape(calm=True, seed=seed, intervals=8)))])

    def run(mode: str) -> tuple[int, list[object]]:
        """Commands of the first four intervals, which have *mode*; and those after it, with what the shedder saw."""
        memory, before, after = ENGINES_POLICY.initial_memory(7), 0, list[object]()
        for number, snapshot in enumerate(closed):
            controls = Controls(mode=mode if number < 4 else "active")
            entry = decide_interval([snapshot], memory, controls, ENGINES_POLICY)
            memory = entry.memory
            if number < 4:
                before += len(entry.decision.commands)
            else:
                after.append((entry.decision.commands, memory.shedder, memory.in_flight, memory.recently_unloaded))
        return before, after

    (rehearsed, after_dry_run), (nothing, after_observing) = run("dry_run"), run("observe")
    assert rehearsed > 0
    assert nothing == 0
    assert after_dry_run == after_observing
