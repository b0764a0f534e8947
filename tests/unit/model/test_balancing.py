"""The switches of brokers' own balancing, and which of them act beside trimtab."""

import json
from pathlib import Path

import pytest

from controller.model.balancing import SHEDDING, SPLITTING, Balancing, at_work, balancing_of
from tests.fake_pulsar import SAMPLES

OFF = Balancing(enabled=True, shedding=False, splitting=False)
SHEDS, SPLITS = OFF._replace(shedding=True), OFF._replace(splitting=True)
CONF = {"loadBalancerEnabled": "true", SHEDDING: "false", SPLITTING: "false"}
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


@pytest.mark.parametrize("sample", ["brokers_configuration_runtime.json", "brokers_configuration_runtime_5.json"])
def test_what_real_brokers_answer_says_that_their_balancing_is_off(sample: str) -> None:
    assert balancing_of(json.loads(Path(SAMPLES, sample).read_bytes())) == OFF


@pytest.mark.parametrize("value", ["true", "TRUE", " True\n"])
def test_a_switch_is_on_however_true_is_written(value: str) -> None:
    assert balancing_of({**CONF, SHEDDING: value, SPLITTING: value}) == OFF._replace(shedding=True, splitting=True)


@pytest.mark.parametrize("value", ["", "null", "1", "yes", "[true]", '{"a": "true"}', "x" * 1000])
@pytest.mark.parametrize("key", [*CONF])
def test_a_switch_that_is_neither_true_nor_false_is_an_error_that_names_it_in_short(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{key} is .{{,60}}: true or false is expected$"):
        balancing_of({**CONF, key: value})


@pytest.mark.parametrize("key", [*CONF])
def test_a_switch_that_is_missing_is_an_error(key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key} is missing"):
        balancing_of({name: value for name, value in CONF.items() if name != key})


def test_one_of_many_brokers_is_named_with_its_switch() -> None:
    brokers = {f"b{number}": OFF for number in range(100)} | {"b7": SHEDS, "b3": SHEDS, "b5": SPLITS}
    assert at_work(brokers, shed=True, split=True) == {SHEDDING: ("b3", "b7"), SPLITTING: ("b5",)}


def test_only_what_trimtab_does_too_counts() -> None:
    brokers = {"a": SHEDS, "b": SPLITS}
    assert at_work(brokers, shed=True, split=False) == {SHEDDING: ("a",)}
    assert at_work(brokers, shed=False, split=True) == {SPLITTING: ("b",)}
    assert at_work(brokers, shed=False, split=False) == {}


def test_without_load_balancing_no_broker_does_anything() -> None:
    idle = Balancing(enabled=False, shedding=True, splitting=True)
    assert at_work({"a": idle, "b": idle}, shed=True, split=True) == {}


def test_the_modular_leader_splits_by_the_load_that_others_report_whatever_its_own_load_balancing() -> None:
    """Pulsar: ModularLoadManagerImpl.checkNamespaceBundleSplit asks for one switch alone, SplitScheduler for both."""
    idle = Balancing(enabled=False, shedding=True, splitting=True)
    assert at_work({"a": idle, "b": OFF}, shed=True, split=True) == {SPLITTING: ("a",)}
    assert at_work({"a": idle._replace(extensible=True), "b": OFF}, shed=True, split=True) == {}


def test_the_extensible_manager_has_the_same_switches() -> None:
    found = balancing_of({**CONF, SHEDDING: "true", "loadManagerClassName": EXTENSIBLE})
    assert found == SHEDS._replace(extensible=True)
    assert at_work({"a": found}, shed=True, split=True) == {SHEDDING: ("a",)}
