"""Whom a bundle that was just unloaded is looked up at, in which order, and how often."""

import threading
from collections.abc import Callable

from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.settling import settle
from tests.commands import A, B, C

Asked = list[tuple[str, bool]]


class Brokers:
    """They answer by a function of the broker, and of whether it is to take the bundle; who was asked is kept."""

    def __init__(self, answer: Callable[[str, bool], str]) -> None:
        self._answer = answer
        self.asked: Asked = []

    def __call__(self, broker: str, *, authoritative: bool = False) -> str:
        self.asked.append((broker, authoritative))
        return self._answer(broker, authoritative)


def asked_for(
    answer: Callable[[str, bool], str], *, leader: str = C, head_start: float = 0.0, pauses: list[float] | None = None
) -> Asked:
    """Who is asked for a bundle from A to B."""
    brokers, slept = Brokers(answer), pauses if pauses is not None else []
    settle(brokers, source=A, destination=B, leader=leader, head_start=head_start, sleep=slept.append)
    return brokers.asked


def test_the_leader_is_asked_while_the_destination_takes_the_bundle() -> None:
    leader_asked = threading.Event()

    def answer(broker: str, _: bool) -> str:
        if broker == C:
            leader_asked.set()
            return ""
        assert leader_asked.wait(5)
        return B

    assert asked_for(answer, head_start=0.001) == [(B, True), (C, False)]


def test_the_leader_is_asked_also_where_the_destination_was_quick() -> None:
    assert asked_for(lambda *_: B, head_start=5.0) == [(B, True), (C, False)]


def test_while_the_destination_takes_the_source_for_the_owner_the_leader_is_not_asked() -> None:
    pauses = list[float]()
    assert asked_for(lambda *_: A, head_start=5.0, pauses=pauses) == [(B, True)] * 4
    assert pauses == [0.005, 0.01, 0.02, 0.04]


def test_a_leader_that_has_sent_us_on_is_not_asked_again() -> None:
    known = iter([A, B])
    second = threading.Event()

    def answer(broker: str, _: bool) -> str:
        if broker == C:
            second.set()
            return ""
        assert second.wait(5)
        return next(known)

    assert sorted(asked_for(answer)) == [(B, True), (B, True), (C, False)]


def test_a_leader_that_is_the_destination_is_asked_as_by_a_client_and_to_take_it_once_it_has_forgotten() -> None:
    assert asked_for(lambda *_: B, leader=B) == [(B, False)]
    assert asked_for(lambda _, taking: B if taking else "", leader=B) == [(B, False), (B, True)]


def test_a_bundle_that_another_broker_has_by_then_is_left_there() -> None:
    assert asked_for(lambda broker, _: C, head_start=5.0) == [(B, True), (C, False)]


def test_that_nobody_answers_is_no_error() -> None:
    def nobody(broker: str, _: bool) -> str:
        raise PulsarError(f"{broker}: no answer", away=True)

    assert asked_for(nobody, head_start=5.0) == [(B, True)] * 4
    assert asked_for(nobody, leader=B) == [(B, False)] * 4
