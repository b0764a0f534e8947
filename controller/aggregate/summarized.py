"""The columns of a summary, folded from a view.  O(bundles log bundles), nothing in Python for a topic."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.scalable_topics import ScalableTopics, may_serve
from controller.model.load import UNOWNED, BundleTable, ClusterView, Floats, Ints, TopicDetail
from controller.model.names import FULL_LOWER, FULL_UPPER
from controller.model.summary import (
    MOST_BROKERS,
    MOST_BUNDLES,
    MOST_HOT_TOPICS,
    MOST_RANGES,
    MOST_SCALABLE,
    NO_PLACE,
    IntervalTotals,
    SummarizedBrokers,
    SummarizedBundles,
    SummarizedRanges,
    SummarizedTopics,
    as_column,
    coded_rate,
    no_topics,
)

#: Length of ``0xLLLLLLLL_0xUUUUUUUU``, and where its digits stand.
_RANGE: Final = 21
_LOWER: Final = slice(2, 10)
_UPPER: Final = slice(13, 21)
#: ASCII code of a hexadecimal digit -> its value.
_DIGITS: Final = np.zeros(256, np.int64)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = range(16)
_PLACES: Final = 16 ** np.arange(7, -1, -1, dtype=np.int64)
_RING_BITS: Final = 32
_NOTHING: Final[Mapping[str, float]] = {}


class ViewSummary:
    """The columns of one view; properties are computed once by whoever reads them."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        load = view.bundles.load
        self._rate, self._throughput = load[:, 0] + load[:, 1], load[:, 2] + load[:, 3]
        self._connections = view.bundles.producers + view.bundles.consumers
        #: Row of the view's brokers -> row of the summary's; UNOWNED where it is not listed, and behind the last one.
        self._row_of = np.full(len(view.brokers) + 1, UNOWNED, np.int64)

    def brokers(self, forecast: Mapping[str, float] = _NOTHING) -> SummarizedBrokers:
        """Brokers with data and without; the fullest of them where there are more than a summary lists.

        *forecast*: broker -> its highest usage to come, a fraction.
        """
        view, table = self._view, self._view.brokers
        with np.errstate(all="ignore"):
            usage = _percent(np.where(table.limit > 0, table.usage / table.limit, np.nan))
        rows = np.arange(len(table))
        if len(rows) > MOST_BROKERS:
            with np.errstate(all="ignore"):
                fullest = np.nan_to_num(usage).max(axis=1, initial=0.0)
            rows = np.sort(np.argsort(-fullest, kind="stable")[:MOST_BROKERS])
        missing = view.missing[: MOST_BROKERS - len(rows)]
        names = [*(table.names[row] for row in rows.tolist()), *missing]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        place = np.zeros(len(names), np.int64)
        place[order] = np.arange(len(names))
        self._row_of[rows] = place[: len(rows)]
        owned = self._view.bundles.broker
        connections = np.bincount(owned[owned >= 0], weights=self._connections[owned >= 0], minlength=len(table))
        blank = len(missing)
        foreseen = _percent(np.array([forecast.get(name, np.nan) for name in table.names], np.float64))

        def column(values: Floats | Ints, kind: type, nothing: float = 0) -> NDArray[Any]:
            filler = np.full((blank, *values.shape[1:]), nothing)
            return as_column(np.concatenate([values[rows], filler])[order], kind)

        return SummarizedBrokers(
            names=tuple(names[row] for row in order.tolist()),
            has_data=as_column(order < len(rows), np.bool_),
            usage=column(usage, np.float32, np.nan),
            forecast=column(foreseen, np.float32, np.nan),
            load=column(table.load, np.float32),
            bundles=column(table.bundle_count, np.int64),
            topics=column(table.topic_count, np.int64),
            connections=column(connections, np.int64),
        )

    def ranges(self) -> SummarizedRanges:
        """The keyspace; call ``brokers`` first."""
        table = self._view.bundles
        lower, upper = bounds_of(table)
        namespace, names = _listed_namespaces(table, self._throughput)
        order = np.lexsort((lower, namespace))
        namespace, lower, upper = namespace[order], lower[order], upper[order]
        other = namespace == len(names) - 1 if names and names[-1] == "" else np.zeros(len(order), np.bool_)
        lower, upper = np.where(other, FULL_LOWER, lower), np.where(other, FULL_UPPER, upper)
        starts = _starts(namespace, lower, len(names))
        if not len(starts):
            return _no_ranges()
        rate, throughput = (np.maximum.reduceat(each[order], starts) for each in (self._rate, self._throughput))
        sizes = np.diff(np.append(starts, len(order)))
        busiest = _first_of_maxima(self._throughput[order], np.repeat(throughput, sizes), starts)
        return SummarizedRanges(
            namespaces=tuple(names),
            namespace=as_column(namespace[starts]),
            lower=as_column(lower[starts]),
            upper=as_column(np.maximum.reduceat(upper, starts)),
            bundles=as_column(sizes),
            owner=as_column(self._row_of[table.broker[order][busiest]]),
            rate=as_column(coded_rate(rate), np.uint8),
            throughput=as_column(coded_rate(throughput), np.uint8),
        )

    def bundles(self, named: set[str]) -> SummarizedBundles:
        """The *named* bundles, as far as a summary has room, and the busiest; call ``brokers`` first."""
        table = self._view.bundles
        rows = {row for name in sorted(named) if (row := table.code_of.get(name)) is not None}
        rows = set(sorted(rows)[:MOST_BUNDLES])
        for column in (self._throughput, self._rate, self._connections):
            room = (MOST_BUNDLES - len(rows)) // 2 + 1
            rows.update(_largest(column, min(room, MOST_BUNDLES - len(rows))))
        chosen = np.array(sorted(rows), np.int64)
        detail = table.detail.take(chosen)
        place, hot_load = hottest_topics(detail, _not_in_detail(detail, table.load[chosen], table.topics[chosen]))
        return SummarizedBundles(
            names=tuple(table.names[row] for row in chosen.tolist()),
            owner=as_column(self._row_of[table.broker[chosen]]),
            load=as_column(table.load[chosen], np.float32),
            topics=as_column(table.topics[chosen]),
            producers=as_column(table.producers[chosen]),
            consumers=as_column(table.consumers[chosen]),
            hot_place=as_column(place),
            hot_rate=as_column(hot_load[:, :, 0], np.float32),
            hot_throughput=as_column(hot_load[:, :, 1], np.float32),
        )

    def scalable(self, namespaces: Sequence[str]) -> SummarizedTopics:
        """The scalable topics of *namespaces*, those that the ranges list; call ``brokers`` first."""
        view, topics = self._view, ScalableTopics.of(self._view.bundles)
        if not len(topics):
            return no_topics()
        listed = {name: code for code, name in enumerate(namespaces)}
        codes = np.array([listed.get(name, UNOWNED) for name in view.bundles.namespaces], np.int64)
        peak, busiest, serving = topics.peaks()
        possible, total = may_serve(view, topics), np.bincount(topics.topic, topics.traffic, len(topics))
        rows = np.argsort(total / possible - peak, kind="stable")
        rows = rows[codes[topics.namespace[rows]] >= 0][:MOST_SCALABLE]
        rows = rows[np.argsort(codes[topics.namespace[rows]], kind="stable")]
        return SummarizedTopics(
            namespace=as_column(codes[topics.namespace[rows]]),
            place=as_column(topics.place[rows]),
            segments=as_column(np.diff(topics.starts)[rows]),
            serving=as_column(serving[rows]),
            may_serve=as_column(possible[rows]),
            throughput=as_column(total[rows], np.float32),
            peak=as_column(peak[rows], np.float32),
            busiest=as_column(self._row_of[busiest[rows]]),
            cut=as_column(topics.advised_cuts()[rows]),
        )

    def totals(self) -> IntervalTotals:
        """Sums over the whole view."""
        view = self._view
        return IntervalTotals(
            brokers=len(view.brokers) + len(view.missing),
            brokers_without_data=len(view.missing),
            bundles=len(view.bundles),
            namespaces=len(view.bundles.namespaces),
            topics=int(view.bundles.topics.sum()),
            connections=int(self._connections.sum()),
            rate=float(self._rate.sum()),
            throughput=float(self._throughput.sum()),
        )


def bounds_of(table: BundleTable) -> tuple[Ints, Ints]:
    """(bundles,) lower and upper bound of each bundle, from its name."""
    text = "".join([name[-_RANGE:] for name in table.names])
    letters = np.frombuffer(text.encode("ascii", "replace"), np.uint8).reshape(-1, _RANGE)
    return _DIGITS[letters[:, _LOWER]] @ _PLACES, _DIGITS[letters[:, _UPPER]] @ _PLACES


def _not_in_detail(detail: TopicDetail, load: Floats, topics: Ints) -> Floats:
    """(bundles, 2) msg/s and bytes/s of topics that *detail* lacks: it has the segments alone of many bundles.

    *load* (bundles, 4) and *topics* (bundles,) are of all topics of each bundle.
    """
    row, n = np.repeat(np.arange(len(topics)), detail.sizes), len(topics)
    known = np.stack([np.bincount(row, column, n) for column in detail.load.T], axis=1)
    other = np.where((detail.sizes < topics)[:, None], np.maximum(load - known, 0.0), 0.0)
    return np.stack([other[:, 0] + other[:, 1], other[:, 2] + other[:, 3]], axis=1)


def hottest_topics(detail: TopicDetail, other: Floats | None = None) -> tuple[Ints, Floats]:
    """(bundles, MOST_HOT_TOPICS) places of the topics with the largest shares of their bundle's messages or bytes, and
    (bundles, MOST_HOT_TOPICS, 2) their msg/s and bytes/s; NO_PLACE and 0 where there are fewer with any load.

    Topics at one place count as one, as for HotTopicIsolation; of equal shares the lower place is first.  *other*
    (bundles, 2): msg/s and bytes/s of topics that *detail* lacks; a topic is named only where none of them can have a
    larger share.
    """
    sizes = detail.sizes
    bundles, shape = len(sizes), (len(sizes), MOST_HOT_TOPICS)
    place, hot_load = np.full(shape, NO_PLACE, np.int64), np.zeros((*shape, 2))
    if not len(detail.position):
        return place, hot_load
    keys = (np.repeat(np.arange(bundles), sizes) << _RING_BITS) + detail.position
    order = np.argsort(keys, kind="stable")
    both = np.stack([detail.load[:, 0] + detail.load[:, 1], detail.load[:, 2] + detail.load[:, 3]], axis=1)
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    keys, load = keys[order][starts], np.add.reduceat(both[order], starts)
    bundle, position = keys >> _RING_BITS, keys & FULL_UPPER
    starts = np.flatnonzero(np.diff(bundle, prepend=-1))
    row, counts = bundle[starts], np.diff(np.append(starts, len(bundle)))
    total, unknown = np.add.reduceat(load, starts), np.zeros((len(row), 2)) if other is None else other[row]
    total = total + unknown
    at_most = np.divide(unknown, total, out=np.zeros_like(unknown), where=total > 0).max(axis=1)
    total = np.repeat(total, counts, axis=0)
    share = np.divide(load, total, out=np.zeros_like(load), where=total > 0).max(axis=1)
    for nth in range(MOST_HOT_TOPICS):
        largest = np.maximum.reduceat(share, starts)
        is_hot = (largest > 0) & (largest >= at_most)
        hottest = _first_of_maxima(share, np.repeat(largest, counts), starts)[is_hot]
        place[row[is_hot], nth], hot_load[row[is_hot], nth] = position[hottest], load[hottest]
        share[hottest] = 0.0
    return place, hot_load


def _percent(share: Floats) -> Floats:
    """*share* in percent; NaN where it is no number from 0 up, or beyond the single precision of a summary."""
    with np.errstate(all="ignore"):
        percent = 100.0 * share
        fits = np.isfinite(percent.astype(np.float32)) & (percent >= 0)
    return np.where(fits, percent, np.nan)


def _listed_namespaces(table: BundleTable, throughput: Floats) -> tuple[Ints, list[str]]:
    """(bundles,) the code of each namespace, and their names; the busiest where there are too many, the rest as ""."""
    names, room = table.namespaces, MOST_RANGES // 2
    if len(names) <= room:
        return table.namespace, list(names)
    load = np.bincount(table.namespace, weights=throughput, minlength=len(names))
    chosen = np.sort(np.argsort(-load, kind="stable")[: room - 1])
    code = np.full(len(names), len(chosen), np.int64)
    code[chosen] = np.arange(len(chosen))
    return code[table.namespace], [*(names[row] for row in chosen.tolist()), ""]


def _starts(namespace: Ints, lower: Ints, namespaces: int) -> Ints:
    """First rows of each range: every bundle, or equal parts of the ring where there are too many bundles.

    The parts of a namespace are a power of two, so a split hardly ever changes them.
    """
    if not len(namespace):
        return np.zeros(0, np.int64)
    part = lower
    if len(namespace) > MOST_RANGES:
        bundles = np.bincount(namespace, minlength=namespaces)
        bits, size = _bits(bundles, 1), 1
        while int((1 << bits).sum()) > MOST_RANGES:
            size *= 2
            bits = _bits(bundles, size)
        part = lower >> (_RING_BITS - bits[namespace])
    changes = np.flatnonzero((np.diff(namespace) != 0) | (np.diff(part) != 0)) + 1
    return np.append(0, changes)


def _bits(bundles: Ints, size: int) -> Ints:
    """(namespaces,) log2 of the number of parts, each of about *size* bundles."""
    bits: Ints = np.floor(np.log2(np.maximum(bundles / size, 1.0))).astype(np.int64)
    return bits


def _first_of_maxima(values: Floats, maxima: Floats, starts: Ints) -> Ints:
    """(groups,) the first row of each group whose value is the group's maximum."""
    rows = np.flatnonzero(values == maxima)
    return rows[np.searchsorted(rows, starts)]


def _largest(values: Floats | Ints, count: int) -> list[int]:
    """Rows of the *count* largest values."""
    if count <= 0:
        return []
    if count >= len(values):
        return list(range(len(values)))
    rows: list[int] = np.argpartition(-values, count)[:count].tolist()
    return rows


def _no_ranges() -> SummarizedRanges:
    none, codes = as_column([]), as_column([], np.uint8)
    return SummarizedRanges(
        namespaces=(), namespace=none, lower=none, upper=none, bundles=none, owner=none, rate=codes, throughput=codes
    )
