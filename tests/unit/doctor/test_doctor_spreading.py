"""The doctor's findings about failure domains and anti-affinity groups."""

from typing import Any

import pytest

from controller.doctor.facts import BrokerConfFacts
from controller.doctor.finding import Finding
from tests.doctor import OFF, A, B, C, broker, only, problems, pulsar

ON = {**OFF, "failureDomainsEnabled": "true"}
OURS = BrokerConfFacts(load_manager="ModularLoadManagerImpl", failure_domains=True)


def found(*, enabled: bool = True, **changed: Any) -> list[Finding]:
    """In a cluster of three brokers; the namespaces of *groups* are by group."""
    groups = {name: group for group, names in changed.pop("groups", {}).items() for name in names.split()}
    brokers = [broker(name, settings=ON if enabled else OFF) for name in (A, B, C)]
    return problems(pulsar=pulsar(*brokers, groups=groups, **changed), broker_conf=OURS)


def test_domains_that_have_every_broker_once_are_fine() -> None:
    assert found(domains={"rack-1": (A, B), "rack-2": (C,)}) == found(domains={}) == []


@pytest.mark.parametrize("name", ["a", "http://a:8080", "a:6650", "A:8080", "z:8080"])
def test_a_domain_that_names_no_active_broker_is_told_how_brokers_are_named(name: str) -> None:
    (unknown, alone) = found(domains={"rack-1": (name, B), "rack-2": (C,)})
    assert (unknown.code, unknown.severity, unknown.objects) == ("failure-domain-unknown-broker", "warning", (name,))
    assert f"{name} (rack-1)" in unknown.observed
    assert "a:8080" in unknown.advice
    assert (alone.code, alone.severity, alone.objects) == ("broker-in-no-domain", "warning", (A,))


def test_a_broker_in_two_domains_is_an_error() -> None:
    (twice,) = found(domains={"rack-1": (A, B, B), "rack-2": (C, A)})
    assert (twice.code, twice.severity, twice.objects) == ("broker-in-two-domains", "error", (A,))
    assert "a:8080 (rack-1, rack-2)" in twice.observed


def test_domains_that_nobody_uses_are_a_warning_where_there_are_groups() -> None:
    domains = {"rack-1": (A, B), "rack-2": (C,)}
    groups = {"apart": "acme/a acme/b"}
    (off,) = found(enabled=False, domains=domains, groups=groups)
    assert (off.code, off.objects) == ("failure-domains-off", (A, B, C))
    assert found(enabled=False, domains=domains) == found(domains=domains, groups=groups) == []
    brokers = [broker(name, settings=ON) for name in (A, B, C)]
    facts = pulsar(*brokers, domains=domains, groups=dict.fromkeys(["acme/a", "acme/b"], "apart"))
    (file,) = only(pulsar=facts).objects
    assert file.endswith("broker.conf")


def test_a_group_of_one_namespace_is_a_warning_with_the_name_that_may_be_meant() -> None:
    (alone,) = found(groups={"Orders-EU": "acme/a", "orders_eu": "acme/b acme/c"})
    assert (alone.code, alone.severity, alone.objects) == ("anti-affinity-alone", "warning", ("Orders-EU",))
    assert "did you mean orders_eu?" in alone.observed


def test_a_group_with_more_namespaces_than_brokers_is_a_warning() -> None:
    (large,) = found(groups={"apart": "acme/a acme/b acme/c acme/d"})
    assert (large.code, large.objects) == ("anti-affinity-too-large", ("apart",))
    assert "4 namespaces, 3 brokers" in large.observed
    assert found(groups={"apart": "acme/a acme/b acme/c"}) == []


def test_a_group_with_more_namespaces_than_failure_domains_is_a_warning_where_these_are_used() -> None:
    given: dict[str, Any] = {"domains": {"rack-1": (A, B), "rack-2": (C,)}, "groups": {"apart": "acme/a acme/b acme/c"}}
    (large,) = found(**given)
    assert "3 namespaces, 2 failure domains" in large.observed
    assert [each.code for each in found(enabled=False, **given)] == ["failure-domains-off"]


def test_of_brokers_that_an_isolation_policy_forbids_a_group_has_nothing() -> None:
    isolated = {"ours": {"namespaces": ["acme/.*"], "primary": ["[ab]"]}}
    (large,) = found(policies=isolated, groups={"apart": "acme/a acme/b acme/c"})
    assert "3 namespaces, 2 brokers" in large.observed
    (large,) = found(policies=isolated, groups={"apart": "acme/a other/b other/c"})
    assert "2 namespaces, 1 broker" in large.observed
    assert found(policies=isolated, groups={"apart": "acme/a acme/b other/c"}) == []
