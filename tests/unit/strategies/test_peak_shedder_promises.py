"""Moves of PeakShedder are looked at two rounds later; what is found is remembered, and acted on."""

import pytest

from controller.cycle.guardrails.breaker import watched, with_failed_predictions
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.load import ClusterView
from controller.model.memory import Memory
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MINUTE = 60_000
SHEDDER = PeakShedder(hold=1)
#: Of each broker's bundles, MB/s; each MB/s takes 1 % of the CPU.
START = {"a": {"a0": 30.0, "a1": 20.0, "a2": 15.0}, "b": {"b0": 20.0}, "c": {"c0": 10.0}}


def cluster(brokers: dict[str, dict[str, float]], at: int, recent: tuple[str, ...] = ()) -> ClusterView:
    made = [
        Broker(f"{name}:8080", cpu=sum(of.values()) / 100, bundles={k: Bundle(mbytes_in=v) for k, v in of.items()})
        for name, of in brokers.items()
    ]
    return cluster_view(*made, as_of_ms=at * MINUTE, recently_unloaded=recent)


def carried_out(brokers: dict[str, dict[str, float]], moves: dict[str, str]) -> dict[str, dict[str, float]]:
    load = {bundle: mbytes for of in brokers.values() for bundle, mbytes in of.items()}
    owner = {bundle: name for name, of in brokers.items() for bundle in of} | moves
    return {name: {bundle: load[bundle] for bundle in load if owner[bundle] == name} for name in brokers}


def moved() -> tuple[dict[str, str], PeakHistory]:
    """Bundle -> the broker that it is sent to in the first round, and the memory then."""
    decision, memory = SHEDDER.decide(cluster(START, 0), PeakHistory())
    return {unload.bundle: unload.destination.removesuffix(":8080") for unload in decision.unloads}, memory


def after(memory: PeakHistory, brokers: dict[str, dict[str, float]], *rounds: int) -> PeakHistory:
    recent = tuple(moved()[0])
    for at in rounds:
        _, memory = SHEDDER.decide(cluster(brokers, at, recent), memory)
    return memory


@pytest.mark.slow
def test_a_move_that_does_what_it_promised_is_verified_after_two_rounds() -> None:
    moves, memory = moved()
    assert set(memory.promises) == set(moves) != set()
    there = carried_out(START, moves)
    assert after(memory, there, 1).proven.verified == 0
    found = after(memory, there, 1, 2)
    assert (found.proven.verified, found.proven.broken, found.promises) == (len(moves), 0, {})
    assert found.proven.error == pytest.approx(0.0, abs=0.01)


def fuller(moves: dict[str, str]) -> dict[str, dict[str, float]]:
    """All as planned, but a broker that got a bundle has much more to do since then."""
    there = carried_out(START, moves)
    there[next(iter(moves.values()))]["d0"] = 45.0
    return there


@pytest.mark.slow
def test_a_destination_above_its_promise_counts_for_the_breaker() -> None:
    moves, memory = moved()
    found = after(memory, fuller(moves), 1, 2)
    assert found.proven.broken >= 1
    assert found.proven.error > 0.02
    assert set(found.broken) <= set(moves)
    failed = with_failed_predictions(Memory(shedder=found), 2 * MINUTE).failures
    assert failed == {f"{bundle}@{2 * MINUTE}": 2 * MINUTE for bundle in found.broken}
    assert with_failed_predictions(Memory(shedder=found), 3 * MINUTE).failures == {}
    later = after(found, fuller(moves), 3)
    assert later.broken == ()
    assert later.proven.error == pytest.approx(0.99 * found.proven.error, rel=1e-9)


def test_a_load_that_the_whole_cluster_has_more_breaks_no_promise() -> None:
    moves, memory = moved()
    there = carried_out(START, moves)
    more = {name: {bundle: 1.6 * mbytes for bundle, mbytes in of.items()} for name, of in there.items()}
    assert after(memory, more, 1, 2, 3).proven.broken == 0


def test_a_bundle_with_a_third_broker_has_strayed() -> None:
    moves, memory = moved()
    assert moves["a0"] == "c"
    found = after(memory, carried_out(START, {**moves, "a0": "b"}), 1, 2)
    assert (found.proven.strayed, "a0" in found.broken) == (1, True)


def test_a_bundle_that_stayed_where_it_was_proves_nothing() -> None:
    _, memory = moved()
    found = after(memory, START, 1, 2)
    assert (found.proven.verified, found.proven.broken) == (0, 0)


def test_promises_end_when_brokers_come_or_go() -> None:
    _, memory = moved()
    assert after(memory, {**START, "d": {}}, 1).promises.keys().isdisjoint(memory.promises)


def test_moves_that_were_held_back_promise_nothing() -> None:
    decision, memory = SHEDDER.decide(cluster(START, 0), PeakHistory())
    held = decision.unloads[:1]
    found = memory.revert_unissued(PeakHistory(), held, decision.unloads[1:])
    assert set(found.promises) == {unload.bundle for unload in decision.unloads[1:]}


def test_the_breaker_tells_moves_that_broke_their_promise_from_commands_that_failed() -> None:
    limits = Limits(failures_in_window=3, window_ms=60 * MINUTE)
    failures = {
        "2b1d4c1e-0000-5000-8000-000000000000": MINUTE,
        "a/b/0x0_0x1@60000": MINUTE,
        "a/b/0x1_0x2@60000": MINUTE,
    }
    _, verdict = watched(Memory(failures=failures), MINUTE, Controls(mode="active"), limits)
    assert verdict is not None
    told = "1 commands failed, and 2 moves did not do what they promised, within 3600 s (failures_in_window = 3)"
    assert verdict.detail.startswith(told)
