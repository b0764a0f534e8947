"""Whom a bundle that was just unloaded is looked up at, and how often."""

import threading
from collections.abc import Callable

from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.settling import settle
from tests.commands import A, B, C

#: Of a lookup: at whom, and whether that broker is to take the bundle.
PlanRequest = list[tuple[str, bool]]


def asked_for(answer: Callable[[str, bool], str], *, leader: str = C, pauses: list[float] | None = None) -> PlanRequest:
    """Who is asked for a bundle from A to B, in order of their names."""
    asked: PlanRequest = []

    def ask(broker: str, *, authoritative: bool = False) -> str:
        asked.append((broker, authoritative))
        return answer(broker, authoritative)

    slept = [] if pauses is None else pauses
    settle(ask, source=A, destination=B, leader=leader, sleep=slept.append)
    return sorted(asked)


def test_the_leader_is_asked_while_the_destination_takes_the_bundle() -> None:
    asked = threading.Barrier(2)

    def answer(broker: str, _: bool) -> str:
        asked.wait(5)
        return "" if broker == C else B

    assert asked_for(answer) == [(B, True), (C, False)]


def test_brokers_that_take_the_source_for_the_owner_are_asked_four_times() -> None:
    pauses = list[float]()
    assert asked_for(lambda *_: A, pauses=pauses) == [(B, True)] * 4 + [(C, False)] * 4
    assert pauses == [0.005, 0.01, 0.02, 0.04]


def test_a_leader_that_has_sent_us_on_is_not_asked_again() -> None:
    known = iter([A, A, B])
    asked = asked_for(lambda broker, _: "" if broker == C else next(known))
    assert asked == [(B, True)] * 3 + [(C, False)]


def test_a_leader_that_is_the_destination_is_asked_as_by_a_client_and_to_take_it_once_it_has_forgotten() -> None:
    assert asked_for(lambda *_: B, leader=B) == [(B, False)]
    assert asked_for(lambda _, taking: B if taking else "", leader=B) == [(B, False), (B, True)]


def test_a_bundle_that_another_broker_has_by_then_is_left_there() -> None:
    assert asked_for(lambda *_: C) == [(B, True), (C, False)]


def test_that_nobody_answers_is_no_error() -> None:
    def nobody(broker: str, _: bool) -> str:
        raise PulsarError(f"{broker}: no answer", away=True)

    assert asked_for(nobody) == [(B, True)] * 4 + [(C, False)] * 4
