"""What a decision held back of a plan, by its journal entry: the guardrails that pass by themselves, by name."""

from dataclasses import replace

from controller.cycle.limits import Budget, Limits
from controller.model.memory import Issued, Roster
from controller.offline.plans.blockers import blocked_by
from controller.offline.plans.moves import NamedMove
from tests.journal_entries import entry
from tests.records import PERIOD, T

MOVE = NamedMove(bundle="acme/own/0x00000000_0x80000000", source="a", destination="b", connections=10)


def held(limits: Limits, summary: str = "", *, maintenance: str = "", **memory: object) -> str:
    found = entry(T, **memory)
    found = replace(
        found,
        decision=replace(found.decision, summary=f"3 bundles on 2 brokers: {summary}"),
        controls=replace(found.controls, maintenance=maintenance),
    )
    return blocked_by(found, limits, PERIOD, [MOVE])


def issued(number: int, interval: int) -> dict[str, Issued]:
    return {f"{interval} {i}": replace(MOVE.issued(interval), namespace=f"acme/{i}") for i in range(number)}


def test_a_freeze_and_a_window_are_told_with_their_reason() -> None:
    limits = Limits(freeze_intervals=2)
    went = Roster(brokers=("a", "b"), went={"c": T - PERIOD, "old": T - 5 * PERIOD})
    assert held(limits, "Frozen, 1 commands held back", roster=went) == "guardrails.freeze_intervals (went: c)"
    silent = "guardrails.freeze_share: too many brokers have no data"
    assert held(limits, "Frozen, 1 commands held back", roster=Roster()) == silent
    shut = held(limits, "Maintenance, 1 commands held back", maintenance="outside of the allowed windows")
    assert shut == "guardrails.maintenance (outside of the allowed windows)"
    assert held(limits, "ObserveOnly, 1 commands held back") == ""


def test_what_this_decision_issued_counts_once_in_the_window_and_in_its_interval() -> None:
    now = issued(2, T)
    assert held(Limits(window=Budget(unloads=4)), issued=now) == ""
    assert held(Limits(window=Budget(unloads=2)), issued=now) == "2 unloads an hour (guardrails.window.unloads)"
    assert held(Limits(interval=Budget(unloads=2)), issued=now) == "2 unloads an interval (guardrails.interval.unloads)"
    earlier = issued(2, T - PERIOD)
    assert held(Limits(interval=Budget(unloads=2)), issued=earlier) == ""
    assert held(Limits(window=Budget(unloads=2)), issued=earlier) == "2 unloads an hour (guardrails.window.unloads)"


def test_a_budget_that_never_lets_a_move_through_does_not_pass_by_itself() -> None:
    assert held(Limits(interval=Budget(connections=9))) == ""
