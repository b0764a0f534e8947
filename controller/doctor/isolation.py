"""Do the namespace isolation policies leave every namespace a broker?

Pulsar matches expressions with the whole host of a broker, from 5.0 on also with its host and port: an expression that
does not match any is accepted, and its namespaces have no broker.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controller.doctor.facts import Facts, PulsarFacts
from controller.doctor.finding import Finding, error, fine, listed, warning
from controller.doctor.versions import version_used
from controller.model.isolation import BrokerAddresses, Isolation, IsolationPolicy
from controller.model.isolation_policies import isolation_flaws, isolation_policy
from controller.model.java_regex import Expressions
from controller.model.names import is_broker_own
from controller.model.pulsar_version import default_in
from controller.model.some_of import some_of
from controller.strategies.filters.isolation_policies import MATCH_IDS
from controller.wire.readable import counted

#: Policies that a finding describes, expressions of a policy that it shows, and characters of a name or expression.
_DESCRIBED, _EXPRESSIONS, _CHARACTERS = 3, 2, 100
_ADVICE: Final = (
    "an expression must match the whole host name of a broker, without port (from Pulsar 5.0 on one with a colon also"
    " matches host:port): the brokers are {hosts}; start the brokers"
    " that are missing, or correct the policy: `pulsar-admin ns-isolation-policy` shows, sets and deletes policies"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingBrokers:
    """The isolation policies of a cluster, and the active brokers that each one names."""

    rules: Isolation
    #: Names of the policies, by row.
    names: tuple[str, ...]
    #: What expressions match of the active brokers.
    addresses: BrokerAddresses
    #: Rows of policies that cannot be read.
    flawed: frozenset[int]
    #: All active brokers.
    brokers: frozenset[str]
    primary: tuple[frozenset[str], ...]
    secondary: tuple[frozenset[str], ...]
    #: The brokers of namespaces without a policy: no policy names them as primary.
    shared: frozenset[str]

    @classmethod
    def of(cls, facts: Facts, pulsar: PulsarFacts) -> "ServingBrokers":
        """The brokers of *pulsar*, by the version in use; O(expressions + brokers * expressions that match one)."""
        rules = Isolation(tuple(map(isolation_policy, pulsar.policies.values())))
        policies = rules.policies
        brokers = [broker.name for broker in pulsar.brokers]
        expressions = Expressions(text for each in policies for text in (*each.primary, *each.secondary))
        addresses = BrokerAddresses.of(brokers, match_ids=_matches_ids(facts))
        hosts = dict(zip(brokers, (host_of(name) for name in brokers), strict=True))
        ids = {name: each for name, each in zip(brokers, addresses.ids, strict=False) if each is not None}
        matched = dict[int, set[str]]()
        of_ids = frozenset(number for text, number in expressions.number.items() if ":" in text)
        for names, numbers in ((hosts, None), (ids, of_ids)):
            hits = expressions.hits(sorted(set(names.values())), numbers)
            for name, address in names.items():
                for hit in hits.get(address, ()):
                    matched.setdefault(hit.number, set()).add(name)

        def named(texts: tuple[str, ...]) -> frozenset[str]:
            return frozenset().union(*(matched.get(expressions.number[text], ()) for text in set(texts)))

        primary = tuple(named(each.primary) for each in policies)
        return cls(
            rules=rules,
            names=tuple(pulsar.policies),
            addresses=addresses,
            flawed=frozenset(row for row, _ in rules.flaws),
            brokers=frozenset(brokers),
            primary=primary,
            secondary=tuple(named(each.secondary) for each in policies),
            shared=frozenset(brokers).difference(*primary),
        )

    def fails_over(self, row: int) -> bool:
        """Whether the policy *row* has too few active primary brokers, whatever their load."""
        return self.rules.policies[row].auto_failover.fails_over(len(self.primary[row]))

    def serving(self, row: int) -> frozenset[str]:
        """The brokers that the policy *row* allows."""
        return self.primary[row] | (self.secondary[row] if self.fails_over(row) else frozenset())

    def of_namespaces(self, namespaces: list[str]) -> list[frozenset[str] | None]:
        """The brokers that each of *namespaces* may have; None where its policy cannot be read."""
        return [
            None
            if governed.why or governed.row in self.flawed
            else self.shared
            if governed.row is None
            else self.serving(governed.row)
            for governed in self.rules.governed(namespaces, {})
        ]


def unreadable_policies(facts: Facts) -> Iterator[Finding]:
    """isolation-policy-unusable."""
    flaws = isolation_flaws(_policies(facts))
    if flaws:
        yield error(
            "isolation-policy-unusable",
            flaws,
            observed=_described([f"{name:.{_CHARACTERS}}: {why}" for name, why in flaws.items()]),
            expected="policies that trimtab can read, so that it knows which brokers they allow",
            advice="namespaces that it names, or may name, are not moved; write it in another way (any text is"
            " .* in Java's regular expressions, not *), or delete it: `pulsar-admin ns-isolation-policy` shows, sets"
            " and deletes them, and docs/strategies.md says what cannot be read",
        )


def brokers_of_policies(facts: Facts) -> Iterator[Finding]:
    """isolation-policy-no-broker, isolation-policy-few-primaries, isolation-policy-no-secondary."""
    if facts.pulsar is None or not facts.pulsar.brokers or not facts.pulsar.policies:
        return
    serving = ServingBrokers.of(facts, facts.pulsar)
    no_broker, too_few, no_secondary = list[int](), list[int](), list[int]()
    for row, policy in enumerate(serving.rules.policies):
        if row in serving.flawed:
            continue
        if not serving.serving(row):
            no_broker.append(row)
        elif serving.fails_over(row) and serving.primary[row] < serving.serving(row):
            too_few.append(row)
        if policy.secondary and not serving.secondary[row] and row not in no_broker:
            no_secondary.append(row)
    hosts = listed(sorted({host_of(name) for name in serving.brokers}))
    yield from _no_broker(serving, no_broker, hosts)
    yield from _few_primaries(serving, too_few, hosts)
    yield from _no_secondary(serving, no_secondary, hosts)
    if not (no_broker or too_few or no_secondary or serving.flawed):
        yield fine("isolation-policies", serving.names, "each names active brokers")


def namespaces_of_policies(facts: Facts) -> Iterator[Finding]:
    """isolation-policy-no-namespace, isolation-no-shared-broker."""
    if facts.pulsar is None or not facts.pulsar.policies or facts.pulsar.namespaces is None:
        return
    serving = ServingBrokers.of(facts, facts.pulsar)
    names = sorted(name for name in facts.pulsar.namespaces if not is_broker_own(name))
    used = {row for rows in serving.rules.naming(names).values() for row in rows}
    idle = [row for row in range(len(serving.names)) if row not in used and row not in serving.flawed]
    if idle:
        yield warning(
            "isolation-policy-no-namespace",
            _named(serving, idle),
            observed=_described(
                [f"{_label(serving, row)}: namespaces {_printable(_rule(serving, row).namespaces)}" for row in idle]
            )
            + ": no namespace matches",
            expected="policies that concern a namespace",
            advice="an expression must match all of tenant/namespace: correct it, or delete the policy, which keeps"
            " other namespaces off its primary brokers: `pulsar-admin ns-isolation-policy`",
        )
    governed = serving.rules.governed(names, {})
    free = [name for name, each in zip(names, governed, strict=True) if each.row is None]
    if free and facts.pulsar.brokers and not serving.shared and not serving.rules.open_ended(serving.addresses):
        yield error(
            "isolation-no-shared-broker",
            free,
            observed=f"every active broker is a primary broker of some policy: none may serve {listed(free)}, which"
            f" {'has' if len(free) == 1 else 'have'} no policy",
            expected="a broker that no policy names as primary, or a policy for every namespace",
            advice="start another broker, or add these namespaces to a policy: `pulsar-admin ns-isolation-policy set`",
        )


def _matches_ids(facts: Facts) -> bool:
    """Whether expressions with a colon match the port of a broker, too."""
    option = facts.broker_conf.options.get(MATCH_IDS, "").strip().lower()
    return (option or default_in(version_used(facts).version, MATCH_IDS)) == "true"


def host_of(broker: str) -> str:
    """The host of *broker*, with the brackets of IPv6, as policies match it."""
    return broker.rpartition(":")[0] or broker


def _no_broker(serving: ServingBrokers, rows: list[int], hosts: str) -> Iterator[Finding]:
    if rows:
        yield error(
            "isolation-policy-no-broker",
            _named(serving, rows),
            observed=_described([f"{_label(serving, row)}: {_why_no_broker(serving, row)}" for row in rows])
            + ": no active broker may serve its namespaces",
            expected="an active broker for every policy",
            advice=_ADVICE.format(hosts=hosts),
        )


def _why_no_broker(serving: ServingBrokers, row: int) -> str:
    policy = _rule(serving, row)
    text = f"primary {_printable(policy.primary)} matches no broker"
    if serving.secondary[row]:
        return f"{text}, and min_limit {policy.auto_failover.min_limit} never lets the secondary ones serve"
    return f"{text}, nor does secondary {_printable(policy.secondary)}" if policy.secondary else text


def _few_primaries(serving: ServingBrokers, rows: list[int], hosts: str) -> Iterator[Finding]:
    if rows:
        yield warning(
            "isolation-policy-few-primaries",
            _named(serving, rows),
            observed=_described(
                [
                    f"{_label(serving, row)}: primary {_printable(_rule(serving, row).primary)} matches"
                    f" {counted(len(serving.primary[row]), 'active broker')}, min_limit is"
                    f" {_rule(serving, row).auto_failover.min_limit}"
                    for row in rows
                ]
            )
            + ": secondary brokers serve its namespaces as well",
            expected="as many active primary brokers as min_limit",
            advice=_ADVICE.format(hosts=hosts),
        )


def _no_secondary(serving: ServingBrokers, rows: list[int], hosts: str) -> Iterator[Finding]:
    if rows:
        yield warning(
            "isolation-policy-no-secondary",
            _named(serving, rows),
            observed=_described(
                [f"{_label(serving, row)}: secondary {_printable(_rule(serving, row).secondary)}" for row in rows]
            )
            + " matches no active broker: nothing takes over from its primary brokers",
            expected="secondary expressions that match brokers",
            advice=_ADVICE.format(hosts=hosts),
        )


def _policies(facts: Facts) -> Mapping[str, Any]:
    return {} if facts.pulsar is None else facts.pulsar.policies


def _rule(serving: ServingBrokers, row: int) -> IsolationPolicy:
    return serving.rules.policies[row]


def _named(serving: ServingBrokers, rows: list[int]) -> tuple[str, ...]:
    return tuple(serving.names[row] for row in rows)


def _label(serving: ServingBrokers, row: int) -> str:
    return f"{serving.names[row]:.{_CHARACTERS}}"


def _described(texts: list[str]) -> str:
    more = len(texts) - _DESCRIBED
    return "; ".join(texts[:_DESCRIBED]) + (f"; and {more} more policies" if more > 0 else "")


def _printable(expressions: tuple[str, ...]) -> str:
    return f"({some_of(expressions, _EXPRESSIONS, format_item=lambda each: each[:_CHARACTERS])})"
