"""Converts answers of a broker's admin API to a sweep in columns.  Pure; nothing in an answer is trusted.

Pulsar: LocalBrokerData (ModularLoadManagerImpl), BrokerLoadData (ExtensibleLoadManagerImpl), and the topic statistics
of PulsarStats, which every broker renews once a minute.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from controller.model.errors import TrimtabError
from controller.model.load import RESOURCES, Floats, Ints
from controller.model.names import LONGEST_NAME, parse_bundle
from controller.wire.arrow_stream import RATES
from controller.wire.base import MAX_COUNT, MAX_QUANTITY, MAX_RATE, printable
from controller.wire.chunks import SESSIONS, SweptBroker, sweep_header
from controller.wire.sweep import SweepHeader

#: The names of RESOURCES in the names of a broker's metrics.
_USAGE_METRICS: Final = ("cpu", "memory", "directMemory", "bandwidth_in", "bandwidth_out")
#: Characters of a topic's name.
_LONGEST_TOPIC: Final = 10_000
#: A rate in a topic's statistics has so many decimals, and so have sums here.
_DECIMALS: Final = 3


#: Fields of a load report besides the load, all of them optional.
_BESIDES: Final[Mapping[str, type]] = {
    "brokerVersionString": str,
    "persistentTopicsEnabled": bool,
    "nonPersistentTopicsEnabled": bool,
}
#: Epoch ms have 63 bits, and so has every count.
_END_OF_TIME_MS: Final = 1 << 63


class ReportError(TrimtabError):
    """A broker's answer is incomplete, or has another structure than Pulsar's."""


P = ParamSpec("P")
R = TypeVar("R")


def _reader(read: Callable[P, R]) -> Callable[P, R]:
    """Turn every error of *read*, whose input can have any structure, into a ReportError."""

    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(*args, **kwargs)
        except TrimtabError:
            raise
        except Exception as error:
            why = printable(f"{type(error).__name__}: {error}")
        # Without its cause, which may hold all of the answer.
        raise ReportError(f"unexpected structure of its answer: {why}")

    return guarded


class ReportedTotals(NamedTuple):
    """What a broker reports of a bundle."""

    #: (4,) msg/s and bytes/s, in and out.
    load: tuple[float, ...]
    #: (3,) producers, consumers, topics.
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReport:
    """The load that a broker reports, with either load manager."""

    #: When the broker made the report, epoch ms.
    last_update: int
    #: (usage, limit) in the order of RESOURCES.
    usage: tuple[tuple[float, float], ...]
    #: Its bundles now, with their totals; None where it reports none.
    bundles: Mapping[str, ReportedTotals | None]
    broker_version: str | None = None
    persistent_topics: bool | None = None
    non_persistent_topics: bool | None = None
    #: Fields that are ignored, since their values are impossible.
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepName:
    """The broker and the interval of a sweep, and its id."""

    cluster: str
    broker: str
    #: T, epoch ms.
    interval: int
    sweep_id: str


@_reader
def modular_report(report: Mapping[str, Any]) -> BrokerReport:
    """The load report of ModularLoadManagerImpl.  ReportError where a resource is missing.  Pulsar: LocalBrokerData."""
    fields = {name: report.get(name) for name in ("lastUpdate", *_BESIDES)}
    odd = tuple(name for name, value in fields.items() if value is not None and not _is_usual(name, value))
    usable = {name: None if name in odd else value for name, value in fields.items()}
    return BrokerReport(
        last_update=_whole(report.get("lastUpdate")),
        usage=tuple(_usage(report, name) for name in RESOURCES),
        bundles={name: _totals(stats) for name, stats in (report.get("lastStats") or {}).items()},
        broker_version=usable["brokerVersionString"],
        persistent_topics=usable["persistentTopicsEnabled"],
        non_persistent_topics=usable["nonPersistentTopicsEnabled"],
        odd=odd,
    )


def _is_usual(name: str, value: Any) -> bool:
    if name == "lastUpdate":
        return isinstance(value, int | float) and 0 <= value < _END_OF_TIME_MS
    return isinstance(value, _BESIDES[name]) and (not isinstance(value, str) or len(value) <= LONGEST_NAME)


@_reader
def extensible_report(
    load: Mapping[str, Any], *, owned: Iterable[str], broker_version: str | None = None
) -> BrokerReport:
    """What a broker with ExtensibleLoadManagerImpl published of its *load*, and which bundles it has now.

    ReportError where a resource is missing.  Pulsar: BrokerLoadData.
    """
    return BrokerReport(
        last_update=_whole(load.get("updatedAt")),
        usage=tuple(_usage(load, name) for name in RESOURCES),
        bundles=dict.fromkeys(owned),
        broker_version=broker_version,
    )


@_reader
def usage_from_metrics(metrics: Iterable[Mapping[str, Any]], *, now_ms: int) -> dict[str, Any]:
    """Load data for ``extensible_report`` from a broker's *metrics*: usage in percent, with a limit of 100.

    ReportError where there are none.
    """
    for entry in metrics:
        values = entry.get("metrics") or {}
        if "brk_lb_cpu_usage" in values:
            used = (values.get(f"brk_lb_{name}_usage") for name in _USAGE_METRICS)
            resources = {name: {"usage": each, "limit": 100.0} for name, each in zip(RESOURCES, used, strict=True)}
            return {"updatedAt": now_ms, **resources}
    raise ReportError("it has neither load data nor load metrics yet")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedTopics:
    """The topics that a broker lists, in columns: parsed, its answer takes several times as much."""

    #: Bundle -> the rows of its topics.
    rows: Mapping[str, range]
    topics: list[str]
    #: (n, 4) rates as the broker reports them: some may be impossible.
    rates: Floats
    #: (n, 2) in the order of COUNTS.
    counts: Ints


@_reader
def listed_topics(stats: Mapping[str, Any]) -> ListedTopics:
    """What *stats*, the answer about a broker's topics, lists."""
    listed = {
        f"{namespace}/{range_}": kinds
        for namespace, ranges in stats.items()
        for range_, kinds in (ranges or {}).items()
    }
    rows, topics, rates, counts = dict[str, range](), list[str](), list[list[Any]](), list[list[Any]]()
    for bundle in sorted(filter(_is_bundle, listed)):
        of_bundle = {name: each for kind in listed[bundle].values() for name, each in kind.items()}
        rows[bundle] = range(len(topics), len(topics) + len(of_bundle))
        for name in sorted(of_bundle):
            each = of_bundle[name]
            rates.append([each.get(rate, 0.0) for rate in RATES])
            counts.append([each.get("producerCount", 0), _consumers(each)])
            topics.append(_topic(name))
    return ListedTopics(
        rows=rows,
        topics=topics,
        rates=np.array(rates, np.float64).reshape(-1, 4),
        counts=np.clip(np.nan_to_num(np.array(counts, np.float64).reshape(-1, 2)), 0, MAX_COUNT).astype(np.int64),
    )


@_reader
def swept(name: SweepName, report: BrokerReport, topics: ListedTopics) -> tuple[SweptBroker, int]:
    """The sweep, and the number of impossible rates (negative, too large, not finite), which count as 0.

    *topics* must have been read before *report*: a bundle that only they list was unloaded since.
    """
    columns = _columns(topics, report.bundles)
    row = {bundle: i for i, bundle in enumerate(columns.bundles)}
    total_load = np.zeros((len(row), 4))
    total_counts = np.zeros((len(row), 3), np.int64)
    for bundle, totals in report.bundles.items():
        if totals is not None and bundle in row:
            total_load[row[bundle]], total_counts[row[bundle]] = totals
    sizes = np.diff(columns.starts)
    of_topic = np.repeat(np.arange(len(row)), sizes)
    summed = [np.bincount(of_topic, column, len(row)) for column in (*columns.load.T, *columns.counts.T)]
    # The broker's own sums may be a minute old: where it lists topics, their sums count.
    listed = sizes > 0
    total_load[listed] = np.stack(summed[:4], axis=1)[listed]
    total_counts[listed] = np.stack([*summed[4:], sizes], axis=1)[listed]
    total_counts = np.minimum(total_counts, MAX_COUNT)
    return (
        SweptBroker(
            header=_header(name, report, total_load, total_counts),
            bundles=columns.bundles,
            total_load=np.round(total_load, _DECIMALS),
            total_counts=total_counts,
            starts=columns.starts,
            topics=columns.topics,
            load=columns.load,
            counts=columns.counts,
        ),
        columns.flaws,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    bundles: list[str]
    starts: Ints
    topics: list[str]
    load: Floats
    counts: Ints
    flaws: int


def _columns(listed: ListedTopics, current: Mapping[str, ReportedTotals | None]) -> _Columns:
    # Also those of which no topics are listed: they are the broker's all the same.
    bundles = sorted(filter(_is_bundle, current))
    sizes = [len(listed.rows.get(bundle, ())) for bundle in bundles]
    rows = np.fromiter((row for bundle in bundles for row in listed.rows.get(bundle, ())), np.int64, sum(sizes))
    load, flaws = _rates(listed.rates[rows])
    return _Columns(
        bundles=bundles,
        starts=np.cumsum([0, *sizes]),
        topics=[listed.topics[row] for row in rows.tolist()],
        load=load,
        counts=listed.counts[rows],
        flaws=flaws,
    )


def _topic(name: str) -> str:
    """*name* in UTF-8 as Java writes it; clients choose it, so an absurdly long one is cut: a chunk has to hold it."""
    shortened = name[:_LONGEST_TOPIC]
    return shortened if shortened.isascii() else shortened.encode(errors="replace").decode()


def _is_bundle(name: str) -> bool:
    try:
        parse_bundle(name)
    except TrimtabError:
        return False
    return True


def _consumers(topic: Mapping[str, Any]) -> int:
    return sum(len(each.get("consumers") or ()) for each in (topic.get("subscriptions") or {}).values())


def _rates(rows: list[list[Any]] | Floats) -> tuple[Floats, int]:
    """(n, 4), and how many of them are impossible."""
    load = np.array(rows, np.float64).reshape(-1, 4)
    possible = (load >= 0) & (load <= MAX_RATE)  # a NaN is neither
    return np.where(possible, load, 0.0), int((~possible).sum())


def _header(name: SweepName, report: BrokerReport, load: Floats, counts: Ints) -> SweepHeader:
    producers, consumers, topics = np.minimum(counts.sum(axis=0), MAX_COUNT).tolist()
    return sweep_header(
        cluster=name.cluster,
        broker=name.broker,
        interval=name.interval,
        sweep_id=name.sweep_id,
        last_update=report.last_update,
        usage=report.usage,
        rates=np.round(load.sum(axis=0), _DECIMALS).tolist(),
        bundles=len(load),
        topics=topics,
        producers=producers,
        consumers=consumers,
    )


def _usage(report: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Usage and limit.  A limit unknown to Pulsar, there 0 or negative, is 0; then the usage may be unknown, too."""
    resource = report.get(name)
    if not isinstance(resource, Mapping):
        raise ReportError(f"its load report lacks {name}")
    usage, limit = np.array([resource.get("usage"), resource.get("limit")], np.float64)
    if np.isnan(usage) and limit > 0:
        raise ReportError(f"its load report has usage {resource.get('usage')!r:.100} of {name}, not a number")
    usage, limit = np.nan_to_num([usage, limit]).clip(0, MAX_QUANTITY)
    return float(usage), float(limit)


def _totals(stats: Mapping[str, Any]) -> ReportedTotals:
    load, _ = _rates([[stats.get(rate, 0.0) for rate in RATES]])
    counts = tuple(min(max(0, _whole(stats.get(name))), MAX_COUNT) for name in SESSIONS)
    return ReportedTotals(tuple(load[0].tolist()), counts)


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < _END_OF_TIME_MS else 0
