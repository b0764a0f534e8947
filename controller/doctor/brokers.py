"""Are the brokers up, do they permit trimtab's work, and are they of a known version?"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from controller.doctor.facts import BrokerFacts, Facts, PulsarFacts
from controller.doctor.finding import Finding, error, fine, listed, warning
from controller.model.topic_kinds import SWITCHES, serves
from controller.wire.readable import counted

#: Versions of Pulsar that trimtab was tested with.
_KNOWN: Final = re.compile(r"(?:3\.3|4\.0|4\.2|5\.0)\.\d+")
_BE_SUPER: Final = (
    "give trimtab the token or user of a role in superUserRoles of broker.conf ([pulsar] token_file, or user and"
    " password_file): only super users read broker-stats and unload bundles"
)


def brokers_reachable(facts: Facts) -> Iterator[Finding]:
    """pulsar-not-configured, brokers-unreachable, broker-unreachable, broker-call-failed."""
    pulsar = facts.pulsar
    if pulsar is None:
        yield warning(
            "pulsar-not-configured",
            "[pulsar]",
            observed="the settings have no section [pulsar]",
            expected="the brokers' admin API",
            advice="add [pulsar] with admin_url: without it the brokers' own balancing cannot be checked here; if no"
            " collector of trimtab writes it to the log, mode active issues nothing: make sure that brokers do not"
            ' balance, then set brokers_balance_unknown = "ignore" in [guardrails]',
        )
        return
    if pulsar.error:
        if pulsar.status not in (401, 403):
            yield error(
                "brokers-unreachable",
                _urls(facts),
                observed=pulsar.error,
                expected="the list of active brokers",
                advice="start the brokers, or correct admin_url, and tls for https, in [pulsar]",
            )
        return
    yield from _silent_or_failing(pulsar, _urls(facts))
    if not pulsar.brokers:
        yield error(
            "brokers-unreachable",
            _urls(facts),
            observed="no broker is active",
            expected="at least one",
            advice="start the brokers",
        )
    elif not any(broker.silent for broker in pulsar.brokers):
        yield fine("brokers-reachable", _names(pulsar), f"{len(pulsar.brokers)} answer")


def _silent_or_failing(pulsar: PulsarFacts, urls: tuple[str, ...]) -> Iterator[Finding]:
    for broker in (broker for broker in pulsar.brokers if broker.silent):
        yield error(
            "broker-unreachable",
            broker.name,
            observed=broker.silent,
            expected="an answer from every active broker",
            advice="open its web service port to trimtab, check its advertisedAddress, or restart the broker",
        )
    of_all = [(urls, pulsar.failed), *(((broker.name,), broker.failed) for broker in pulsar.brokers)]
    for objects, failed in of_all:
        for what, answer in failed.items():
            yield warning(
                "broker-call-failed",
                objects,
                observed=f"{what}: {answer}",
                expected="an answer",
                advice="see the broker's log; checks that need this answer were skipped",
            )


def permissions(facts: Facts) -> Iterator[Finding]:
    """permission-denied: all calls that the brokers refused, in one finding."""
    pulsar = facts.pulsar
    if pulsar is None:
        return
    refused: dict[str, list[tuple[str, str]]] = defaultdict(list)
    if pulsar.status in (401, 403):
        refused["active brokers"].append((_urls(facts)[0], pulsar.error))
    for what, answer in pulsar.refused.items():
        refused[what].append((_urls(facts)[0], answer))
    for broker in pulsar.brokers:
        for what, answer in broker.refused.items():
            refused[what].append((broker.name, answer))
    for what, answers in refused.items():
        yield error(
            "permission-denied",
            [name for name, _ in answers],
            observed=f"{what}: {answers[0][1]}",
            expected="the rights of a super user",
            advice=_BE_SUPER,
        )
    if not refused and any(broker.settings is not None for broker in pulsar.brokers):
        yield fine("permissions", _names(pulsar), "trimtab is a super user")


def moves_confirmed(facts: Facts) -> Iterator[Finding]:
    """moves-unconfirmed: brokers that do not list bundles that were moved to them."""
    for broker, bundles in facts.unconfirmed.items():
        yield error(
            "moves-unconfirmed",
            broker,
            observed=f"it does not list {listed(bundles)}, which trimtab moved there",
            expected="every bundle in the load of its broker",
            advice="look at its log and its load report, and restart it if necessary; it gets no more bundles until it"
            " lists them, or until `trimtab resume`",
        )


def no_fatal_bundles(facts: Facts) -> Iterator[Finding]:
    """bundle-kills-brokers: bundles whose owners died one after the other."""
    for bundle, each in facts.fatal.items():
        yield Finding(
            code="bundle-kills-brokers",
            severity="error",
            objects=(bundle,),
            observed=f"{counted(each.deaths, 'owner')} died in a row, the last ones {listed(each.brokers)}",
            expected="bundles that do not kill their brokers",
            advice="look at the logs of these brokers for the cause; stop the clients of the topic that causes it"
            " (`pulsar-admin topics list --bundle` lists the bundle's topics); trimtab does not move the bundle until"
            " `trimtab resume`",
        )


def topic_kinds(facts: Facts) -> Iterator[Finding]:
    """topic-kind-on-one-broker: bundles with such topics cannot leave it."""
    brokers = [broker for broker in _answering(facts) if broker.settings is not None]
    for kind, switch in SWITCHES.items():
        off = [broker.name for broker in brokers if serves(broker.settings or {}, kind) is False]
        on = [broker.name for broker in brokers if broker.name not in off]
        if not off:
            continue
        if len(on) != 1:
            yield fine("topic-kinds", off, f"{switch} is false: {len(on)} other brokers serve such topics")
            continue
        yield warning(
            "topic-kind-on-one-broker",
            on,
            observed=f"{switch} is false on {listed(off)}",
            expected="two brokers or more that serve such topics, or none",
            advice=f"set {switch}=true in broker.conf of another broker: until then bundles with such topics stay where"
            " they are, in plans too (TopicKinds)",
        )


def versions(facts: Facts) -> Iterator[Finding]:
    """broker-versions-differ, broker-version-untried."""
    by_version: dict[str, list[str]] = defaultdict(list)
    for broker in _answering(facts):
        if broker.version:
            by_version[broker.version].append(broker.name)
    untried = sorted(version for version in by_version if not _KNOWN.fullmatch(version))
    if len(by_version) > 1:
        fewest = min(by_version.values(), key=len)
        yield warning(
            "broker-versions-differ",
            sorted(fewest),
            observed="; ".join(f"{version}: {listed(sorted(names))}" for version, names in sorted(by_version.items())),
            expected="the same version everywhere",
            advice="finish the upgrade before mode = 'active', or set preferLaterVersions=true in broker.conf; until"
            " then trimtab decides as the version of Pulsar's leader: docs/upgrade.md",
        )
    for version in untried:
        yield warning(
            "broker-version-untried",
            sorted(by_version[version]),
            observed=version,
            expected="3.3.x, 4.0.x, 4.2.x or 5.0.x",
            advice="run with mode = 'dry_run' first: docs/strategies.md lists the tested versions",
        )
    if len(by_version) == 1 and not untried:
        yield fine("broker-versions", [name for names in by_version.values() for name in names], *by_version)


def cluster_name(facts: Facts) -> Iterator[Finding]:
    """cluster-name: [cluster] name is not the brokers'."""
    pulsar, ours = facts.pulsar, facts.settings.cluster.name
    if pulsar is None:
        return
    theirs = sorted({name for b in _answering(facts) if (name := (b.settings or {}).get("clusterName", ""))})
    if theirs in ([ours], []) and (not pulsar.clusters or ours in pulsar.clusters):
        if theirs:
            yield fine("cluster-name", [ours], ours)
        return
    yield error(
        "cluster-name",
        ours,
        observed=f"the brokers belong to {listed(theirs or pulsar.clusters)}",
        expected=f"cluster {ours}",
        advice=f'[cluster] name = "{(theirs or pulsar.clusters)[0]}", or other brokers in [pulsar] admin_url',
    )


def _answering(facts: Facts) -> list[BrokerFacts]:
    return [] if facts.pulsar is None else [broker for broker in facts.pulsar.brokers if not broker.silent]


def _names(pulsar: PulsarFacts) -> tuple[str, ...]:
    return tuple(broker.name for broker in pulsar.brokers)


def _urls(facts: Facts) -> tuple[str, ...]:
    return () if facts.settings.pulsar is None else facts.settings.pulsar.admin_url
