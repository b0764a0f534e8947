"""States of namespaces are kept as text, in which what isolation policies list stands once."""

from typing import Any

import pytest

from controller.aggregate.state import states
from controller.aggregate.state.facts import fact_from_text, fact_to_text
from controller.aggregate.state.states import States
from controller.model.errors import StateError
from controller.model.records import NamespaceState

BROKERS = [f"pulsar-broker-{number}.pulsar.svc.cluster.local" for number in range(500)]


def policy(*namespaces: str, primary: list[str]) -> dict[str, Any]:
    parameters = {"min_limit": "1", "usage_threshold": "80"}
    failover = {"policy_type": "min_available", "parameters": parameters}
    return {"namespaces": list(namespaces), "primary": list(primary), "auto_failover_policy": failover}


def state(name: str, *policies: dict[str, Any]) -> NamespaceState:
    return NamespaceState(namespace=name, version=1, boundaries=(0, 7), isolation_policies=policies)


@pytest.mark.slow
def test_a_list_of_brokers_that_many_namespaces_have_is_kept_once() -> None:
    """As collectors write a policy with a long list of namespaces: with each one the brokers, and itself alone."""
    given = [state(f"tenant/{i:04d}", policy(f"tenant/{i:04d}", primary=BROKERS)) for i in range(1_000)]
    kept = States.of(given)
    assert list(kept) == given
    assert len(kept.text) < 300_000 < sum(len(fact_to_text(each)) for each in given) / 50


def test_whatever_policies_hold_comes_back() -> None:
    odd = {"namespaces": 1, "primary": None, "secondary": [True, 1, 1.0, "1", {}], "\ud800\n": "\ud800"}
    given = [
        state("a/1", odd, policy("a/.*", primary=["b"])),
        state("a/2"),
        state("a/3", {}, odd),
        state("a/4", policy("a/.*", primary=["b"])),
    ]
    found = list(States.of(given))
    assert found == given
    assert str(found) == str(given), "true, 1 and 1.0 are equal, and not the same"


def test_a_list_counts_against_the_bound_once_and_only_with_a_state_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "LARGEST", 40_000)
    of_all = [state(f"a/{i}", policy("a/.*", primary=BROKERS)) for i in range(5)]
    assert len(States.of(of_all)) == 5, "25 KB once, not 125"
    other = policy("b/.*", primary=[f"other-{broker}" for broker in BROKERS])
    kept = States.of([*of_all, state("b/1", other)])
    assert [each.namespace for each in kept] == [f"a/{i}" for i in range(5)]
    assert kept.dropped == 1
    assert "other-" not in kept.text


def test_a_fact_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(StateError, match="a fact of kind 'Odd', which this version of trimtab does not know"):
        fact_from_text('{"is":"Odd"}')
