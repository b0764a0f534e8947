"""Which version of Pulsar decides, and does trimtab's broker.conf say what that version's brokers would do?"""

from collections.abc import Iterator, Set
from typing import Final

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, fine, listed, warning
from controller.model.pulsar_version import (
    ASSUMED,
    DEFAULTS,
    FALLBACKS,
    KNOWN_LINES,
    PulsarVersion,
    VersionInUse,
    default_in,
    not_known,
    version_among,
    version_text,
)
from controller.settings.brokers_own import brokers_own_rows
from controller.settings.pairs import SHEDDER, for_version, of_load_manager
from controller.settings.pulsar_version import pinned
from controller.strategies.catalogue import SHEDDERS, short_name

_LOAD_MANAGER: Final = "loadManagerClassName"
#: Options whose defaults brokers alone use.
_NOT_READ: Final = frozenset(row.key for row in brokers_own_rows())


def version_in_force(facts: Facts) -> Iterator[Finding]:
    """pulsar-version, pulsar-version-unknown, pulsar-version-not-the-brokers, pulsar-version-too-old."""
    versions, used = _versions(facts), version_used(facts)
    if used.source == "nobody":
        if facts.pulsar is not None and facts.pulsar.brokers:
            yield warning(
                "pulsar-version-unknown",
                "[cluster] pulsar",
                observed="no broker reported its version of Pulsar here",
                expected="the brokers' version, which determines the defaults of options that broker.conf does not set",
                advice=f"if no collector of trimtab writes it to the log, trimtab decides as {used.version};"
                ' set pulsar = "<version>" in [cluster] to choose another one',
            )
        return
    others = sorted(name for name, version in versions.items() if used.version not in (version, version.line))
    if used.source == "settings" and others:
        yield warning(
            "pulsar-version-not-the-brokers",
            others,
            observed=f"the settings say {used.version}; {_by_version(versions)}",
            expected="the brokers' version",
            advice='[cluster] pulsar = "auto" follows the brokers',
        )
        return
    oldest = KNOWN_LINES[0]
    if used.version.line < oldest:
        yield warning(
            "pulsar-version-too-old",
            sorted(versions),
            observed=version_text(used),
            expected=f"{oldest} or later",
            advice=f"trimtab takes the defaults of {oldest}: set in broker.conf the values that these brokers use",
        )
        return
    yield fine("pulsar-version", sorted(versions), version_text(used))


def options_known(facts: Facts) -> Iterator[Finding]:
    """option-unknown-to-brokers: an option in broker.conf that the version in force does not know."""
    used = version_used(facts)
    unknown = not_known(used.version, facts.broker_conf.options)
    if unknown and used.source != "nobody":
        yield warning(
            "option-unknown-to-brokers",
            unknown,
            observed=f"broker.conf sets {listed(unknown)}; brokers of Pulsar {used.version} do not know"
            f" {'it' if len(unknown) == 1 else 'them'}",
            expected="options that the brokers know",
            advice="trimtab applies such an option anyway; the brokers' own balancing would not. docs/strategies.md"
            " lists the version that introduced each",
        )


def _of_others(option: str, shedders: Set[str]) -> bool:
    """Whether *option* is trimtab's own for one shedder, which is none of *shedders*."""
    return any(option.startswith(f"trimtab{name}") for name in SHEDDERS.keys() - shedders)


def defaults(facts: Facts) -> Iterator[Finding]:
    """default-changes, defaults-by-version: options that broker.conf leaves out, with other defaults by version."""
    if not facts.broker_conf.exists or facts.broker_conf.error:
        return
    used, versions = version_used(facts), _versions(facts)
    written = of_load_manager(facts.broker_conf.options.get(_LOAD_MANAGER, ""), facts.broker_conf.options)
    span = sorted({used.version, *versions.values()})
    by_version = {version: for_version(written, version) for version in (*span, ASSUMED)}
    shedders = {short_name(by_version[version].get(SHEDDER) or default_in(version, SHEDDER) or "") for version in span}
    left_out = [
        option
        for option in DEFAULTS
        if not written.get(option) and option not in _NOT_READ and not _of_others(option, shedders)
    ]
    value = {
        (option, each): conf.get(option) or default_in(each, option)
        for option in left_out
        for each, conf in by_version.items()
    }
    changing = [option for option in left_out if len({value[option, each] for each in span}) > 1]
    for option in changing:
        yield warning(
            "default-changes",
            option,
            observed=f"broker.conf does not set it; {value[option, span[0]]} in Pulsar {span[0]},"
            f" {value[option, span[-1]]} in {span[-1]}; {value[option, used.version]} holds now",
            expected="a line in broker.conf, unless you want the change",
            advice=f"{option}={value[option, used.version]} keeps the current value",
        )
    others = [each for each in left_out if each not in changing and value[each, used.version] != value[each, ASSUMED]]
    changed = [f"{option}={value[option, used.version]}" for option in others]
    if changed and used.source != "nobody":
        yield fine("defaults-by-version", [f"Pulsar {used.version}"], f"broker.conf leaves out: {', '.join(changed)}")


def placement(facts: Facts) -> Iterator[Finding]:
    """placement-replaced: brokers use another placement than the one that is named, or the default."""
    used = version_used(facts)
    conf = of_load_manager(facts.broker_conf.options.get(_LOAD_MANAGER, ""), facts.broker_conf.options)
    for each in FALLBACKS:
        named, partner = (
            short_name(conf.get(option, "") or default_in(used.version, option) or "")
            for option in (each.option, each.partner)
        )
        if used.version >= each.since and named == each.strategy and partner != named:
            yield warning(
                "placement-replaced",
                each.option,
                observed=f"{each.partner}={partner} with {each.option}={named}"
                f"{'' if conf.get(each.option) else ', the default'}: brokers of Pulsar {used.version} place by"
                f" {each.instead}, and so does trimtab",
                expected="the same class for both, or a separate placement",
                advice=f"{each.option}={each.instead}",
            )


def _versions(facts: Facts) -> dict[str, PulsarVersion]:
    """Broker -> its version, of those that say one."""
    brokers = () if facts.pulsar is None else facts.pulsar.brokers
    return {each.name: version for each in brokers if (version := PulsarVersion.parse(each.version)) is not None}


def version_used(facts: Facts) -> VersionInUse:
    """The version that decides, by the brokers' own answers."""
    leader = "" if facts.pulsar is None else facts.pulsar.leader
    return version_among(_versions(facts), leader, None, pinned(facts.settings.cluster.pulsar))


def _by_version(versions: dict[str, PulsarVersion]) -> str:
    return "; ".join(
        f"{version}: {listed(sorted(name for name, each in versions.items() if each == version))}"
        for version in sorted(set(versions.values()))
    )
