"""A bundle, a broker or a namespace over time, and names that a person looks for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from controller.model.decision import Verdict
from controller.model.errors import TrimtabError
from controller.model.load import UNOWNED, Ints
from controller.model.names import BundleName, parse_bundle
from controller.model.summary import NO_PLACE
from controller.web.store.catalogue import BROKER, NAMESPACE, KnownRange
from controller.web.store.database import Database
from controller.web.store.decisions import Decisions, details_in
from controller.web.store.filling import BROKERS, LAYERS, NAMESPACES, NOBODY, RANGES, Latest, StoreWriter
from controller.web.store.hot_topics import hot_topics_in, hottest_topic
from controller.web.store.now import broker_states
from controller.web.store.tiles import Tiles
from controller.web.store.values import (
    BrokerPast,
    BundlePast,
    HotMoment,
    HottestTopic,
    IssuedCommand,
    NameMatch,
    NamespacePast,
    OwnedSpan,
    ScalableTopicState,
)

_LOADS: Final = ("rate", "throughput")
#: Bundles of a broker, and rows of ranges that a search looks at.
_BUNDLES: Final = 512
_LOOKED_AT: Final = 2_000
#: Hot topics of so many intervals are compared: a column of a picture has no more.
_INTERVALS: Final = 64
_SPAN: Final = "c.interval >= ? AND c.interval < ?"


class Pasts:
    """Reads what *filling* has stored.  For several threads."""

    def __init__(self, database: Database, filling: StoreWriter, tiles: Tiles, decisions: Decisions) -> None:
        self._database, self._filling, self._tiles, self._decisions = database, filling, tiles, decisions

    def bundle(self, bundle: str, since_ms: int, until_ms: int) -> BundlePast:
        """See PageData."""
        try:
            name = parse_bundle(bundle)
        except TrimtabError as error:
            raise ValueError(str(error)) from error
        ranges = self._tiles.ranges(name.namespace)
        exact = [number for number, each in ranges.items() if (each.lower, each.upper) == (name.lower, name.upper)]
        around = [number for number, each in ranges.items() if each.lower <= name.lower and name.upper <= each.upper]
        ids, latest = exact or around, self._filling.latest
        commands = self._commands("c.bundle = ?", bundle, since_ms, until_ms)
        at, step, owners = self._tiles.owners(ids, since_ms, until_ms)
        spans = self._owned_spans(at.tolist(), step, owners.tolist())
        siblings = () if latest is None else tuple(_siblings(latest, name.namespace))
        listed = {} if latest is None else _figures(latest, bundle)
        return BundlePast(
            bundle=bundle,
            namespace=name.namespace,
            known=bool(ids or commands),
            folded=not exact and bool(around),
            owner=_owner_now(latest, bundle, spans),
            bundles=1 if latest is None else _bundles_in(latest, name),
            load=self._tiles.series(RANGES, ids, since_ms, until_ms, _LOADS),
            owners=_completed(spans, commands) if not exact else spans,
            commands=commands,
            verdicts=_verdicts_on(latest, bundle),
            siblings=siblings,
            figures=listed,
            hot_topics=() if latest is None else tuple(_hot_topics(latest, bundle)),
        )

    def broker(self, broker: str, since_ms: int, until_ms: int) -> BrokerPast:
        """See PageData."""
        latest, ids = self._filling.latest, self._numbers(BROKER, broker)
        where = "(c.source = ? OR c.destination = ?)"
        commands = self._decisions.commands(f"{where} AND {_SPAN}", (broker, broker, since_ms, until_ms))
        now = None
        if latest is not None:
            now = next((each for each in broker_states(latest).brokers if each.name == broker), None)
        layers = [each.name for each in LAYERS[BROKERS]]
        return BrokerPast(
            broker=broker,
            known=bool(ids or commands),
            now=now,
            load=self._tiles.series(BROKERS, ids, since_ms, until_ms, layers),
            commands=commands,
            verdicts=_verdicts_on(latest, broker),
            bundles=() if latest is None else tuple(_bundles_of(latest, broker)),
        )

    def namespace(self, namespace: str, since_ms: int, until_ms: int) -> NamespacePast:
        """See PageData."""
        latest, ids = self._filling.latest, self._numbers(NAMESPACE, namespace)
        commands = self._commands("c.namespace = ?", namespace, since_ms, until_ms)
        return NamespacePast(
            namespace=namespace,
            known=bool(ids or commands),
            load=self._tiles.series(NAMESPACES, ids, since_ms, until_ms, _LOADS),
            bundles=() if latest is None else tuple(_owned(latest, namespace)),
            bundles_in_all=0 if latest is None else _count(latest, namespace),
            commands=commands,
            scalable=() if latest is None else tuple(_scalable(latest, namespace)),
        )

    def hot_topics(self, bundle: str, since_ms: int, until_ms: int) -> HotMoment | None:
        """See PageData."""
        rows = self._database.read(
            "SELECT interval, hot_topics FROM decisions WHERE interval >= ? AND interval < ? AND hot_topics IS NOT NULL"
            " ORDER BY interval LIMIT ?",
            (since_ms, until_ms, _INTERVALS),
        )
        moments = [HotMoment(at_ms=at, topics=hot_topics_in(packed, bundle)) for at, packed in rows]
        return max((each for each in moments if each.topics), key=lambda each: each.topics[0].throughput, default=None)

    def search(self, text: str, limit: int) -> tuple[NameMatch, ...]:
        """See PageData."""
        if not text or len(text) > 1_024 or not 1 <= limit <= 500:
            raise ValueError("expected a text of 1 to 1024 characters, and a limit of 1 to 500")
        like = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        matches: list[NameMatch] = []
        for kind in (BROKER, NAMESPACE):
            rows = self._database.read(
                "SELECT name FROM names WHERE kind = ? AND name LIKE ? ESCAPE '\\' AND name != ''"
                " ORDER BY instr(name, ?) != 1, name LIMIT ?",
                (kind, like, text, limit),
            )
            matches += [NameMatch(kind=kind, name=name) for (name,) in rows]
        rows = self._database.read(
            "SELECT n.name, r.lower, r.upper FROM ranges r JOIN names n ON n.id = r.namespace"
            " WHERE n.name || printf('/0x%08x_0x%08x', r.lower, r.upper) LIKE ? ESCAPE '\\'"
            " ORDER BY n.name, r.lower, r.upper LIMIT ?",
            (like, min(limit, _LOOKED_AT)),
        )
        ranges = [KnownRange(*row) for row in rows]
        matches += [NameMatch(kind="bundle", name=each.name, is_range=self._is_range(each)) for each in ranges]
        return tuple(matches[:limit])

    def _is_range(self, known: KnownRange) -> bool:
        latest = self._filling.latest
        return latest is not None and _bundles_in(latest, known) > 1

    def _commands(self, where: str, name: str, since_ms: int, until_ms: int) -> tuple[IssuedCommand, ...]:
        return self._decisions.commands(f"{where} AND {_SPAN}", (name, since_ms, until_ms))

    def _numbers(self, kind: str, name: str) -> list[int]:
        return [
            number
            for (number,) in self._database.read("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
        ]

    def _owned_spans(self, at: Sequence[int], step: int, owners: Sequence[int]) -> tuple[OwnedSpan, ...]:
        """Runs of equal owners; steps without data end a run."""
        numbers = sorted({owner - NOBODY for owner in owners if owner > NOBODY})
        marks = ", ".join("?" * len(numbers))
        rows = self._database.read(f"SELECT id, name FROM names WHERE id IN ({marks})", tuple(numbers))
        names: Mapping[int, str] = dict(rows)
        spans: list[OwnedSpan] = []
        for begin, owner in zip(at, owners, strict=True):
            if not owner:
                continue
            name = names.get(owner - NOBODY, "")
            if spans and spans[-1].owner == name and spans[-1].until_ms == begin:
                spans[-1] = OwnedSpan(owner=name, since_ms=spans[-1].since_ms, until_ms=begin + step)
            else:
                spans.append(OwnedSpan(owner=name, since_ms=begin, until_ms=begin + step))
        return tuple(spans)


def _completed(spans: tuple[OwnedSpan, ...], commands: Sequence[IssuedCommand]) -> tuple[OwnedSpan, ...]:
    """The owners of a bundle that is not listed: of those of its range, only what its own moves do not contradict."""
    moves = [each for each in reversed(commands) if each.action == "unload" and each.status in ("done", "already_done")]
    if not moves or not spans:
        return spans
    end = spans[-1].until_ms
    known, since = [], spans[0].since_ms
    for move in moves:
        if move.interval > since:
            known.append(OwnedSpan(owner=move.source, since_ms=since, until_ms=move.interval))
        since = move.interval
    known.append(OwnedSpan(owner=moves[-1].destination, since_ms=since, until_ms=max(end, since)))
    return tuple(known)


def _owner_now(latest: Latest | None, bundle: str, spans: Sequence[OwnedSpan]) -> str:
    if latest is not None and bundle in latest.summary.bundles.names:
        row = latest.summary.bundles.owner[latest.summary.bundles.names.index(bundle)]
        return _name(latest, int(row))
    return spans[-1].owner if spans else ""


def _bundles_in(latest: Latest, range_name: BundleName | KnownRange) -> int:
    """How many bundles the range of this name stands for in the last summary; 1: it is a bundle, or not listed."""
    ranges = latest.summary.ranges
    if range_name.namespace not in ranges.namespaces:
        return 1
    is_it = (ranges.namespace == ranges.namespaces.index(range_name.namespace)) & (ranges.lower == range_name.lower)
    rows = np.flatnonzero(is_it & (ranges.upper == range_name.upper))
    return int(ranges.bundles[rows[0]]) if len(rows) else 1


def _name(latest: Latest, broker: int) -> str:
    return "" if broker == UNOWNED else latest.summary.brokers.names[broker]


def _verdicts_on(latest: Latest | None, subject: str) -> tuple[Verdict, ...]:
    if latest is None:
        return ()
    return tuple(each for each in details_in(latest.details)[1] if each.subject == subject)


def _rows_of(latest: Latest, namespace: str) -> Ints:
    """The rows of *namespace* in the ranges of the last summary."""
    ranges = latest.summary.ranges
    if namespace not in ranges.namespaces:
        return np.zeros(0, np.int64)
    return np.flatnonzero(ranges.namespace == ranges.namespaces.index(namespace))


def _count(latest: Latest, namespace: str) -> int:
    return int(latest.summary.ranges.bundles[_rows_of(latest, namespace)].sum())


def _owned(latest: Latest, namespace: str) -> Iterator[tuple[str, str]]:
    """The ranges of *namespace* in the last interval, with their owners."""
    ranges = latest.summary.ranges
    for row in _rows_of(latest, namespace).tolist():
        each = KnownRange(namespace, int(ranges.lower[row]), int(ranges.upper[row]))
        yield each.name, _name(latest, int(ranges.owner[row]))


def _siblings(latest: Latest, namespace: str) -> Iterator[str]:
    return (name for name, _ in _owned(latest, namespace))


def _bundles_of(latest: Latest, broker: str) -> Iterator[str]:
    """Ranges that *broker* owns, the busiest first."""
    summary = latest.summary
    if broker not in summary.brokers.names:
        return
    rows = np.flatnonzero(summary.ranges.owner == summary.brokers.names.index(broker))
    order = np.argsort(-summary.ranges.throughput[rows].astype(np.int64), kind="stable")
    for row in rows[order][:_BUNDLES].tolist():
        space = summary.ranges.namespaces[int(summary.ranges.namespace[row])]
        yield KnownRange(space, int(summary.ranges.lower[row]), int(summary.ranges.upper[row])).name


def _scalable(latest: Latest, namespace: str) -> Iterator[ScalableTopicState]:
    """The scalable topics of *namespace* that the summary lists."""
    topics, spaces, brokers = latest.summary.scalable, latest.summary.ranges.namespaces, latest.summary.brokers.names
    if namespace not in spaces:
        return
    unevenness = topics.unevenness
    for row in np.flatnonzero(topics.namespace == spaces.index(namespace)).tolist():
        busiest, cut = int(topics.busiest[row]), int(topics.cut[row])
        yield ScalableTopicState(
            place=int(topics.place[row]),
            segments=int(topics.segments[row]),
            serving=int(topics.serving[row]),
            may_serve=int(topics.may_serve[row]),
            throughput=float(topics.throughput[row]),
            peak=float(topics.peak[row]),
            busiest=brokers[busiest] if busiest >= 0 else "",
            unevenness=float(unevenness[row]),
            cut=cut if cut >= 0 else None,
        )


def _figures(latest: Latest, bundle: str) -> dict[str, float]:
    """Exact figures of *bundle*, if the summary lists it."""
    bundles = latest.summary.bundles
    if bundle not in bundles.names:
        return {}
    row = bundles.names.index(bundle)
    names = ("rate_in", "rate_out", "throughput_in", "throughput_out")
    columns: dict[str, Any] = dict(zip(names, bundles.load[row].tolist(), strict=True))
    return columns | {name: float(getattr(bundles, name)[row]) for name in ("topics", "producers", "consumers")}


def _hot_topics(latest: Latest, bundle: str) -> Iterator[HottestTopic]:
    """The hottest topics of *bundle*, if the summary lists it and knows them."""
    bundles = latest.summary.bundles
    if bundle not in bundles.names:
        return
    row = bundles.names.index(bundle)
    rate_in, rate_out, throughput_in, throughput_out = bundles.load[row].tolist()
    load = (rate_in + rate_out, throughput_in + throughput_out)
    columns = (bundles.hot_place[row], bundles.hot_rate[row], bundles.hot_throughput[row])
    for place, rate, throughput in zip(*(column.tolist() for column in columns), strict=True):
        if place != NO_PLACE:
            yield hottest_topic(place, rate, throughput, load)
