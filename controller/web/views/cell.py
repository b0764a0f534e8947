"""One cell of the map in words: what the value is, against what, and what was done then."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from controller.web.store.values import (
    BrokerPast,
    BrokerStates,
    BundlePast,
    IssuedCommand,
    NamespacePast,
    OwnedSpan,
    Series,
)
from controller.web.views.bundle import HotTopicLine
from controller.web.views.formats import RESOURCE_NAMES, BrokerNames, BundleLabel, percent, short, whole
from controller.wire.readable import amounts

#: So many bundles and commands are listed.
_LISTED: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDetails:
    """What the panel beside the map says."""

    kind: Literal["brokers", "bundles", "namespaces"]
    name: str
    label: str
    at_ms: int
    #: Name and value.
    pairs: tuple[tuple[str, str], ...]
    #: Who owned it then; "": not known, or no bundle.
    owner: str
    #: Its busiest bundles in the last interval.
    bundles: tuple[BundleLabel, ...]
    commands: tuple[IssuedCommand, ...]
    commands_left_out: int


def broker_cell(past: BrokerPast, at: int, brokers: BrokerStates | None, names: BrokerNames) -> CellDetails:
    """A broker at *at*."""
    usage = _value(past.load, "usage", at)
    bound = []
    if brokers is not None and brokers.limit is not None:
        bound.append(f"limit {percent(brokers.limit)} %")
    if brokers is not None and brokers.goal is not None:
        bound.append(f"goal {percent(brokers.goal)} %")
    resources = [(text, _value(past.load, name, at)) for name, text in RESOURCE_NAMES.items()]
    pairs = [("Usage", "no data" if usage is None else f"{percent(usage)} %")]
    if bound:
        pairs.append(("Against", ", ".join(bound)))
    pairs += [(text, f"{percent(value)} %") for text, value in resources if value is not None]
    pairs += [
        ("Messages", f"{short(_value(past.load, 'rate', at))} /s"),
        ("Connections", whole(_value(past.load, "connections", at))),
    ]
    commands = _at(past.commands, at)
    return CellDetails(
        kind="brokers",
        name=past.broker,
        label=names.label(past.broker),
        at_ms=at,
        pairs=tuple(pairs),
        owner="",
        bundles=tuple(BundleLabel.of(bundle) for bundle in past.bundles[:_LISTED]),
        commands=commands[:_LISTED],
        commands_left_out=max(0, len(commands) - _LISTED),
    )


def bundle_cell(past: BundlePast, at: int, hot_topics: Sequence[HotTopicLine] = ()) -> CellDetails:
    """A bundle at *at*, with its *hot_topics* of that interval where they are known."""
    commands = _at(past.commands, at)
    return CellDetails(
        kind="bundles",
        name=past.bundle,
        label=past.bundle,
        at_ms=at,
        pairs=(*_load(past.load, at), *(("Hot topic", f"{each.label}, {each.share}") for each in hot_topics)),
        owner=owner_at(past.owners, at),
        bundles=(),
        commands=commands[:_LISTED],
        commands_left_out=max(0, len(commands) - _LISTED),
    )


def namespace_cell(past: NamespacePast, at: int) -> CellDetails:
    """A namespace at *at*; its load is that of its busiest bundle."""
    commands = _at(past.commands, at)
    return CellDetails(
        kind="namespaces",
        name=past.namespace,
        label=past.namespace,
        at_ms=at,
        pairs=(*_load(past.load, at), ("Bundles now", whole(len(past.bundles)))),
        owner="",
        bundles=(),
        commands=commands[:_LISTED],
        commands_left_out=max(0, len(commands) - _LISTED),
    )


def owner_at(owners: Sequence[OwnedSpan], at: int) -> str:
    """Who owned a bundle at *at*; "": not known."""
    return next((each.owner for each in owners if each.since_ms <= at < each.until_ms), "")


def _load(series: Series, at: int) -> tuple[tuple[str, str], ...]:
    throughput = _value(series, "throughput", at)
    return (
        ("Messages", _with_unit(_value(series, "rate", at), "/s")),
        ("Bytes", "no data" if throughput is None else amounts([throughput], "bytes/s")[0]),
    )


def _with_unit(value: float | None, unit: str) -> str:
    return "no data" if value is None else f"{short(value)} {unit}"


def _value(series: Series, name: str, at: int) -> float | None:
    """The value of the step that *at* lies in; None: there is none."""
    values = series.values.get(name)
    if values is None or not len(values):
        return None
    place = int(series.at.searchsorted(at, side="right")) - 1
    if place < 0 or at >= int(series.at[place]) + int(series.step[place]) or math.isnan(values[place]):
        return None
    return float(values[place])


def _at(commands: Sequence[IssuedCommand], at: int) -> tuple[IssuedCommand, ...]:
    return tuple(command for command in commands if command.interval == at)
