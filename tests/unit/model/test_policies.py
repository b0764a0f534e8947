from itertools import permutations

import numpy as np
import pytest

from controller.model.java_regex import java_pattern
from controller.model.policies import BrokerStatus, IsolationPolicy, MinAvailable, Policies

HOSTS = ("a", "b", "c")
#: An expression of Java's that is not understood.
STRANGE = "[a-z&&[^b]]"


def own(*namespaces: str, primary: tuple[str, ...] = ("a",)) -> IsolationPolicy:
    return IsolationPolicy(namespaces=namespaces, primary=primary)


def test_the_first_policy_that_matches_a_namespace_applies() -> None:
    policies = Policies(isolation=(own("acme/x"), own("acme/.*"), own("acme/y")))
    assert policies.isolation_of("acme/y") == own("acme/.*")
    assert policies.isolation_of("corp/y") is None


def test_a_policy_in_the_namespaces_own_record_comes_first() -> None:
    policies = Policies(isolation=(own("acme/.*"), own("acme/y")), listed={"acme/y": (1, 0)})
    assert policies.isolation_of("acme/y") == own("acme/y")
    assert policies.isolation_of("acme/z") == own("acme/.*")


def test_the_first_policy_counts_whether_it_lists_a_namespace_as_it_is_or_by_an_expression() -> None:
    kinds = (own("acme/x"), own("acme/[xy]"), own("acme/y", "acme/x"), own("corp/z", ".*/x"), own(STRANGE))
    for isolation in permutations(kinds):
        found = Policies(isolation=isolation)
        for name in ("acme/x", "acme/y", "corp/z", "corp/?"):
            first = next((policy for policy in isolation if policy.applies_to(name)), None)
            assert found.isolation_of(name) == first


def test_thousands_of_listed_namespaces_are_not_translated_anew_for_each_namespace() -> None:
    """Of a hundred policies that list fifty each; a namespace that none of them lists took a tenth of a second."""
    policies = Policies(isolation=tuple(own(*(f"t{i}/n{j}" for j in range(50))) for i in range(100)))
    before = java_pattern.cache_info().misses
    assert policies.isolation_of("t99/n49") == policies.isolation[99]
    assert policies.isolation_of("acme/x") is None
    assert policies.not_understood == ()
    assert java_pattern.cache_info().misses - before <= len(policies.isolation), "those of brokers alone"


def test_a_policy_in_the_record_that_does_not_match_does_not_apply() -> None:
    assert Policies(isolation=(own("acme/x"),), listed={"acme/y": (0,)}).isolation_of("acme/y") is None


def test_a_policy_with_unreadable_namespaces_applies_to_the_namespace_that_lists_it() -> None:
    policies = Policies(isolation=(own(STRANGE),), listed={"acme/y": (0,)})
    assert policies.isolation_of("acme/y") == own(STRANGE)
    assert policies.isolation_of("acme/z") is None
    assert policies.not_understood == (STRANGE,)


def test_a_primary_broker_of_any_policy_is_reserved() -> None:
    policies = Policies(isolation=(own("acme/x"), own("acme/y", primary=("c", "d"))))
    assert policies.reserved(HOSTS).tolist() == [True, False, True]
    assert Policies().reserved(HOSTS).tolist() == [False, False, False]


def test_an_unreadable_primary_expression_reserves_every_broker() -> None:
    assert Policies(isolation=(own("acme/x", primary=(STRANGE,)),)).reserved(HOSTS).all()


def test_a_blank_group_is_none_and_groups_ignore_case() -> None:
    policies = Policies(anti_affinity_group={"acme/x": "Red", "acme/y": " ", "acme/z": ""})
    assert [policies.group_of(name) for name in ("acme/x", "acme/y", "acme/z", "acme/?")] == ["red", None, None, None]


def test_a_namespace_is_governed_by_a_group_or_an_isolation_policy() -> None:
    policies = Policies(isolation=(own("acme/x"),), anti_affinity_group={"acme/y": "red"})
    assert [policies.governs(f"acme/{name}") for name in "xyz"] == [True, True, False]


def test_a_broker_at_the_usage_threshold_is_not_available_unless_that_is_100() -> None:
    full = BrokerStatus(100, "a", active=True)
    assert not MinAvailable(usage_threshold=80).is_available(BrokerStatus(80, "a", active=True))
    assert MinAvailable(usage_threshold=100).is_available(full)
    assert not MinAvailable(usage_threshold=100).is_available(BrokerStatus(0, "a", active=False))


def test_by_default_secondary_brokers_never_serve() -> None:
    assert not own("acme/x").auto_failover.fails_over(0)


def test_a_derived_value_is_computed_once() -> None:
    answers = iter(["first", "second"])
    policies = Policies()
    assert [policies.derived("key", lambda: next(answers)) for _ in range(2)] == ["first", "first"]
    assert Policies() == Policies()


def test_what_all_strategies_of_an_interval_share_cannot_be_changed_by_one_of_them() -> None:
    policies = Policies()
    alone = policies.derived("alone", lambda: np.zeros(3))
    one, number = policies.derived("several", lambda: (np.zeros(3), 7))
    for shared in (alone, one):
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 1.0
    assert number == 7
