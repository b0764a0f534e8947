"""Promises of PeakShedder's moves lapse where an operator's plan, or the rebalancer, touches their brokers."""

from dataclasses import replace

from controller.cycle import decide
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.memory import Memory
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory
from tests.cluster import INTERVAL, broker, view
from tests.unit.cycle.test_cycle import POLICY, WARM

BUNDLES = {name: f"acme/own/0x{number}0000000_0x{number + 1}0000000" for number, name in enumerate("pqrs")}
P, Q, R, S = BUNDLES.values()
CLUSTER = view(
    broker("a:80", usage=0.4, **{P: 10.0, S: 10.0}),
    broker("b:80", usage=0.4, **{Q: 20.0}),
    broker("c:80", usage=0.4, **{R: 20.0}),
    broker("d:80", usage=0.4),
)


def promise(source: str, destination: str) -> MovePromise:
    return MovePromise(source=source, destination=destination, promised=0.3, mean=0.3)


REMEMBERED = PeakHistory(
    brokers=("a:80", "b:80", "c:80", "d:80"),
    promises={Q: promise("c:80", "b:80"), R: promise("d:80", "c:80"), S: promise("d:80", "a:80")},
)
MEMORY = replace(WARM, shedder=REMEMBERED)


def left(memory: Memory) -> PeakHistory:
    assert isinstance(memory.shedder, PeakHistory)
    return memory.shedder


def test_an_operators_plan_ends_the_promises_of_the_brokers_that_it_touches() -> None:
    orders = Orders(
        plan="0f" * 32,
        step=1,
        wave=1,
        waves=1,
        moves=(OrderedMove(bundle=P, source="a:80", destination="b:80"),),
        checked_at=INTERVAL - 60_000,
        expires_at_ms=INTERVAL + 60_000,
        holder="one",
        by="ada",
    )
    policy = replace(POLICY, shedder=PeakShedder())
    found, memory = decide(CLUSTER, [], MEMORY, Controls(mode="active", orders=orders), policy)
    assert [each.bundle for each in found.commands] == [P]
    assert set(left(memory).promises) == {R}
    paused = Controls(mode="active", orders=orders, paused=True)
    assert left(decide(CLUSTER, [], MEMORY, paused, policy)[1]) == REMEMBERED


def test_a_bundle_that_others_move_has_no_promise_left_whatever_its_brokers_are() -> None:
    shedder = REMEMBERED.invalidate_predictions({R}, {"a:80", "b:80"})
    assert R not in shedder.promises


def test_moves_of_the_shedder_itself_end_no_promise() -> None:
    hot = view(broker("a:80", usage=0.9, **{P: 50.0, S: 40.0}), broker("b:80", usage=0.2, **{Q: 20.0}))
    policy = replace(POLICY, shedder=PeakShedder(hold=1))
    found, memory = decide(hot, [], replace(WARM, shedder=PeakHistory()), Controls(mode="active"), policy)
    assert {each.bundle for each in found.commands} == set(left(memory).promises) != set()
