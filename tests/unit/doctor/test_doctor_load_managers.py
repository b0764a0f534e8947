"""The doctor's findings about the brokers' load managers."""

import pytest

from controller.doctor.facts import BrokerConfFacts, BrokerFacts
from tests.doctor import OFF, A, B, C, broker, only, problems, pulsar

KEY = "loadManagerClassName"
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


def running(name: str, load_manager: str) -> BrokerFacts:
    return broker(name, settings={**OFF, KEY: load_manager})


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
        "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl",
        "com.acme.ModularLoadManagerImpl",
        "com.acme.OurLoadManager",
    ],
)
def test_a_load_manager_that_trimtab_does_not_balance_is_an_error_that_says_why(name: str) -> None:
    found = only(pulsar=pulsar(*(running(each, name) for each in (A, B, C))))
    assert (found.code, found.severity, found.objects) == ("load-manager-unsupported", "error", (A, B, C))
    assert name.removeprefix("org.apache.pulsar.broker.loadbalance.").removeprefix("impl.") in found.observed
    assert "ModularLoadManagerImpl" in found.advice


def test_brokers_that_run_two_load_managers_are_an_error() -> None:
    found = only(pulsar=pulsar(running(A, MODULAR), running(B, EXTENSIBLE), running(C, MODULAR)))
    assert (found.code, found.severity, found.objects) == ("load-managers-differ", "error", (B,))


def test_a_dynamic_setting_is_what_brokers_will_run() -> None:
    found = only(pulsar=pulsar(dynamic={KEY: EXTENSIBLE}))
    assert (found.code, found.objects) == ("load-managers-differ", ("the dynamic settings",))
    assert problems(pulsar=pulsar(dynamic={KEY: MODULAR})) == []


def test_trimtab_follows_the_rules_of_the_brokers_own_load_manager() -> None:
    ours = BrokerConfFacts(load_manager="ExtensibleLoadManagerImpl")
    found = only(broker_conf=ours)
    assert (found.code, found.severity, found.objects) == ("load-manager-not-ours", "error", (A, B, C))
    extensible = pulsar(*(running(each, EXTENSIBLE) for each in (A, B, C)))
    assert problems(broker_conf=ours, pulsar=extensible) == []
    assert only(pulsar=extensible, broker_conf=BrokerConfFacts(load_manager="ModularLoadManagerImpl")).objects


def test_a_broker_that_does_not_tell_is_another_checks_matter() -> None:
    without = {key: value for key, value in OFF.items() if key != KEY}
    assert problems(pulsar=pulsar(broker(A, settings=without), broker(B))) == []
    assert only(pulsar=pulsar(broker(A, settings=None), broker(B))).code == "balancing-unknown"
