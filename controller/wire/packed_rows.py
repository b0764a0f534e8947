"""Rows of the fold from the columns that the query's Java has packed (streaming.schemas.ROW).

wire/rows.py makes the same rows of decoded records.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.name_column import NameColumn
from controller.aggregate.columns.rows import (
    BUNDLE,
    FACT,
    METRICS,
    RATES,
    REFUSED,
    REPORT,
    REPORT_BUNDLE,
    STATS,
    SWEEP,
    TICK,
    TOPIC,
    Rows,
)
from controller.model import records as model
from controller.model.errors import WireError
from controller.model.load import Floats
from controller.model.topic_kinds import KindFlags
from controller.wire import metrics, results
from controller.wire.base import reader
from controller.wire.rows import fact_of

#: Whole numbers of a bundle in the column ``stats``: STATS, and its kinds of topics.
_NUMBERS: Final = len(STATS) + 1
#: Whole numbers of a topic in the column ``topics``.
_TOPIC_NUMBERS: Final = 6


def rows_from_columns(columns: Mapping[str, NDArray[Any]], *, cluster: str, period_ms: int, files: bool) -> Rows:
    """Rows from the columns of streaming.schemas.ROW, unpacked; those of refused records are left out.

    Facts that do not decode are left out of ``facts``: see ``Rows.unread``.  ``files``: the log is a folder, and
    ``file`` orders before ``offset``.  O(bytes); nothing in Python a bundle but its name, nothing a topic.
    """
    columns = _without_refused(columns)
    packed = _Packed(columns)
    stats, kinds, detail_size = _bundle_columns(columns, packed.loaded, packed.at)
    return Rows(
        kind=packed.kind[packed.at],
        source=packed.numbers("source"),
        partition=packed.numbers("partition"),
        offset=packed.of_topics(0, packed.numbers("offset")),
        file=packed.texts("file") if files else None,
        interval=packed.numbers("interval"),
        broker=packed.lines("broker", packed.of_topics(1, packed.zero)),
        sweep=packed.texts("sweep"),
        chunk=packed.numbers("chunk"),
        chunks=packed.numbers("chunks"),
        last_update=packed.numbers("last_update"),
        bundle=packed.lines("bundles", packed.of_topics(2, packed.nth)),
        stats=stats,
        kinds=kinds,
        topic=np.stack([packed.of_topics(column, packed.zero) for column in (3, 4, 5)], axis=1),
        detail_size=detail_size,
        detail_position=_unpacked(columns["detail_position"], "<i8"),
        detail_load=_unpacked(columns["detail_load"], "<f8").reshape(-1, len(RATES)),
        detail_segment=_unpacked(columns["detail_segment"], "<i8"),
        numbers=_numbers(columns, packed.kind, packed.start),
        facts=_facts(columns, packed.kind, packed.start, cluster, period_ms),
    )


def _without_refused(columns: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    good = columns["kind"] != REFUSED
    return columns if good.all() else {name: column[good] for name, column in columns.items()}


class _Packed:
    """The packed rows of *columns*, and which rows each unpacks to."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = columns
        #: (packed,)
        self.kind = columns["kind"].astype(np.int64)
        self.loaded = np.isin(self.kind, (BUNDLE, TOPIC, REPORT_BUNDLE))
        size = np.ones(len(self.kind), np.int64)
        size[self.loaded] = [len(stats) // (8 * _NUMBERS) for stats in columns["stats"][self.loaded]]
        #: (packed,) the first row that each unpacks to.
        self.start = np.cumsum(size) - size
        #: (rows,) the packed row that each comes from, and its place among the rows that come from there.
        self.at = np.repeat(np.arange(len(self.kind)), size)
        self.nth = np.arange(len(self.at)) - self.start[self.at]
        self.zero = np.zeros(len(self.at), np.int64)
        self._by_topic = self.kind[self.at] == TOPIC
        self._topics = _unpacked(columns["topics"], "<i8").reshape(-1, _TOPIC_NUMBERS)

    def numbers(self, name: str) -> NDArray[np.int64]:
        """A column of numbers: each row has that of its packed row, as in :meth:`texts`."""
        return self._columns[name].astype(np.int64)[self.at]

    def texts(self, name: str) -> NameColumn:
        """A column of texts."""
        return NameColumn(names=self._columns[name].tolist(), codes=self.at)

    def lines(self, name: str, line: NDArray[np.int64]) -> NameColumn:
        """A column of texts of many lines: each row has one, that *line*."""
        texts = self._columns[name].tolist()
        first = np.cumsum([0, *(text.count("\n") + 1 for text in texts)])
        # No name has a line break (controller.wire.base.Name).  A row without names has an empty one: a line too.
        return NameColumn(names="\n".join(texts).split("\n"), codes=first[self.at] + line)

    def of_topics(self, column: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """*others*, (rows,), but that *column* of ``topics`` in TOPIC rows."""
        columns = others.copy()
        columns[self._by_topic] = self._topics[:, column]
        return columns


def _bundle_columns(
    columns: Mapping[str, NDArray[Any]], loaded: NDArray[np.bool_], at: NDArray[np.int64]
) -> tuple[Floats, KindFlags, NDArray[np.int64]]:
    """(rows, 7) stats, (rows,) kinds of topics, (rows,) topics in detail; 0 in rows not *loaded*, or not detailed.

    *at*: of each row the place in *columns* that it is unpacked from.
    """
    stats, detail_size = np.zeros((len(at), len(STATS))), np.zeros(len(at), np.int64)
    kinds = np.zeros(len(at), np.uint8)
    numbers = _unpacked(columns["stats"], "<i8").reshape(-1, _NUMBERS)
    stats[loaded[at]], kinds[loaded[at]] = numbers[:, :-1], numbers[:, -1]
    detailed = np.array([sizes is not None for sizes in columns["detail_size"]], np.bool_)
    detail_size[detailed[at]] = _unpacked(columns["detail_size"], "<i8")
    return stats, kinds, detail_size


def _numbers(
    columns: Mapping[str, NDArray[Any]], packed: NDArray[np.int64], start: NDArray[np.int64]
) -> dict[int, Floats]:
    """Row -> what a broker says of itself; *packed* and *start* as in :func:`_facts`."""
    reports = np.flatnonzero((packed == SWEEP) | (packed == REPORT)).tolist()
    return {int(start[i]): np.frombuffer(columns["numbers"][i], "<f8") for i in reports}


def _facts(
    columns: Mapping[str, NDArray[Any]],
    packed: NDArray[np.int64],
    start: NDArray[np.int64],
    cluster: str,
    period_ms: int,
) -> dict[int, Any]:
    """Row -> the fact in it; *packed* is each column's kind, *start* the row that it unpacks to."""
    facts = {}
    for i in np.flatnonzero((packed == TICK) | (packed == FACT)).tolist():
        fact = _fact_in(columns["body"][i], int(columns["source"][i]), cluster, period_ms)
        if fact is not None:
            facts[int(start[i])] = fact
    return facts


def _unpacked(column: NDArray[Any], kind: str) -> NDArray[Any]:
    return np.frombuffer(b"".join(packed for packed in column if packed is not None), kind)


# A tick comes to every shard, and its roster names every broker: it is read once for all shards of a worker.
@lru_cache(maxsize=16)
def _fact_in(body: str, source: int, cluster: str, period_ms: int) -> model.Fact | None:
    try:
        return _read_fact(body, source, cluster, period_ms)
    except WireError:
        return None


@reader
def _read_fact(body: str, source: int, cluster: str, period_ms: int) -> model.Fact | None:
    decode = metrics.decode_metric if source == METRICS else results.decode_result
    value = body.encode()
    # The query has already refused records that are too long or ahead of their append time.
    record = decode(value, cluster=cluster, period_ms=period_ms, max_bytes=len(value))
    return None if record is None else fact_of(record)
