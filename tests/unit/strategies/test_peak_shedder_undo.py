"""A move of PeakShedder that made things worse goes back once, where that pays; what is to be undone lapses."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.model.decision import UnloadDecision
from controller.model.load import ClusterView
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder import shedder as module
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory, PendingUndo
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MINUTE = 60_000
SHEDDER = PeakShedder(hold=1)
#: No plan is worth its moves, so that what is undone is seen alone.
DEAR = replace(SHEDDER, move_cost=1e9)
#: Of each broker's bundles, MB/s; each MB/s takes 1 % of the CPU.
WORSE = {"a": {"a0": 10.0}, "b": {"x": 20.0, "b0": 50.0}, "c": {"c0": 20.0}}
EVEN = {"a": {"a0": 30.0}, "b": {"x": 20.0, "b0": 10.0}, "c": {"c0": 30.0}}
UNDO = PendingUndo(source="a:8080", destination="b:8080", noted_ms=MINUTE)
NOTED = PeakHistory(undo={"x": UNDO})


def cluster(
    brokers: Mapping[str, Mapping[str, float]], at: int, recent: tuple[str, ...] = (), sent: str = ""
) -> ClusterView:
    made = [
        Broker(f"{name}:8080", cpu=sum(of.values()) / 100, bundles={k: Bundle(mbytes_in=v) for k, v in of.items()})
        for name, of in brokers.items()
    ]
    view = cluster_view(*made, as_of_ms=at * MINUTE, recently_unloaded=recent)
    return view.with_preallocated(view.bundles.code_of[sent], 2) if sent else view


def moves(decision: UnloadDecision) -> list[tuple[str, str]]:
    return [(unload.bundle, unload.destination) for unload in decision.unloads]


def test_a_move_that_made_things_worse_is_noted_to_be_undone_and_forgotten_once_it_may_move() -> None:
    promise = MovePromise(source="a:8080", destination="b:8080", promised=0.3, source_before=0.4, mean=0.3)
    memory = PeakHistory(promises={"x": replace(promise, rounds=1)})
    _, noted = SHEDDER.decide(cluster(WORSE, 1, recent=("x", "b0")), memory)
    assert noted.undo == {"x": UNDO}
    _, still = SHEDDER.decide(cluster(WORSE, 3, recent=("x", "b0")), noted)
    assert still.undo == noted.undo
    decision, done = SHEDDER.decide(cluster(WORSE, 40, recent=("b0",)), still)
    assert moves(decision) == [("x", "a:8080")]
    assert done.undo == {}


def test_an_undoing_that_pays_is_made_where_no_other_plan_is_worth_it() -> None:
    decision, memory = DEAR.decide(cluster(WORSE, 1), NOTED)
    assert moves(decision) == [("x", "a:8080")]
    assert (memory.undo, memory.proven.undone) == ({}, 1)
    assert replace(DEAR, undo=False).decide(cluster(WORSE, 1), NOTED)[0].unloads == ()
    assert DEAR.decide(cluster(WORSE, 1), PeakHistory())[0].unloads == ()


def test_a_bundle_does_not_go_back_to_a_broker_that_is_full_in_another_resource() -> None:
    made = [
        Broker(f"{name}:8080", cpu=sum(of.values()) / 100, bundles={k: Bundle(mbytes_in=v) for k, v in of.items()},
               bandwidth_in=0.9 if name == "a" else 0.1)
        for name, of in WORSE.items()
    ]  # fmt: skip
    assert DEAR.decide(cluster_view(*made, as_of_ms=MINUTE), NOTED)[0].unloads == ()


def test_a_bundle_goes_back_for_the_least_gain_and_to_no_broker_that_it_would_overfill() -> None:
    little = {"a": {"a0": 10.0}, "b": {"x": 3.0, "b0": 50.0}, "c": {"c0": 20.0}}
    assert DEAR.decide(cluster(little, 1), NOTED)[0].unloads == ()
    assert moves(replace(DEAR, min_gain_percent=2.0).decide(cluster(little, 1), NOTED)[0]) == [("x", "a:8080")]
    full = {"a": {"a0": 85.0}, "b": {"x": 20.0, "b0": 100.0}, "c": {"c0": 20.0}}
    assert ("x", "a:8080") not in moves(DEAR.decide(cluster(full, 1), NOTED)[0])


@pytest.mark.parametrize(("at", "undone"), [(61, True), (62, False), (0, False)])
def test_after_an_hour_nothing_is_undone(at: int, undone: bool) -> None:
    decision, memory = DEAR.decide(cluster(WORSE, at), NOTED)
    assert (moves(decision) == [("x", "a:8080")]) is undone
    assert memory.undo == {}


@pytest.mark.parametrize("owner", ["a", "c"])
def test_a_bundle_that_somebody_else_moved_is_not_moved_back(owner: str) -> None:
    moved = {"a": {"a0": 10.0}, "b": {"b0": 50.0}, "c": {"c0": 20.0}}
    moved[owner]["x"] = 20.0
    _, memory = DEAR.decide(cluster(moved, 2, recent=("x",)), NOTED)
    assert memory.undo == {}
    assert DEAR.decide(cluster(WORSE, 3), memory)[0].unloads == ()


def test_a_bundle_on_its_way_is_waited_for() -> None:
    _, memory = DEAR.decide(cluster(WORSE, 2, recent=("b0",), sent="x"), NOTED)
    assert memory.undo == NOTED.undo


def test_where_no_broker_is_too_full_nothing_is_left_to_undo() -> None:
    decision, memory = DEAR.decide(cluster(EVEN, 2), NOTED)
    assert (decision.unloads, memory.undo) == ((), {})


def test_when_brokers_come_or_go_nothing_is_left_to_undo() -> None:
    _, memory = DEAR.decide(cluster(WORSE, 2, recent=("x",)), replace(NOTED, brokers=("a:8080", "b:8080")))
    assert memory.undo == {}


def test_a_move_back_promises_nothing_so_that_it_is_never_undone_itself() -> None:
    _, memory = DEAR.decide(cluster(WORSE, 1), NOTED)
    assert memory.promises == {}
    worse_still = {"a": {"a0": 70.0, "x": 20.0}, "b": {"b0": 5.0}, "c": {"c0": 20.0}}
    for at in range(2, 6):
        _, memory = DEAR.decide(cluster(worse_still, at, recent=("x",)), memory)
        assert memory.undo == {}


def test_what_is_left_of_a_plan_that_was_refused_is_not_carried_out_after_a_move_back() -> None:
    many = {"a": {"a0": 10.0}, "b": {"x": 20.0, **{f"b{i}": 5.0 for i in range(10)}}, "c": {"c0": 20.0}}
    decision, memory = DEAR.decide(cluster(many, 1), NOTED)
    assert moves(decision) == [("x", "a:8080")]
    assert memory.plan == ()


def test_what_earlier_moves_promised_counts_the_move_back() -> None:
    promise = MovePromise(source="c:8080", destination="a:8080", promised=0.1, source_before=0.4, mean=0.33)
    _, memory = DEAR.decide(cluster(WORSE, 1), replace(NOTED, promises={"a0": promise}))
    assert memory.promises["a0"].promised == pytest.approx(0.3, abs=0.02)


def test_a_move_back_that_the_checker_refuses_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "flaws", lambda *_: ["wrong"])
    decision, memory = DEAR.decide(cluster(WORSE, 1), NOTED)
    assert (decision.unloads, memory.proven.undone) == ((), 0)
