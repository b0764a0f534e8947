"""Do the names in the settings match anything?  One that matches nothing has no effect, and no error shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, fine, listed, warning
from controller.model.errors import TrimtabError
from controller.model.name_patterns import Namespaces, is_pattern, matches
from controller.model.names import is_system_owned, parse_bundle
from controller.settings.broker_conf import names_in
from controller.settings.pulsar_names import namespace_or_bundle
from controller.strategies.filters.shedding_excluded_namespaces import EXCLUDED_NAMESPACES
from controller.wire.readable import counted, utc

#: The codes of patterns in decisions.only -> in decisions.excluded.
_OF_EXCLUDED: Final = {"only-unknown": "excluded-unknown", "only-matches-nothing": "excluded-matches-nothing"}
#: An exclusion by a person that has been there for longer is probably forgotten.
_OLD_MS: Final = 7 * 86_400_000
#: Of these as many are told with their dates.
_MOST_OLD: Final = 5


def excluded_by_people(facts: Facts) -> Iterator[Finding]:
    """exclusion-matches-nothing, exclusion-of-everything, exclusion-old."""
    people = facts.excluded
    old = [each for each in people if facts.now_ms - each.at_ms > _OLD_MS]
    if old:
        since = ", ".join(f"{each.name} by {each.by} since {utc(each.at_ms)}" for each in old[:_MOST_OLD])
        yield warning(
            "exclusion-old",
            [each.name for each in old],
            observed=f"excluded for more than a week: {since}{', ...' if len(old) > _MOST_OLD else ''}",
            expected="an exclusion for as long as a migration or an incident lasts",
            advice="`trimtab include` each that is not needed any more, or name it in decisions.excluded",
        )
    if facts.pulsar is None or facts.pulsar.error:
        return
    known, boundaries = facts.pulsar.namespaces, facts.pulsar.boundaries
    for each in people:
        space = namespace_in(each.name)
        why = "" if is_name(each.name) else "this is no name of a namespace or a bundle"
        if why := why or (_why_missing(each.name, boundaries[space]) if space in boundaries else ""):
            yield warning(
                "exclusion-matches-nothing",
                each.name,
                observed=f"{each.by} excluded it, and {why}",
                expected="bundles and namespaces of the cluster",
                advice="`trimtab include` it, and exclude what is meant: the namespace, where its bundles are split",
            )
    shut = Namespaces.of([*facts.settings.decisions.excluded, *(each.name for each in people)])
    others = [name for name in known or () if not is_system_owned(name)]
    if people and others and all(name in shut for name in others):
        yield warning(
            "exclusion-of-everything",
            [each.name for each in people],
            observed=f"all {counted(len(others), 'namespace')} of the cluster are excluded: nothing is moved or split",
            expected="a pause, where nothing is to move: status and metrics show it",
            advice="`trimtab include` them, and `trimtab pause` where that is meant",
        )


def excluded(facts: Facts) -> Iterator[Finding]:
    """excluded-matches-nothing, excluded-unknown."""
    if facts.pulsar is None or facts.pulsar.error:
        return
    boundaries = facts.pulsar.boundaries
    configured = facts.settings.decisions.excluded
    names = [name for name in configured if not is_pattern(name) and not is_system_owned(namespace_in(name))]
    unknown = [name for name in names if namespace_in(name) not in boundaries]
    missing = {
        name: why
        for name in names
        if (known := boundaries.get(namespace_in(name))) is not None and (why := _why_missing(name, known))
    }
    if unknown:
        yield warning(
            "excluded-unknown",
            unknown,
            observed=f"the brokers did not list the bundles of {listed(unknown)}",
            expected="a list of bundles, to check the names in decisions.excluded",
            advice="see the other findings about the brokers, then run `trimtab doctor` again",
        )
    for name, why in missing.items():
        yield warning(
            "excluded-matches-nothing",
            name,
            observed=why,
            expected="names in decisions.excluded that exist in the cluster",
            advice="correct or remove the name: it excludes nothing;"
            f" `pulsar-admin namespaces bundles {namespace_in(name)}` shows what there is",
        )
    if names and not unknown and not missing:
        yield fine("excluded", names, "every excluded namespace exists")


def patterns(facts: Facts) -> Iterator[Finding]:
    """only-matches-nothing, only-unknown, and what holds of names in decisions.excluded for patterns there."""
    if facts.pulsar is None or facts.pulsar.error:
        return
    decisions, known = facts.settings.decisions, facts.pulsar.namespaces
    for key, names in (("only", decisions.only), ("excluded", tuple(filter(is_pattern, decisions.excluded)))):
        idle = [name for name in names if known is not None and not any(matches(name, each) for each in known)]
        findings = [_idle_pattern(name, key) for name in idle]
        if names and known is None:
            findings = [_unknown_patterns(names, key)]
        of_only = key == "only"
        yield from findings if of_only else (replace(each, code=_OF_EXCLUDED[each.code]) for each in findings)
        if names and known is not None and not idle:
            yield fine(key, names, "each matches a namespace")


def _unknown_patterns(names: tuple[str, ...], key: str) -> Finding:
    return warning(
        "only-unknown",
        names,
        observed="the brokers did not list their namespaces",
        expected=f"a list of namespaces, to check the names in decisions.{key}",
        advice="see the other findings about the brokers, then run `trimtab doctor` again",
    )


def _idle_pattern(name: str, key: str) -> Finding:
    return warning(
        "only-matches-nothing",
        name,
        observed=f"no namespace matches {name}",
        expected=f"names in decisions.{key} that exist in the cluster",
        advice="correct or remove the name; `pulsar-admin namespaces list TENANT` shows what there is",
    )


def excluded_by_brokers(facts: Facts) -> Iterator[Finding]:
    """excluded-by-brokers-alone: namespaces that brokers of Pulsar 4.2 and later do not unload, but trimtab may."""
    if facts.pulsar is None:
        return
    ours = facts.broker_conf.excluded_namespaces | set(facts.settings.decisions.excluded)
    values = [(facts.pulsar.dynamic or {}).get(EXCLUDED_NAMESPACES, "")]
    values += [(broker.settings or {}).get(EXCLUDED_NAMESPACES, "") for broker in facts.pulsar.brokers]
    # A dynamic setting is a text of names; a broker shows its settings as Java prints a set.
    theirs = frozenset[str]().union(*(names_in(text.strip().removeprefix("[").removesuffix("]")) for text in values))
    shut = Namespaces.of(ours)
    missing = sorted(name for name in theirs if name not in shut)
    if missing:
        yield warning(
            "excluded-by-brokers-alone",
            missing,
            observed=f"the brokers exclude {listed(missing)} from shedding, and trimtab does not",
            expected="the same namespaces on both sides",
            advice=f"name them in {EXCLUDED_NAMESPACES} of the broker.conf that trimtab reads: it may move them",
        )


def capacity_overrides(facts: Facts) -> Iterator[Finding]:
    """capacity-matches-nothing."""
    if facts.pulsar is None or not facts.pulsar.brokers:
        return
    brokers = [broker.name for broker in facts.pulsar.brokers]
    unused = [each.match for each in facts.capacity.brokers if not any(map(each.fits, brokers))]
    if unused:
        yield warning(
            "capacity-matches-nothing",
            unused,
            observed=f"{listed(unused)} in the file of capacity overrides: no active broker has such a name",
            expected="the host, or host:port, of brokers, or a regular expression for all of it",
            advice=f"correct match, or remove the section; the brokers are {listed(brokers)}",
        )


def is_name(name: str) -> bool:
    """Whether *name* is one of a namespace or a bundle, no pattern, and no steps in a path."""
    try:
        return not is_pattern(namespace_or_bundle(name)) and not {".", ".."} & {*name.split("/")}
    except ValueError:
        return False


def namespace_in(name: str) -> str:
    """The namespace of *name*, which names a namespace or a bundle."""
    try:
        return parse_bundle(name).namespace
    except TrimtabError:
        return name


def _why_missing(name: str, boundaries: Sequence[int]) -> str:
    """Why *name* matches nothing in a namespace with these *boundaries*, none: there is no such one; "" if it does."""
    if not boundaries:
        return f"there is no namespace {namespace_in(name)}"
    try:
        bundle = parse_bundle(name)
    except TrimtabError:
        return ""
    if (bundle.lower, bundle.upper) in pairwise(boundaries):
        return ""
    return f"{bundle.namespace} has {len(boundaries) - 1} bundles, and none with this range: it was split or merged"
