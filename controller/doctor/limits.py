"""Are the brokers' own limits plausible?  Every usage is a share of them, and so is every decision.

Pulsar: LinuxInfoUtils (speed of the network cards, cores), ResourceUsage.percentUsage: a limit of 0 means no usage.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller.doctor.facts import BrokerFacts, Facts
from controller.doctor.finding import Finding, error, fine, listed, warning
from controller.settings.capacity import CapacityOverrides

#: Resource -> unit, and the range of believable limits.
_PLAUSIBLE: Final[Mapping[str, tuple[str, float, float]]] = {
    "cpu": ("% (100 a core)", 10, 100 * 4096),
    "bandwidthIn": ("kbit/s", 10_000, 1.6e9),
    "bandwidthOut": ("kbit/s", 10_000, 1.6e9),
}
#: Resource -> its name among the capacity overrides.
_OVERRIDE: Final[Mapping[str, str]] = {"cpu": "cpu", "bandwidthIn": "bandwidth_in", "bandwidthOut": "bandwidth_out"}
#: Limits this many times apart are likely a mistake.
_APART: Final = 4.0
#: CPU usage is measured, so it may come out somewhat above its limit.
_ABOVE: Final = 1.05
_ADVICE: Final[Mapping[str, str]] = {
    "cpu": "check how many cores the broker's JVM sees (containers), or set its cpu_cores in the file that [collector]"
    " capacity_overrides names",
    "bandwidthIn": "set loadBalancerOverrideBrokerNicSpeedGbps in broker.conf, or, since Pulsar 4.2,"
    " loadBalancerOverrideBrokerNics to the interfaces that count, or set its bandwidth_in_mbits and"
    " bandwidth_out_mbits in the file that [collector] capacity_overrides names",
}


def limits_plausible(facts: Facts) -> Iterator[Finding]:
    """limit-missing, limit-absurd, usage-above-limit, limits-differ, limits-unknown, capacity-unreadable.

    What the capacity overrides say of a broker counts in place of its own limit.
    """
    if facts.capacity_error:
        yield error(
            "capacity-unreadable",
            facts.settings.collector.capacity_overrides or "",
            observed=facts.capacity_error,
            expected="the brokers' capacities",
            advice="correct the file, or capacity_overrides in [collector]: no collector starts with it",
        )
    if facts.pulsar is None:
        return
    reports = {broker.name: broker.report for broker in facts.pulsar.brokers if broker.report is not None}
    yield from _unknown([broker for broker in facts.pulsar.brokers if not broker.silent and broker.report is None])
    problems = [finding for resource in _PLAUSIBLE for finding in _of_resource(resource, reports, facts.capacity)]
    yield from problems
    if reports and not problems:
        yield fine("limits", reports, "CPU and network limits look plausible")


def _unknown(brokers: list[BrokerFacts]) -> Iterator[Finding]:
    if brokers:
        names = [broker.name for broker in brokers]
        yield warning(
            "limits-unknown",
            names,
            observed=f"no load report over REST from {listed(names)}",
            expected="limits of CPU and network",
            advice="with ExtensibleLoadManagerImpl that is normal: look at cpu and bandwidth in the collector's sweeps",
        )


def _of_resource(
    resource: str, reports: Mapping[str, Mapping[str, Any]], capacity: CapacityOverrides
) -> Iterator[Finding]:
    unit, lowest, highest = _PLAUSIBLE[resource]
    limits = {
        name: capacity.of(name).get(_OVERRIDE[resource], _number(report, resource, "limit"))
        for name, report in reports.items()
    }
    missing = sorted(name for name, limit in limits.items() if limit <= 0)
    known = {name: limit for name, limit in limits.items() if limit > 0}
    if missing:
        # Where all brokers lack it none is judged wrongly: the resource does not count.
        yield Finding(
            code="limit-missing",
            severity="error" if known else "warning",
            objects=tuple(missing),
            observed=f"{resource} limit {limits[missing[0]]:g} on {listed(missing)}"
            + (": they look idle compared with the others" if known else ": the resource does not count at all"),
            expected=f"{resource} limit above 0 {unit}",
            advice=_advice(resource),
        )
    absurd = sorted(name for name, limit in known.items() if not lowest <= limit <= highest)
    if absurd:
        yield warning(
            "limit-absurd",
            absurd,
            observed=f"{resource} limit {_by_value({name: known[name] for name in absurd})}",
            expected=f"{lowest:g} to {highest:g} {unit}",
            advice=_advice(resource),
        )
    yield from _against_each_other(resource, reports, known)


def _against_each_other(
    resource: str, reports: Mapping[str, Mapping[str, Any]], known: Mapping[str, float]
) -> Iterator[Finding]:
    """Usage beside its limit, and limits beside those of other brokers; *known*: the limits above 0."""
    usages = {name: _number(reports[name], resource, "usage") for name in known}
    above = sorted(name for name in known if usages[name] > _ABOVE * known[name])
    if above:
        yield warning(
            "usage-above-limit",
            above,
            observed="; ".join(f"{name}: {resource} {usages[name]:g} of {known[name]:g}" for name in above[:4]),
            expected="usage within the limit",
            advice=_advice(resource),
        )
    if known and max(known.values()) >= _APART * min(known.values()):
        yield warning(
            "limits-differ",
            sorted(known),
            observed=f"{resource} limit {_by_value(known)}",
            expected=f"limits that differ by less than a factor of {_APART:g}, or brokers that really differ so much",
            advice=_advice(resource),
        )


def _advice(resource: str) -> str:
    return _ADVICE.get(resource, _ADVICE["bandwidthIn"])


def _number(report: Mapping[str, Any], resource: str, field: str) -> float:
    """0 where the report does not say, or says something else."""
    usage = report.get(resource)
    number = usage.get(field, 0) if isinstance(usage, Mapping) else 0
    return float(number) if isinstance(number, int | float) else 0.0


def _by_value(limits: Mapping[str, float]) -> str:
    by_value: dict[float, list[str]] = defaultdict(list)
    for name in sorted(limits):
        by_value[limits[name]].append(name)
    return "; ".join(f"{limit:g}: {listed(by_value[limit])}" for limit in sorted(by_value))
