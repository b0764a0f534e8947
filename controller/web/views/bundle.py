"""The pages of a bundle, a broker and a namespace in words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from controller.web.store.values import (
    BrokerPast,
    BrokerStates,
    BundlePast,
    HottestTopic,
    IssuedCommand,
    LatestState,
    NamespacePast,
    OwnedSpan,
    ScalableTopicState,
)
from controller.web.topic_names import NamesByPlace
from controller.web.views.formats import (
    RESOURCE_NAMES,
    UNKNOWN,
    BrokerNames,
    BundleLabel,
    clock,
    of_resource,
    percent,
    short,
    whole,
)
from controller.web.views.now import Heading, KeyFigure
from controller.web.views.strip import level
from controller.wire.readable import amounts, counted

#: The end of the keyspace.
_KEYS: Final = 1 << 32
#: So many ranges are drawn.
_RANGES: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableTopicLine:
    """A scalable topic."""

    label: str
    #: False: the label is a place on the hash ring.
    has_name: bool
    segments: str
    #: Brokers that serve it, of those that may.
    serving: str
    throughput: str
    #: "": it has no traffic.
    unevenness: str
    #: "": not listed.
    busiest: str
    #: Advice; "": none.
    cut: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyspaceSpan:
    """A bundle's part of the keyspace, percent."""

    bundle: str
    x: float
    width: float
    is_self: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HotTopicLine:
    """A hot topic of a bundle in words."""

    #: Its name, or its place where no broker says the name.
    label: str
    has_name: bool
    share: str
    rate: str
    throughput: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceBar:
    """A resource of a broker as a bar."""

    name: str
    use: str
    #: 0 to 1; None: not measured.
    share: float | None
    #: "", high (above the goal) or full (above the limit).
    level: str


def heading(past: BundlePast, state: LatestState | None, names: BrokerNames, now_ms: int) -> Heading:
    """Where the bundle is, since when, and what binds it."""
    if not past.known:
        return Heading(title=past.namespace, text="Nobody has seen a bundle of this name in the last days.")
    if past.bundles > 1:
        text = (
            f"A range of {past.bundles:,} bundles: the cluster has more than pictures have rows. Load and owner are"
            " those of the busiest of them; commands are under the names of bundles."
        )
        return Heading(title=past.namespace, text=text)
    since = past.owners[-1].since_ms if past.owners else None
    if past.owner:
        text = f"On {names.label(past.owner)}{f' since {clock(since, now_ms)}' if since is not None else ''}."
    else:
        text = "No broker has it now; the next client that looks up a topic in it brings it to one."
    under_way = state is not None and any(command.bundle == past.bundle for command in state.in_flight)
    if under_way:
        text += " A command about it is under way."
    if past.verdicts:
        reasons = sorted({str(verdict.reason) for verdict in past.verdicts})
        text += f" The last decision says {', '.join(reasons)}."
    if past.folded:
        text += " Its load is that of a range of neighbours: the cluster has more bundles than summaries list."
    return Heading(title=past.namespace, text=text)


def facts(past: BundlePast) -> tuple[KeyFigure, ...]:
    """Five figures of a bundle."""
    figures = past.figures
    known = all(name in figures for name in ("rate_in", "rate_out"))
    rate = figures["rate_in"] + figures["rate_out"] if known else _last(past, "rate")
    throughput = ""
    if "throughput_in" in figures and "throughput_out" in figures:
        throughput = f"{amount(figures['throughput_in'])} in, {amount(figures['throughput_out'])} out"
    clients = figures.get("producers", 0.0) + figures.get("consumers", 0.0)
    has_clients = "producers" in figures and "consumers" in figures
    kinds = [counted(int(figures.get(f"{each}s", 0)), each) for each in ("producer", "consumer")]
    # Where another bundle of a range becomes its busiest, nothing has moved.
    changes = "of the busiest bundle at a time" if past.bundles > 1 else counted(_changes(past.owners), "change")
    return (
        KeyFigure(label="Load", figure=short(rate), unit="msg/s", context=throughput or "as of the last summary"),
        KeyFigure(
            label="Clients",
            figure=whole(clients) if has_clients else UNKNOWN,
            unit="",
            context=", ".join(kinds) if has_clients else "not listed in the summary",
        ),
        KeyFigure(
            label="Topics",
            figure=whole(figures.get("topics")),
            unit="",
            context="in this bundle" if "topics" in figures else "not listed in the summary",
        ),
        KeyFigure(
            label="Commands, 7 days",
            figure=f"{len(past.commands):,}",
            unit="",
            context=_became(past.commands),
        ),
        KeyFigure(
            label="Owners, 7 days",
            figure=f"{len({each.owner for each in past.owners if each.owner}):,}",
            unit="",
            context=changes,
        ),
    )


def _changes(owners: Sequence[OwnedSpan]) -> int:
    """How often the owner became another one; a time without data is none."""
    known = [each.owner for each in owners if each.owner]
    return sum(one != other for one, other in pairwise(known))


def hot_topics(topics: Sequence[HottestTopic], names: NamesByPlace) -> tuple[HotTopicLine, ...]:
    """*topics* of one bundle in one interval in words, by *names* where these have them."""
    return tuple(
        HotTopicLine(
            label=topic_label(each, names),
            has_name=bool(names.get(each.place)),
            share=f"{percent(100 * each.share)} %",
            rate=f"{short(each.rate)} /s",
            throughput=amount(each.throughput),
        )
        for each in topics
    )


def scalable_topics(topics: Sequence[ScalableTopicState], names: NamesByPlace) -> tuple[ScalableTopicLine, ...]:
    """*topics* of one namespace in words, by *names* where these have them."""
    return tuple(
        ScalableTopicLine(
            label=" or ".join(names.get(each.place, ())) or f"topic at 0x{each.place:08x} on the hash ring",
            has_name=bool(names.get(each.place)),
            segments=f"{each.segments:,}",
            serving=f"{each.serving:,} of {each.may_serve:,}",
            throughput=amount(each.throughput),
            unevenness=f"{each.unevenness:.3g}" if each.throughput else "",
            busiest=each.busiest,
            cut="" if each.cut is None else f"the middle left one half hot: a cut at 0x{each.cut:04x} would be even",
        )
        for each in topics
    )


def busiest_step(past: BundlePast) -> tuple[int, int] | None:
    """Begin and end of the step in which the bundle had the most bytes; None: nothing is known of it."""
    throughput = past.load.values.get("throughput")
    if throughput is None or not np.isfinite(throughput).any():
        return None
    place = int(np.nanargmax(throughput))
    at = int(past.load.at[place])
    return at, at + int(past.load.step[place])


def topic_label(topic: HottestTopic, names: NamesByPlace) -> str:
    """The name of *topic*, or all that are at its place on the ring; without one the place."""
    return " or ".join(names.get(topic.place, ())) or f"at 0x{topic.place:08x} on the hash ring"


def amount(throughput: float) -> str:
    """Bytes a second as people write them: 14.1 MB/s."""
    return amounts([throughput], "bytes/s")[0]


def _last(past: BundlePast, name: str) -> float | None:
    values = past.load.values.get(name)
    if values is None or not len(values) or values[-1] != values[-1]:
        return None
    return float(values[-1])


def _became(commands: Sequence[IssuedCommand]) -> str:
    outcomes = Counter(
        command.measured.outcome if command.measured is not None else command.status.replace("_", " ") or "open"
        for command in commands
    )
    return ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common(3)) or "none"


def ranges(past: BundlePast) -> tuple[KeyspaceSpan, ...]:
    """The bundle among its siblings."""
    made = []
    for sibling in past.siblings[:_RANGES]:
        lower, _, upper = BundleLabel.of(sibling).range.partition("_")
        if not upper:
            continue
        begin, end = int(lower, 16), int(upper, 16)
        made.append(
            KeyspaceSpan(
                bundle=sibling,
                x=round(100 * begin / _KEYS, 3),
                width=round(max(0.1, 100 * (end - begin) / _KEYS - 0.15), 3),
                is_self=sibling == past.bundle,
            )
        )
    return tuple(made)


def broker_heading(
    past: BrokerPast, brokers: BrokerStates | None, state: LatestState | None, names: BrokerNames
) -> Heading:
    """How full the broker is, against what, and what is under way for it."""
    name = names.label(past.broker)
    if not past.known:
        return Heading(title=f"{name} is not known", text="No broker of this name has sent data in the last days.")
    if past.now is None:
        return Heading(title=f"{name} is not active", text="It had data in the last days; it is not there now.")
    node = past.now
    drained = " It is drained and gets no bundles." if node.drained else ""
    moving = (
        [command for command in state.in_flight if past.broker in (command.source, command.destination)]
        if state
        else []
    )
    under_way = f" {counted(len(moving), 'command')} under way." if moving else " Nothing is under way for it."
    if node.fullest_usage is None:
        return Heading(title=f"{name} sends no complete data", text=f"All its figures are unknown.{drained}{under_way}")
    limit, goal = (brokers.limit, brokers.goal) if brokers is not None else (None, None)
    figure = f"{percent(node.fullest_usage)} % {of_resource(node.fullest)}"
    where = {
        "over": f"{name} is above the limit: {figure}, the limit is {percent(limit)} %",
        "above": f"{name} is above the goal: {figure}, the goal is {percent(goal)} %",
    }.get(level(node.fullest_usage, goal, limit), f"{name} has {figure}")
    rank = next((at for at, each in enumerate(brokers.brokers, 1) if each.name == past.broker), 0) if brokers else 0
    place = f"Number {rank:,} of {len(brokers.brokers):,} by usage." if brokers is not None and rank else ""
    return Heading(title=where, text=f"{place}{under_way}{drained}")


def broker_facts(past: BrokerPast) -> tuple[KeyFigure, ...]:
    """Five figures of a broker."""
    node = past.now
    rate = None if node is None or node.rate_in is None or node.rate_out is None else node.rate_in + node.rate_out
    forecast = "" if node is None or node.forecast is None else f"{percent(node.forecast)} % foreseen"
    return (
        KeyFigure(
            label="Usage",
            figure=percent(node.fullest_usage if node else None),
            unit=f"% {of_resource(node.fullest)}" if node and node.fullest else "",
            context=forecast,
        ),
        KeyFigure(label="Messages", figure=short(rate), unit="/s", context="in and out"),
        KeyFigure(
            label="Bundles", figure=whole(node.bundles if node else None), unit="", context="in the last interval"
        ),
        KeyFigure(
            label="Clients",
            figure=whole(node.connections if node else None),
            unit="",
            context=f"{whole(node.topics if node else None)} topics",
        ),
        KeyFigure(label="Commands, 7 days", figure=f"{len(past.commands):,}", unit="", context=_became(past.commands)),
    )


def resources(past: BrokerPast, brokers: BrokerStates | None) -> tuple[ResourceBar, ...]:
    """Each resource of the broker."""
    if past.now is None:
        return ()
    limit, goal = (brokers.limit, brokers.goal) if brokers is not None else (None, None)
    words = {"over": "full", "above": "high"}
    return tuple(
        ResourceBar(
            name=text,
            use=UNKNOWN if usage is None else f"{percent(usage)} %",
            share=None if usage is None else min(1.0, max(0.0, usage / 100)),
            # Heap memory is never weighed: a Java heap fills up and is emptied all the time.
            level="" if name == "memory" else words.get(level(usage, goal, limit), ""),
        )
        for name, text in RESOURCE_NAMES.items()
        for usage in (past.now.usage.get(name),)
    )


def namespace_heading(past: NamespacePast, names: BrokerNames) -> Heading:
    """How many bundles it has, and on how many brokers."""
    if not past.known:
        return Heading(title=past.namespace, text="No bundle of this namespace was seen in the last days.")
    if past.bundles_in_all > len(past.bundles):
        text = (
            f"{counted(past.bundles_in_all, 'bundle')}, shown as {counted(len(past.bundles), 'range')}, each with the"
            " owner of its busiest bundle: the cluster has more bundles than pictures have rows."
        )
        return Heading(title=past.namespace, text=text)
    owners = Counter(owner for _, owner in past.bundles if owner)
    text = f"{counted(len(past.bundles), 'bundle')} on {counted(len(owners), 'broker')}."
    if owners and len(owners) < sum(owners.values()):
        busiest, count = owners.most_common(1)[0]
        text += f" {names.label(busiest)} has the most of them: {count:,}."
    homeless = sum(not owner for _, owner in past.bundles)
    if homeless:
        text += f" {counted(homeless, 'bundle')} without owner."
    return Heading(title=past.namespace, text=text)
