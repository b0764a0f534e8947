from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from controller.model.policies import BrokerAddresses, BrokerStatus, IsolationPolicy, MinAvailable, Policies

HOSTS = BrokerAddresses(("a", "b", "c"))
#: An expression that cannot be read, and matches nothing in Java: nobody waits for ``a``.
STRANGE = "acme/(?>a|ab)c"


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


def test_a_policy_in_the_record_that_does_not_match_does_not_apply() -> None:
    assert Policies(isolation=(own("acme/x"),), listed={"acme/y": (0,)}).isolation_of("acme/y") is None


def stays(policies: Policies, *names: str) -> list[str]:
    """Those of *names* that stay, as it is not known what governs them."""
    return [name for name, governed in zip(names, policies.governed(names), strict=True) if governed.why]


def test_what_an_unreadable_namespaces_expression_could_match_stays_and_all_else_is_free() -> None:
    policies = Policies(isolation=(own("acme/(?>p|pr)od"), own("corp/.*")))
    assert stays(policies, "acme/prod", "acme/pod", "acme/test", "corp/x", "b/c") == ["acme/prod", "acme/pod"]
    assert policies.isolation_of("acme/test") is None
    assert policies.isolation_of("corp/x") == own("corp/.*")


@pytest.mark.parametrize(
    ("regex", "named"),
    [
        ("tenant/prod-.*(?=x)", ["tenant/prod-1"]),
        ("tenant/prod-[", ["tenant/prod-1"]),
        ("tenant/prod-?[", ["tenant/prod-1", "tenant/prodigy"]),
        ("tenant/prod-|other/[", ["other/x", "tenant/pro", "tenant/prod-1", "tenant/prodigy"]),
        (r"\Qtenant/prod-\E\1", ["tenant/prod-1"]),
        ("(?i)TENANT/PROD-(?>|1)1", ["tenant/prod-1"]),
        ("tenant/prod-" + "x" * 9000, []),
        ("(?=t).*(?>a|b)?", ["tenant/pro", "tenant/prod-1", "tenant/prodigy"]),
        ("(?:tenant/prod-(.)|other)\\1", ["other/x", "tenant/prod-1"]),
    ],
)
def test_an_unreadable_expression_holds_what_it_could_match_at_most(regex: str, named: list[str]) -> None:
    names = ("other/x", "tenant/pro", "tenant/prod-1", "tenant/prodigy")
    assert stays(Policies(isolation=(own(regex),)), *names) == named


def test_a_namespace_that_an_earlier_policy_surely_matches_is_governed_by_that() -> None:
    policies = Policies(isolation=(own("acme/a.*"), own(".*(?>a|b)"), own("acme/b.*")))
    assert stays(policies, "acme/ab", "acme/bb", "acme/bc") == ["acme/bb"]
    assert policies.isolation_of("acme/bc") == own("acme/b.*")


def test_a_readable_expression_beside_an_unreadable_one_of_the_same_policy_is_enough() -> None:
    policy = own(".*(?>a|b)", "acme/.*")
    policies = Policies(isolation=(policy,))
    assert stays(policies, "acme/b", "corp/b", "corp/c") == ["corp/b"]
    assert policies.isolation_of("acme/b") == policy


@pytest.mark.parametrize(
    "unreadable",
    [
        replace(own("acme/.*"), primary=("b(?>r|ro)k",)),
        replace(own("acme/.*"), secondary=("b(?>r|ro)k",)),
        replace(own("acme/.*"), flaws=("min_limit is wrong",)),
    ],
)
def test_a_policy_whose_other_parts_cannot_be_read_holds_the_namespaces_that_it_matches(
    unreadable: IsolationPolicy,
) -> None:
    assert stays(Policies(isolation=(unreadable,)), "acme/x", "corp/x") == ["acme/x"]


def test_a_policy_of_unknown_namespaces_holds_those_whose_records_list_it() -> None:
    policy = replace(own(), namespaces_known=False, flaws=("namespaces are missing",))
    policies = Policies(isolation=(policy,), listed={"acme/x": (0,)})
    assert stays(policies, "acme/x", "acme/y") == ["acme/x"]


def test_the_message_names_the_policy_the_expression_and_why() -> None:
    policies = Policies(isolation=(own("acme/x", primary=("br(o)\\1ker",)),))
    (told,) = policies.rules.flaws
    assert told == (0, "isolation policy of acme/x: expression br(o)\\1ker of primary cannot be read: a backreference")


def test_an_expression_of_which_nothing_is_known_might_name_any_namespace() -> None:
    assert Policies(isolation=(own("(.*)\\1"),)).rules.holds_all
    assert not Policies(isolation=(own("a(.*)\\1"), own("x", primary=("(.*)\\1",)))).rules.holds_all


def test_a_primary_broker_of_any_policy_is_reserved() -> None:
    policies = Policies(isolation=(own("acme/x"), own("acme/y", primary=("c", "d"))))
    assert policies.reserved(HOSTS).tolist() == [True, False, True]
    assert Policies().reserved(HOSTS).tolist() == [False, False, False]


def test_brokers_that_an_unreadable_primary_expression_could_match_are_reserved() -> None:
    policies = Policies(isolation=(own("acme/x", primary=("(?>b|bb)",)),))
    assert policies.reserved(HOSTS).tolist() == [False, True, False]
    assert policies.rules.open_ended(HOSTS) == ()


def test_an_unreadable_primary_expression_that_could_match_all_brokers_reserves_none_by_itself() -> None:
    policies = Policies(isolation=(own("acme/x", primary=("(.)(?>|\\1)", "c")),))
    assert policies.reserved(HOSTS).tolist() == [False, False, True]
    assert policies.rules.open_ended(HOSTS) == (0,)


@pytest.mark.slow
def test_the_number_of_expressions_is_bounded_and_what_those_beyond_it_could_match_stays() -> None:
    simple = tuple(own(f"s{i}/.*", f"s{i}.ns/x") for i in range(3_000))
    policies = Policies(isolation=(*simple, *(own(f"t{i}/.*[a-z]") for i in range(3_000))))
    assert stays(policies, "s2999/x", "t7/x", "t2999/x", "u/x") == ["t2999/x"]


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
