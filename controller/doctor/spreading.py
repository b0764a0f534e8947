"""Can anti-affinity groups be spread over failure domains and brokers?

Pulsar compares the brokers of a failure domain with host:port, and does not check that they exist.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from controller.doctor.facts import Facts, PulsarFacts
from controller.doctor.finding import Finding, error, fine, listed, warning
from controller.doctor.isolation import ServingBrokers
from controller.wire.readable import counted

FAILURE_DOMAINS: Final = "failureDomainsEnabled"
#: The domain of brokers that are in none.
_DEFAULT: Final = "default"
_DESCRIBED: Final = 3
#: What two names of the same group may differ in.
_SPELLING: Final = re.compile(r"[\W_]+")
_SHOW_DOMAINS: Final = (
    "`pulsar-admin clusters list-failure-domains CLUSTER` shows them, `update-failure-domain` sets them"
)
_SHOW_GROUP: Final = (
    "`pulsar-admin namespaces set-anti-affinity-group TENANT/NAMESPACE --group NAME` puts a namespace in a group,"
    " `delete-anti-affinity-group` takes it out"
)


def failure_domains(facts: Facts) -> Iterator[Finding]:
    """failure-domain-unknown-broker, broker-in-two-domains, broker-in-no-domain."""
    pulsar = facts.pulsar
    if pulsar is None or not pulsar.brokers or not pulsar.domains:
        return
    domains_of = defaultdict[str, list[str]](list)
    for domain, brokers in pulsar.domains.items():
        for broker in dict.fromkeys(brokers):
            domains_of[broker].append(domain)
    active = {broker.name for broker in pulsar.brokers}
    unknown = sorted(domains_of.keys() - active)
    alone = sorted(active - domains_of.keys())
    twice = sorted(broker for broker, domains in domains_of.items() if len(domains) > 1)
    yield from _unknown_brokers(unknown, domains_of, active)
    yield from _in_two_domains(twice, domains_of)
    if alone:
        yield warning(
            "broker-in-no-domain",
            alone,
            observed=f"{listed(alone)}: in none of the failure domains {listed(sorted(pulsar.domains))}; the brokers"
            " in none count as one domain together",
            expected="every active broker in a failure domain",
            advice=f"add each to the domain of its rack or zone, as host:port: {_SHOW_DOMAINS}",
        )
    if not (unknown or alone or twice):
        yield fine("failure-domains", sorted(pulsar.domains), "each active broker is in one")


def _unknown_brokers(names: list[str], domains_of: Mapping[str, list[str]], active: set[str]) -> Iterator[Finding]:
    if names:
        names_of = listed([f"{name} ({', '.join(domains_of[name][:_DESCRIBED])})" for name in names])
        yield warning(
            "failure-domain-unknown-broker",
            names,
            observed=f"failure domains name {names_of}: no active broker has such a name",
            expected="names of active brokers",
            advice=f"start these brokers, or name them as host:port, without a scheme: the brokers are"
            f" {listed(sorted(active))}; {_SHOW_DOMAINS}",
        )


def _in_two_domains(names: list[str], domains_of: Mapping[str, list[str]]) -> Iterator[Finding]:
    if names:
        names_of = listed([f"{name} ({', '.join(domains_of[name][:_DESCRIBED])})" for name in names])
        yield error(
            "broker-in-two-domains",
            names,
            observed=f"in several failure domains: {names_of}; it is undefined which one counts",
            expected="every broker in one failure domain",
            advice=f"remove it from all domains but one: {_SHOW_DOMAINS}",
        )


def failure_domains_used(facts: Facts) -> Iterator[Finding]:
    """failure-domains-off: on the brokers, or in the broker.conf that the controller reads."""
    pulsar = facts.pulsar
    if pulsar is None or not pulsar.domains or not pulsar.groups:
        return
    off = [
        broker.name for broker in pulsar.brokers if broker.settings is not None and not _uses_domains(broker.settings)
    ]
    if not facts.broker_conf.error and not facts.broker_conf.failure_domains:
        off.append(facts.settings.cluster.broker_conf)
    if off:
        yield warning(
            "failure-domains-off",
            off,
            observed=f"{FAILURE_DOMAINS} is off in {listed(off)}: anti-affinity groups are not spread over the failure"
            f" domains {listed(sorted(pulsar.domains))}",
            expected=f"{FAILURE_DOMAINS}=true for the brokers and for trimtab",
            advice=f"pulsar-admin brokers update-dynamic-config --config {FAILURE_DOMAINS} --value true, and the same"
            " in every broker.conf, trimtab's too; or delete the failure domains",
        )


def anti_affinity_groups(facts: Facts) -> Iterator[Finding]:
    """anti-affinity-unknown, anti-affinity-alone, anti-affinity-too-large."""
    pulsar = facts.pulsar
    if pulsar is None:
        return
    members = defaultdict[str, list[str]](list)
    for namespace, group in sorted(pulsar.groups.items()):
        members[group].append(namespace)
    if pulsar.groups_problem:
        yield warning(
            "anti-affinity-unknown",
            "anti-affinity groups",
            observed=pulsar.groups_problem,
            expected="the anti-affinity group of every namespace",
            advice="see the other findings about the brokers, then run `trimtab doctor` again; groups may have more"
            " namespaces than are known here",
        )
    alone = [] if pulsar.groups_problem else [group for group in members if len(members[group]) == 1]
    yield from _alone(alone, members)
    large = _too_large(facts, pulsar, members) if pulsar.brokers else {}
    yield from _large(large)
    if members and not (alone or large or pulsar.groups_problem):
        yield fine("anti-affinity", members, "each group can be spread")


def _alone(groups: list[str], members: Mapping[str, list[str]]) -> Iterator[Finding]:
    if not groups:
        return
    alike = defaultdict[str, list[str]](list)
    for group in members:
        alike[_spelling(group)].append(group)
    texts = []
    for group in groups:
        other = next((each for each in alike[_spelling(group)] if each != group), "")
        texts.append(f"{group:.100} of {members[group][0]}" + (f" (did you mean {other:.100}?)" if other else ""))
    yield warning(
        "anti-affinity-alone",
        groups,
        observed=f"groups of one namespace: {listed(texts)}: there is no other namespace to keep it apart from",
        expected="anti-affinity groups of two namespaces or more",
        advice=f"names are compared letter by letter; {_SHOW_GROUP}",
    )


def _too_large(facts: Facts, pulsar: PulsarFacts, members: Mapping[str, list[str]]) -> dict[str, str]:
    """Group -> why two of its namespaces must share a broker or a failure domain."""
    domain_of = {broker: domain for domain, brokers in pulsar.domains.items() for broker in brokers}
    by_domain = any(_uses_domains(broker.settings or {}) for broker in pulsar.brokers)
    names, reasons = sorted(pulsar.groups), dict[str, str]()
    allowed = dict(zip(names, ServingBrokers.of(facts, pulsar).of_namespaces(names), strict=True))
    for group, namespaces in members.items():
        together = defaultdict[frozenset[str], int](int)
        for brokers in map(allowed.get, namespaces):
            if brokers:  # one without a broker is another check's matter
                together[brokers] += 1
        for brokers in {*together, frozenset().union(*together)}:
            count = sum(number for some, number in together.items() if some <= brokers)
            domains = {domain_of.get(broker, _DEFAULT) for broker in brokers} if by_domain and domain_of else brokers
            if count > len(brokers):
                reasons[group] = f"{count} namespaces, {counted(len(brokers), 'broker')} for them"
            elif count > len(domains):
                reasons.setdefault(group, f"{count} namespaces, {counted(len(domains), 'failure domain')} for them")
    return reasons


def _large(groups: Mapping[str, str]) -> Iterator[Finding]:
    if groups:
        yield warning(
            "anti-affinity-too-large",
            groups,
            observed=f"{listed([f'{group:.100}: {why}' for group, why in groups.items()])}: some must share one",
            expected="no more namespaces in a group than there are brokers, and failure domains, that may serve them",
            advice=f"add brokers or failure domains, or divide the group; {_SHOW_GROUP}",
        )


def _spelling(group: str) -> str:
    return _SPELLING.sub("", group.casefold())


def _uses_domains(settings: Mapping[str, str]) -> bool:
    return settings.get(FAILURE_DOMAINS, "").strip().lower() == "true"
