"""Pictures of rows × time, cut out of the pyramids."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.load import RESOURCES, Ints
from controller.model.summary import decoded_rates
from controller.web.store.catalogue import BROKER, NAMESPACE, KnownRange
from controller.web.store.database import Database
from controller.web.store.filling import (
    BROKERS,
    LAYERS,
    NAMESPACES,
    NOBODY,
    RANGES,
    USAGE_STEPS,
    StoreWriter,
    stored_chunk,
)
from controller.web.store.now import not_listed
from controller.web.store.pyramid import COLUMNS, LEVELS, Cells, Chunk, retained_slots
from controller.web.store.values import (
    HIGHLIGHTED,
    MOST_COLUMNS,
    MOST_ROWS,
    NO_OWNER,
    BrokerMetric,
    KeyspaceMetric,
    RowOrder,
    Series,
    Tile,
    TileRow,
)

#: Chunks in memory that are stored and do not change, bytes.
_CACHED_BYTES: Final = 96 << 20
#: Shades of brokers in a tile of owners.
_SHADES: Final = 253
_TOP_SHARE: Final = 0.999
_HUNDRED: Final = 100.0
_UNITS: Final = {"rate": "msg/s", "throughput": "bytes/s", "connections": "connections", "owner": ""}


class _Grid(NamedTuple):
    """Which columns of which level a span has."""

    level: int
    #: First column of the level, and how many.
    first: int
    columns: int
    column_ms: int

    @property
    def since_ms(self) -> int:
        return self.first * self.column_ms

    @property
    def until_ms(self) -> int:
        return (self.first + self.columns) * self.column_ms


class _Cut(NamedTuple):
    """Rows × columns of one layer; 0 where there is no data."""

    ids: Ints
    cells: Cells


class Tiles:
    """Reads *filling* and what it has stored in *database*.  For several threads."""

    def __init__(self, database: Database, filling: StoreWriter, *, retention_ms: int) -> None:
        self._database, self._filling, self._retention_ms = database, filling, retention_ms
        self._cache: OrderedDict[tuple[str, int, int, str], tuple[Ints, Cells]] = OrderedDict()
        self._cached_bytes = 0

    def brokers(
        self, metric: BrokerMetric, since_ms: int, until_ms: int, *, width: int, height: int, order: RowOrder
    ) -> Tile:
        """See PageData."""
        height, grid = min(height, MOST_ROWS), self._grid(since_ms, until_ms, width)
        cut = self._cut(BROKERS, metric, grid)
        names = self._names(BROKER)
        labels = [names.get(each, "") for each in cut.ids.tolist()]
        if order == "usage":
            usage = cut if metric == "usage" else self._cut(BROKERS, "usage", grid)
            fullest = dict(zip(usage.ids.tolist(), usage.cells.max(axis=1, initial=0).tolist(), strict=True))
            rank = sorted(range(len(labels)), key=lambda row: (-fullest.get(int(cut.ids[row]), 0), labels[row]))
        else:
            rank = sorted(range(len(labels)), key=labels.__getitem__)
        rows, cells = _folded([labels[row] for row in rank], cut.cells[rank], height)
        return self._tile(BROKERS, metric, grid, rows, cells, width)

    def keyspace(
        self,
        metric: KeyspaceMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        namespace: str | None,
        owner: str,
    ) -> Tile:
        """See PageData."""
        height, grid = min(height, MOST_ROWS), self._grid(since_ms, until_ms, width)
        if namespace is None and self._database.read("SELECT count(*) FROM ranges")[0][0] > height:
            return self._namespaces(metric, grid, height, owner, width)
        known = self.ranges(namespace)
        cut = self._cut(RANGES, metric, grid, only=np.array(sorted(known), np.int64))
        rank = sorted(range(len(cut.ids)), key=lambda row: known[int(cut.ids[row])])
        labels = [known[int(cut.ids[row])].name for row in rank]
        cells = self._shaded(cut.cells[rank], owner) if metric == "owner" else cut.cells[rank]
        rows, cells = _folded(labels, cells, height)
        return self._tile(RANGES, metric, grid, rows, cells, width)

    def _namespaces(self, metric: KeyspaceMetric, grid: _Grid, height: int, owner: str, width: int) -> Tile:
        """The busiest namespaces by name, and one row that folds the rest."""
        cut, names = self._cut(NAMESPACES, metric, grid), self._names(NAMESPACE)
        labels = [names.get(each, "") for each in cut.ids.tolist()]
        by_name = sorted(range(len(labels)), key=lambda row: (not labels[row], labels[row]))
        cells = self._shaded(cut.cells, owner) if metric == "owner" else cut.cells
        rest: list[int] = []
        if len(by_name) > height:
            load = cut if metric == "throughput" else self._cut(NAMESPACES, "throughput", grid)
            total = dict(zip(load.ids.tolist(), load.cells.sum(axis=1, dtype=np.int64).tolist(), strict=True))
            busiest = sorted(by_name, key=lambda row: -total.get(int(cut.ids[row]), 0))
            rest = sorted(busiest[height - 1 :])
            folded = set(rest)
            by_name = [row for row in by_name if row not in folded]
        rows = [TileRow(name=labels[row], count=1, first=labels[row], last=labels[row]) for row in by_name]
        lines = [cells[by_name]]
        if rest:
            rest_names = sorted(labels[row] for row in rest)
            rows.append(TileRow(name="", count=len(rest), first=rest_names[0], last=rest_names[-1]))
            lines.append(cells[rest].max(axis=0, keepdims=True, initial=0))
        return self._tile(NAMESPACES, metric, grid, tuple(rows), np.concatenate(lines), width)

    def series(self, kind: str, ids: Sequence[int], since_ms: int, until_ms: int, layers: Sequence[str]) -> Series:
        """The maxima over *ids* in each step, decoded."""
        grid = self._grid(since_ms, until_ms, MOST_COLUMNS)
        only = np.array(sorted(ids), np.int64)
        values = {}
        for name in layers:
            cells = self._cut(kind, name, grid, only=only).cells.max(axis=0, initial=0).astype(np.int64)
            values[name] = np.where(cells == 0, np.nan, _decoded(name)[np.maximum(cells - 1, 0)])
        at = grid.since_ms + np.arange(grid.columns, dtype=np.int64) * grid.column_ms
        return Series(at=at, step=np.full(grid.columns, grid.column_ms), values=values)

    def owners(self, ids: Sequence[int], since_ms: int, until_ms: int) -> tuple[Ints, int, Ints]:
        """Begin of each step, its length, and the number of the owner of *ids* in it: 0 no data, 1 nobody."""
        grid = self._grid(since_ms, until_ms, MOST_COLUMNS)
        cells = self._cut(RANGES, "owner", grid, only=np.array(sorted(ids), np.int64)).cells
        at = grid.since_ms + np.arange(grid.columns, dtype=np.int64) * grid.column_ms
        return at, grid.column_ms, cells.max(axis=0, initial=0).astype(np.int64)

    def ranges(self, namespace: str | None = None) -> dict[int, KnownRange]:
        """Number -> range, of *namespace*, or of all."""
        query = "SELECT r.id, n.name, r.lower, r.upper FROM ranges r JOIN names n ON n.id = r.namespace"
        rows = (
            self._database.read(query)
            if namespace is None
            else self._database.read(f"{query} WHERE n.kind = '{NAMESPACE}' AND n.name = ?", (namespace,))
        )
        return {number: KnownRange(name, lower, upper) for number, name, lower, upper in rows}

    def _grid(self, since_ms: int, until_ms: int, width: int) -> _Grid:
        """The finest level that fits into *width* columns and reaches back to *since_ms*."""
        longest = 2 * self._retention_ms
        if not 0 <= since_ms < until_ms <= since_ms + longest or width < 1:
            raise ValueError(
                f"since {since_ms}, until {until_ms}, width {width}: expected a span of {longest} ms at most, and one"
                " column or more"
            )
        period = self._filling.period_ms or 60_000
        width, slots = min(width, MOST_COLUMNS), max(1, self._retention_ms // period)
        latest = self._filling.latest
        newest = until_ms if latest is None else latest.summary.interval
        for level in range(LEVELS):
            column_ms = period << level
            first, last = since_ms // column_ms, -(-until_ms // column_ms)
            reaches = newest // period - since_ms // period <= retained_slots(level, slots) or level == LEVELS - 1
            if last - first <= width and reaches:
                break
        return _Grid(level, first, last - first, column_ms)

    def _cut(self, kind: str, layer: str, grid: _Grid, only: Ints | None = None) -> _Cut:
        """The cells of *layer* in *grid*, of the ids *only*, or of all that have any."""
        parts = self._parts(kind, layer, grid)
        ids = only
        if ids is None:
            ids = np.unique(np.concatenate([np.zeros(0, np.int64), *(part[1] for part in parts)]))
        layer_kind = next(each.kind for each in LAYERS[kind] if each.name == layer)
        cells = np.zeros((len(ids), grid.columns), layer_kind)
        place = np.full(int(ids.max(initial=0)) + 1, -1, np.int64)
        place[ids] = np.arange(len(ids))
        for number, chunk_ids, chunk_cells in parts:
            begin = number * COLUMNS - grid.first
            low, high = max(0, begin), min(grid.columns, begin + COLUMNS)
            known = np.flatnonzero(chunk_ids <= len(place) - 1)
            rows = place[chunk_ids[known]]
            known, rows = known[rows >= 0], rows[rows >= 0]
            cells[rows, low:high] = chunk_cells[low - begin : high - begin, known].T
        if only is not None:
            has_data = cells.any(axis=1)
            ids, cells = ids[has_data], cells[has_data]
        return _Cut(ids, cells)

    def _parts(self, kind: str, layer: str, grid: _Grid) -> list[tuple[int, Ints, Cells]]:
        """Number, ids and cells of each chunk that *grid* touches; those in memory replace those that are stored."""
        first, last = grid.first // COLUMNS, (grid.first + grid.columns - 1) // COLUMNS
        with self._filling.lock:
            pyramid = self._filling.pyramids.get(kind)
            fresh: Mapping[int, tuple[Ints, Cells]] = (
                {}
                if pyramid is None
                else {
                    each.number: (each.ids, each.cells[layer].copy())
                    for each in pyramid.chunks(grid.level, first, last)
                }
            )
        rows = self._database.read(
            "SELECT number FROM chunks WHERE kind = ? AND level = ? AND layer = ? AND number BETWEEN ? AND ?",
            (kind, grid.level, layer, first, last),
        )
        stored = {number: self._stored(kind, grid.level, number, layer) for (number,) in rows if number not in fresh}
        return [(number, *each) for number, each in sorted({**stored, **fresh}.items())]

    def _stored(self, kind: str, level: int, number: int, layer: str) -> tuple[Ints, Cells]:
        key = (kind, level, number, layer)
        with self._filling.lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        chunk = stored_chunk(self._database, kind, level, number, (layer,))
        with self._filling.lock:
            if key not in self._cache:
                self._cache[key] = chunk.ids, chunk.cells[layer]
                self._cached_bytes += _size(chunk)
                while self._cached_bytes > _CACHED_BYTES:
                    _, (ids, cells) = self._cache.popitem(last=False)
                    self._cached_bytes -= ids.nbytes + cells.nbytes
        return chunk.ids, chunk.cells[layer]

    def _names(self, kind: str) -> dict[int, str]:
        return dict(self._database.read("SELECT id, name FROM names WHERE kind = ?", (kind,)))

    def _shaded(self, owners: Cells, highlighted: str) -> NDArray[np.uint8]:
        """Owners' numbers as codes, one higher: nobody, shades of the others, the *highlighted* broker."""
        rows = self._database.read("SELECT id FROM names WHERE kind = ? AND name = ?", (BROKER, highlighted))
        # Looked up for each number once: a tile has millions of cells.
        numbers = np.arange(int(owners.max(initial=NOBODY)) + 1)
        shades = (2 + (numbers - NOBODY - 1) % _SHADES).astype(np.uint8)
        shades[:2] = 0, NO_OWNER + 1
        if rows and rows[0][0] + NOBODY < len(shades):
            shades[rows[0][0] + NOBODY] = HIGHLIGHTED + 1
        return shades[owners]

    def _tile(self, kind: str, metric: str, grid: _Grid, rows: tuple[TileRow, ...], cells: Cells, width: int) -> Tile:
        latest, period = self._filling.latest, self._filling.period_ms
        is_owner = metric == "owner"
        fold = -(-grid.columns // width)
        if fold > 1:  # the coarsest level is still too fine
            cells = np.maximum.reduceat(cells, np.arange(0, grid.columns, fold), axis=1)
        return Tile(
            metric=metric,
            since_ms=grid.since_ms,
            until_ms=grid.until_ms,
            column_ms=grid.column_ms * fold,
            rows=rows,
            # 0 becomes 255, NO_DATA.
            cells=cells.astype(np.uint8) - np.uint8(1),
            values=np.zeros(0) if is_owner else _decoded(metric),
            unit=_UNITS.get(metric, "percent"),
            top=0.0 if is_owner else self._top(kind, metric),
            rows_left_out=not_listed(latest.summary) if latest is not None and kind == BROKERS else 0,
            final=latest is not None and grid.until_ms <= latest.summary.interval - 2 * period,
        )

    def _top(self, kind: str, metric: str) -> float:
        """The top of the scale: 100 for usages, else what 99.9 % of all values do not exceed."""
        if metric == "usage" or metric in RESOURCES:
            return _HUNDRED
        with self._filling.lock:
            counts = self._filling.histograms[kind, metric][1:].copy() if self._filling.period_ms else np.zeros(255)
        if not counts.sum():
            return 0.0
        code = int(np.searchsorted(np.cumsum(counts), _TOP_SHARE * counts.sum()))
        return float(_decoded(metric)[min(code, 254)])


def _decoded(metric: str) -> NDArray[np.float64]:
    """(255,) the value of each code."""
    if metric == "usage" or metric in RESOURCES:
        return np.arange(255) / USAGE_STEPS
    return decoded_rates()


def _size(chunk: Chunk) -> int:
    return int(chunk.ids.nbytes) + chunk.size


def _folded(labels: Sequence[str], cells: Cells, height: int) -> tuple[tuple[TileRow, ...], Cells]:
    """At most *height* rows: neighbours are folded to their maximum where there are more."""
    if height < 1:
        raise ValueError(f"height {height}: expected one row or more")
    if len(labels) <= height:
        return tuple(TileRow(name=each, count=1, first=each, last=each) for each in labels), cells
    starts = np.arange(height) * len(labels) // height
    ends: list[Any] = [*starts[1:].tolist(), len(labels)]
    rows = tuple(
        TileRow(name=labels[low] if high - low == 1 else "", count=high - low, first=labels[low], last=labels[high - 1])
        for low, high in zip(starts.tolist(), ends, strict=True)
    )
    return rows, np.maximum.reduceat(cells, starts, axis=0)
