"""Brokers that do not answer."""

from controller.collector.health import Health

PERIOD, T = 60_000, 600_000
A = "a:8080"


def test_a_broker_is_asked_again_at_the_next_interval_then_after_ever_more_but_never_too_many() -> None:
    health = Health(PERIOD)
    asked = []
    for interval in range(T, T + 20 * PERIOD, PERIOD):
        if health.may_ask(A, interval=interval):
            asked.append((interval - T) // PERIOD)
            health.failed(A, interval=interval)
    assert asked == [0, 1, 3, 7, 11, 15, 19]


def test_a_failing_broker_is_logged_once() -> None:
    health = Health(PERIOD)
    assert [health.failed(A, interval=T + i * PERIOD) for i in range(3)] == [True, False, False]
    assert health.failures(A) == 3


def test_a_broker_that_answers_again_is_as_good_as_any_other() -> None:
    health = Health(PERIOD)
    health.failed(A, interval=T)
    health.failed(A, interval=T + PERIOD)
    assert health.answered(A) == 2
    assert health.answered(A) == 0
    assert health.may_ask(A, interval=T + PERIOD)
    assert health.failed(A, interval=T + 2 * PERIOD)


def test_a_broker_that_has_gone_is_forgotten_and_asked_at_once_when_it_comes_back() -> None:
    health = Health(PERIOD)
    for broker in (A, "b:8080"):
        health.failed(broker, interval=T)
        health.failed(broker, interval=T + PERIOD)
    health.retain({"b:8080", "c:8080"})
    assert (health.failures(A), health.failures("b:8080")) == (0, 2)
    assert health.may_ask(A, interval=T + 2 * PERIOD)
    assert not health.may_ask("b:8080", interval=T + 2 * PERIOD)
