"""Do the brokers leave balancing to trimtab?  Two balancers of the same bundles undo each other's moves."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.doctor.facts import Facts, PulsarFacts
from controller.doctor.finding import Finding, fine, listed
from controller.settings.trimtab_toml import DecisionSettings


class _Switch(NamedTuple):
    key: str
    #: The setting in [decisions] by which trimtab does the same thing.
    ours: str
    does: str


_SWITCHES: Final = (
    _Switch("loadBalancerSheddingEnabled", "shed", "brokers unload bundles by themselves"),
    _Switch("loadBalancerAutoBundleSplitEnabled", "split", "brokers split bundles by themselves"),
    _Switch("loadBalancerAutoUnloadSplitBundlesEnabled", "split", "brokers unload what they have split"),
)
_REPORTS: Final = "loadBalancerEnabled"


def broker_conf(facts: Facts) -> Iterator[Finding]:
    """broker-conf."""
    if facts.broker_conf_error:
        yield Finding(
            code="broker-conf",
            # A machine that only collects or executes may have none.
            severity="error" if facts.has_broker_conf else "warning",
            objects=(facts.settings.cluster.broker_conf,),
            seen=facts.broker_conf_error,
            wanted="options that the controller can use",
            advice="correct it, or broker_conf in [cluster]: `trimtab run` does not start",
        )


def balancing_off(facts: Facts) -> Iterator[Finding]:
    """balancing-not-off, balancing-unknown, load-reports-off."""
    if facts.pulsar is None or not facts.pulsar.brokers:
        return
    findings = [*_own_balancing(facts.pulsar, facts.settings.decisions), *_reports_off(facts.pulsar)]
    yield from findings
    unknown = [broker.name for broker in facts.pulsar.brokers if broker.settings is None]
    if unknown:
        yield Finding(
            code="balancing-unknown",
            severity="warning",
            objects=tuple(unknown),
            seen=f"{listed(unknown)} did not show their settings",
            wanted="to know that they do not balance by themselves",
            advice="see the other findings about these brokers, then ask again",
        )
    elif not findings:
        yield fine("balancing-off", [broker.name for broker in facts.pulsar.brokers], "left to trimtab")


def _own_balancing(pulsar: PulsarFacts, decisions: DecisionSettings) -> Iterator[Finding]:
    for switch in _SWITCHES:
        if not getattr(decisions, switch.ours):
            continue  # what trimtab does not do is the brokers' to do
        on, where = _not(pulsar, switch.key, "false")
        if on:
            yield Finding(
                code="balancing-not-off",
                severity="error",
                objects=on,
                seen=f"{switch.key}=true {where}: {switch.does}",
                wanted=f"{switch.key}=false",
                advice=f"pulsar-admin brokers update-dynamic-config --config {switch.key} --value false,"
                " and the same in broker.conf for brokers to come",
            )


def _reports_off(pulsar: PulsarFacts) -> Iterator[Finding]:
    off, where = _not(pulsar, _REPORTS, "true")
    if off:
        yield Finding(
            code="load-reports-off",
            severity="error",
            objects=off,
            seen=f"{_REPORTS}=false {where}: brokers report no load",
            wanted=f"{_REPORTS}=true",
            advice=f"set {_REPORTS}=true in broker.conf and restart these brokers: it cannot be changed while they run",
        )


def _not(pulsar: PulsarFacts, key: str, wanted: str) -> tuple[tuple[str, ...], str]:
    """The brokers that run with another value of *key*, or soon will, and where that value comes from.

    Brokers take a changed setting over when they hear of it, so either place counts.
    """
    changed = (pulsar.dynamic or {}).get(key, wanted).strip().lower()
    if changed != wanted:
        return tuple(broker.name for broker in pulsar.brokers), "as a dynamic setting"
    by_value: dict[str, list[str]] = defaultdict(list)
    for broker in pulsar.brokers:
        if broker.settings is not None:
            by_value[broker.settings.get(key, wanted).strip().lower()].append(broker.name)
    by_value.pop(wanted, None)
    others = sorted(name for names in by_value.values() for name in names)
    return tuple(others), f"on {listed(others)}"
