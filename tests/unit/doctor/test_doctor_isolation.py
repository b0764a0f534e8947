"""The doctor's findings about isolation policies: what they cannot mean, and whom they leave without a broker."""

from typing import Any

import pytest

from controller.doctor.finding import Finding
from tests.doctor import OFF, broker, only, problems, pulsar

BROKERS = ("pulsar-broker-0.brokers.acme:8080", "pulsar-broker-1.brokers.acme:8080", "[2001:db8::1]:8080")


def policy(primary: list[str], secondary: tuple[str, ...] = (), *, least: int = 0, **changed: Any) -> dict[str, Any]:
    parameters = {"min_limit": str(least), "usage_threshold": "100"}
    failover = {"policy_type": "min_available", "parameters": parameters}
    given = {"namespaces": ["acme/.*"], "primary": primary, "secondary": list(secondary)}
    return {**given, "auto_failover_policy": failover, **changed}


def with_policies(namespaces: set[str] | None = None, **policies: Any) -> list[Finding]:
    spaces = None if namespaces is None else frozenset(namespaces)
    return problems(pulsar=pulsar(*map(broker, BROKERS), policies=policies, namespaces=spaces))


def codes(found: list[Finding]) -> list[str]:
    return [each.code for each in found]


@pytest.mark.parametrize(
    "primary",
    [
        "pulsar-broker-0",  # no domain
        "pulsar-broker-0.brokers.acme:8080",  # with the port
        "http://pulsar-broker-0.brokers.acme",
        "pulsar-broker-9.*",
        "PULSAR-BROKER-0.*",
        r"2001:db8::1",  # without the brackets that the broker's name has
        "pulsar-broker-0*",  # a glob
    ],
)
def test_a_policy_whose_expressions_match_no_broker_is_an_error_with_the_brokers_names(primary: str) -> None:
    (found,) = with_policies(ours=policy([primary]))
    assert (found.code, found.severity, found.objects) == ("isolation-policy-no-broker", "error", ("ours",))
    assert primary in found.observed
    assert "pulsar-broker-0.brokers.acme" in found.advice


@pytest.mark.parametrize(
    "primary", ["pulsar-broker-0.*", r"pulsar-broker-[01]\.brokers\.acme", r"\[2001:db8::1\]", ".*"]
)
def test_a_policy_that_names_active_brokers_is_fine(primary: str) -> None:
    assert with_policies(ours=policy([primary, "pulsar-broker-9.*"])) == []


def test_from_pulsar_5_on_an_expression_with_a_colon_may_name_the_port() -> None:
    newer = tuple(broker(name, version="5.0.1") for name in BROKERS)
    policies = {"ours": policy([f"{BROKERS[0]}"]), "v6": policy([r"\[2001:db8::1\]:8080"])}
    found = problems(pulsar=pulsar(*newer, policies=policies, namespaces=None))
    assert not [each for each in found if each.code.startswith("isolation-policy-no")]


def test_secondary_brokers_count_where_the_policy_fails_over() -> None:
    assert codes(with_policies(ours=policy(["gone"], ("pulsar.*",), least=1))) == ["isolation-policy-few-primaries"]
    (found,) = with_policies(ours=policy(["gone"], ("pulsar.*",), least=0))
    assert found.code == "isolation-policy-no-broker"
    assert "min_limit 0" in found.observed
    (found,) = with_policies(ours=policy(["gone"], ("away",), least=1))
    assert "nor does secondary (away)" in found.observed


def test_a_policy_with_fewer_primary_brokers_than_it_wants_and_a_secondary_that_nobody_is() -> None:
    (found,) = with_policies(ours=policy(["pulsar-broker-0.*"], ("pulsar-broker-1.*",), least=2))
    assert (found.code, found.severity) == ("isolation-policy-few-primaries", "warning")
    assert "matches 1 active broker, min_limit is 2" in found.observed
    (found,) = with_policies(ours=policy(["pulsar.*"], ("standby.*",), least=1))
    assert (found.code, found.severity) == ("isolation-policy-no-secondary", "warning")


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("*.acme", "nothing that * could repeat"),
        ("broker-[0-9", "a set that does not end"),
        ("broker-(0|1", "a group that does not end"),
        (r"(blue|green)-\1.*", "a backreference"),
    ],
)
@pytest.mark.parametrize("part", ["namespaces", "primary", "secondary"])
def test_an_expression_that_java_refuses_or_trimtab_cannot_read_is_named_with_policy_and_reason(
    regex: str, why: str, part: str
) -> None:
    (found,) = with_policies(ours=policy(["pulsar.*"]) | {part: [regex]}, fine=policy(["pulsar.*"]))
    assert (found.code, found.severity, found.objects) == ("isolation-policy-unusable", "error", ("ours",))
    assert f"expression {regex} of {part} cannot be read: {why}" in found.observed


def test_a_fail_over_policy_of_another_kind_cannot_be_read() -> None:
    (found,) = with_policies(later=policy([".*"], auto_failover_policy={"policy_type": "most_available"}))
    assert found.observed.startswith("later: isolation policy of acme/.*: policy_type 'most_available' is unknown")


def test_a_policy_that_concerns_no_namespace_is_a_warning_unless_the_namespaces_are_not_known() -> None:
    ours = policy(["pulsar-broker-0.*"])
    (found,) = with_policies({"pulsar/system", "acme-orders/eu"}, ours=ours)
    assert (found.code, found.severity, found.objects) == ("isolation-policy-no-namespace", "warning", ("ours",))
    assert with_policies({"acme/orders"}, ours=ours) == with_policies(None, ours=ours) == []


def test_namespaces_without_a_policy_need_a_broker_that_is_nobodys_primary() -> None:
    (found,) = with_policies({"acme/orders", "acme2/orders"}, ours=policy([".*"]))
    assert (found.code, found.severity, found.objects) == ("isolation-no-shared-broker", "error", ("acme2/orders",))
    assert with_policies({"acme/orders"}, ours=policy([".*"])) == []
    assert with_policies({"acme/orders", "acme2/orders"}, ours=policy(["pulsar.*"])) == []


@pytest.mark.slow
def test_of_thousands_of_policies_a_few_are_described_and_all_are_named() -> None:
    found = only(
        pulsar=pulsar(
            *(broker(f"broker-{number}:8080", settings=OFF) for number in range(500)),
            policies={f"policy-{number}": policy([f"host-{number}"]) for number in range(5_000)},
        )
    )
    assert found.code == "isolation-policy-no-broker"
    assert len(found.objects) == 5_000
    assert len(found.observed) + len(found.advice) < 1_000
    assert "and 4997 more policies" in found.observed
