"""Do the brokers leave balancing to trimtab?  Two balancers of the same bundles undo each other's moves."""

from collections.abc import Iterator, Mapping
from typing import Final

from controller.doctor.facts import Facts, PulsarFacts
from controller.doctor.finding import Finding, error, fine, listed, warning
from controller.model.balancing import ENABLED, SHEDDING, SPLITTING, Balancing, at_work, balancing_of
from controller.settings.trimtab_toml import DecisionSettings

#: Switch -> what brokers do by it.
_DOES: Final = {SHEDDING: "brokers unload bundles by themselves", SPLITTING: "brokers split bundles by themselves"}
#: Of a broker that does not show its settings, beside those that were changed for all brokers.
_USUAL: Final = {ENABLED: "true", SHEDDING: "false", SPLITTING: "false"}


def broker_conf(facts: Facts) -> Iterator[Finding]:
    """broker-conf."""
    if facts.broker_conf.error:
        yield Finding(
            code="broker-conf",
            # A machine that only collects or executes may have none.
            severity="error" if facts.broker_conf.exists else "warning",
            objects=(facts.settings.cluster.broker_conf,),
            observed=facts.broker_conf.error,
            expected="options that the controller can use",
            advice="correct it, or broker_conf in [cluster]: `trimtab run` does not start",
        )


def balancing_off(facts: Facts) -> Iterator[Finding]:
    """balancing-not-off, balancing-unknown, load-reports-off."""
    guardrails, decisions = facts.settings.guardrails, facts.settings.decisions
    if facts.pulsar is None or not facts.pulsar.brokers:
        return
    findings = [*_own_balancing(facts.pulsar, decisions), *_reports_off(facts.pulsar)]
    yield from findings
    unknown = [broker.name for broker in facts.pulsar.brokers if _switches(broker.settings) is None]
    if unknown:
        holds = guardrails.brokers_balance_unknown == "hold"
        yield warning(
            "balancing-unknown",
            unknown,
            observed=f"{listed(unknown)} did not return their settings"
            + (", so mode active issues nothing if collectors cannot read them either" if holds else ""),
            expected="settings that trimtab can read, to verify that these brokers do not balance by themselves",
            advice="see the other findings about these brokers, then run `trimtab doctor` again"
            + ('; or set brokers_balance_unknown = "ignore" in [guardrails]' if holds else ""),
        )
    elif not findings:
        yield fine(
            "balancing-off",
            [broker.name for broker in facts.pulsar.brokers],
            "the brokers' own shedding and splitting are off",
        )


def _own_balancing(pulsar: PulsarFacts, decisions: DecisionSettings) -> Iterator[Finding]:
    """Brokers take a changed setting over when they hear of it, so both what they run with and what is set counts."""
    dynamic = {key: value for key, value in (pulsar.dynamic or {}).items() if key in _USUAL}
    on: dict[str, set[str]] = {switch: set() for switch in _DOES}
    for changed in ({}, dynamic):
        of_brokers = {each.name: _switches({**(each.settings or _USUAL), **changed}) for each in pulsar.brokers}
        known = {name: switches for name, switches in of_brokers.items() if switches is not None}
        for switch, brokers in at_work(known, shed=decisions.shed, split=decisions.split).items():
            on[switch].update(brokers)
    for switch, names in ((switch, sorted(on[switch])) for switch in on if on[switch]):
        where = "as a dynamic setting" if _is_on(dynamic.get(switch)) else f"on {listed(names)}"
        yield error(
            "balancing-not-off",
            names,
            observed=f"{switch}=true {where}: {_DOES[switch]}",
            expected=f"{switch}=false",
            advice=f"pulsar-admin brokers update-dynamic-config --config {switch} --value false,"
            " and the same in broker.conf for new brokers; `trimtab take-over` sets it, and then the mode active",
        )


def _switches(settings: Mapping[str, str] | None) -> Balancing | None:
    """The switches in *settings*; None where those do not say."""
    try:
        return None if settings is None else balancing_of(settings)
    except ValueError:
        return None


def _is_on(value: str | None) -> bool:
    return (value or "").strip().lower() == "true"


def _reports_off(pulsar: PulsarFacts) -> Iterator[Finding]:
    changed = (pulsar.dynamic or {}).get(ENABLED)
    if changed is not None and not _is_on(changed):
        off, where = [broker.name for broker in pulsar.brokers], "as a dynamic setting"
    else:
        off = sorted(each.name for each in pulsar.brokers if not _is_on((each.settings or _USUAL).get(ENABLED, "true")))
        where = f"on {listed(off)}"
    if off:
        yield error(
            "load-reports-off",
            off,
            observed=f"{ENABLED}=false {where}: brokers report no load",
            expected=f"{ENABLED}=true",
            advice=f"set {ENABLED}=true in broker.conf and restart these brokers: it cannot be changed while they run",
        )
