"""The map: which part of the past it shows, and its cells in words for those who do not see the picture."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from controller.web.store.values import (
    MOST_COLUMNS,
    MOST_ROWS,
    NO_DATA,
    BrokerMetric,
    ControlEvent,
    IssuedCommand,
    KeyspaceMetric,
    RowOrder,
    Tile,
    TileRow,
)
from controller.web.views.formats import BrokerNames, BundleLabel, percent, short
from controller.wire.readable import counted

MapRows: TypeAlias = Literal["brokers", "keyspace"]
MINUTE_MS: Final = 60_000
#: The shortest span that is shown, and the longest.
SHORTEST_MS: Final = 10 * MINUTE_MS
_LONGEST_MS: Final = 31 * 1440 * MINUTE_MS
#: Minutes of the spans that buttons offer, and the one that a map begins with.
SPANS: Final = ((60, "1 h"), (360, "6 h"), (1440, "24 h"), (10_080, "7 d"))
_FIRST_SPAN: Final = 360
METRICS: Final[Mapping[str, Mapping[str, str]]] = {
    "brokers": {
        "usage": "Usage, fullest resource",
        "cpu": "CPU",
        "memory": "Heap memory",
        "directMemory": "Direct memory",
        "bandwidthIn": "Bandwidth in",
        "bandwidthOut": "Bandwidth out",
        "rate": "Messages /s",
        "throughput": "Bytes /s",
        "connections": "Connections",
    },
    "keyspace": {"rate": "Messages /s", "throughput": "Bytes /s", "owner": "Owner"},
}
#: The table of cells has so many rows, and so many columns of time.
_TABLE_ROWS: Final = 40
_TABLE_COLUMNS: Final = 6
_LONGEST_NAME: Final = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class MapQuery:
    """What a link to the map asks for.  A span of 0 minutes: from since_ms to until_ms."""

    rows: MapRows = "brokers"
    metric: str = "usage"
    order: RowOrder = "usage"
    span: int = _FIRST_SPAN
    since_ms: int
    until_ms: int
    namespace: str | None = None
    owner: str = ""
    moves: bool = True
    #: What is selected: a row by name, and a time; "" and None: nothing.
    row: str = ""
    at_ms: int | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, str], *, oldest_ms: int | None, end_ms: int) -> "MapQuery":
        """What the parameters *parameters* ask for; the map ends at *end_ms* unless they say otherwise.

        A span before the end begins with the first data, *oldest_ms*, where there are less; None: there are none.
        Raises ValueError, with a text for people, for a parameter that cannot be.
        """
        rows = _one_of("rows", parameters.get("rows", "brokers"), get_args(MapRows))
        metrics = tuple(METRICS[rows])
        since, until, span = _times(parameters, oldest_ms, end_ms)
        return cls(
            rows="keyspace" if rows == "keyspace" else "brokers",
            metric=_one_of("metric", parameters.get("metric", metrics[0]), metrics),
            order="name"
            if _one_of("order", parameters.get("order", "usage"), get_args(RowOrder)) == "name"
            else "usage",
            span=span,
            since_ms=since,
            until_ms=until,
            namespace=_name("namespace", parameters.get("namespace", "")) or None,
            owner=_name("owner", parameters.get("owner", "")),
            moves=parameters.get("moves") != "0",
            row=_name("row", parameters.get("row", "")),
            at_ms=_number("at", parameters["at"], 0, 1 << 53) if parameters.get("at") else None,
        )

    def broker_metric(self) -> BrokerMetric:
        """The metric, where rows are brokers."""
        return next(metric for metric in get_args(BrokerMetric) if metric == self.metric)

    def keyspace_metric(self) -> KeyspaceMetric:
        """The metric, where rows are the keyspace."""
        return next(metric for metric in get_args(KeyspaceMetric) if metric == self.metric)

    def parameters(self) -> dict[str, str | int]:
        """The parameters of a link to the same, without those that are as they are anyway."""
        query: dict[str, str | int] = {"rows": self.rows, "metric": self.metric}
        if self.span:
            query["span"] = self.span
        else:
            query |= {"since": self.since_ms, "until": self.until_ms}
        if self.order != "usage":
            query["order"] = self.order
        if self.namespace is not None:
            query["namespace"] = self.namespace
        if self.owner:
            query["owner"] = self.owner
        if not self.moves:
            query["moves"] = 0
        return query


def size(parameters: Mapping[str, str]) -> tuple[int, int]:
    """Columns and rows that a request for a tile wants; ValueError: too many or none."""
    width = _number("width", parameters.get("width", ""), 1, MOST_COLUMNS)
    return width, _number("height", parameters.get("height", ""), 1, MOST_ROWS)


def column_ms(parameters: Mapping[str, str]) -> int:
    """How long the column is that a request asks about; ValueError: none, or longer than any."""
    return _number("column", parameters.get("column", ""), 1, _LONGEST_MS)


def _times(parameters: Mapping[str, str], oldest_ms: int | None, end_ms: int) -> tuple[int, int, int]:
    if "since" not in parameters and "until" not in parameters:
        span = _number("span", parameters.get("span", str(_FIRST_SPAN)), 10, _LONGEST_MS // MINUTE_MS)
        since = end_ms - span * MINUTE_MS
        return since if oldest_ms is None else max(since, min(oldest_ms, end_ms - SHORTEST_MS)), end_ms, span
    since = _number("since", parameters.get("since", ""), 0, 1 << 53)
    until = _number("until", parameters.get("until", ""), 0, 1 << 53)
    if not SHORTEST_MS <= until - since <= _LONGEST_MS:
        raise ValueError(f"until must be 10 minutes to 31 days after since, not {until - since} ms")
    return since, until, 0


def _number(name: str, text: str, lowest: int, highest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and lowest <= int(text) <= highest):
        raise ValueError(f"{name} must be a number from {lowest} to {highest}, not {text[:40]!r}")
    return int(text)


def _one_of(name: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {text[:40]!r}")
    return text


def _name(name: str, text: str) -> str:
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"{name} has {len(text):,} characters, more than any name")
    return text


# ---- the picture as bytes ----


def tile_bytes(tile: Tile) -> bytes:
    """*tile* for the script: the length of a JSON header (uint32, little endian), the header, the cells by rows."""
    header = {
        "since": tile.since_ms,
        "until": tile.until_ms,
        "column": tile.column_ms,
        "columns": int(tile.cells.shape[1]) if tile.cells.ndim == 2 else 0,
        "rows": [_row(row) for row in tile.rows],
        "unit": tile.unit,
        "top": tile.top,
        "values": [round(float(value), 3) for value in tile.values],
        "rowsLeftOut": tile.rows_left_out,
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return struct.pack("<I", len(text)) + text + np.ascontiguousarray(tile.cells).tobytes()


def _row(row: TileRow) -> list[str | int]:
    return [row.name] if row.count == 1 else [row.name, row.count, row.first, row.last]


# ---- the picture in words ----


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """The same cells as a table: rows above the limit first, then by their highest value."""

    #: Begin of each column, epoch ms.
    times: tuple[int, ...]
    rows: tuple["TableRow", ...]
    rows_left_out: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row of the table."""

    #: The broker, namespace or bundle; "" where the row folds several.
    name: str
    kind: Literal["brokers", "namespaces", "bundles", ""]
    label: str
    cells: tuple[str, ...]
    is_over: bool


def cell_table(tile: Tile, names: BrokerNames, rows: MapRows, limit: float | None) -> CellTable:
    """The highest values of *tile* in each sixth of its span."""
    columns = tile.cells.shape[1] if tile.cells.ndim == 2 else 0
    if not columns or not tile.rows or not tile.values.size:
        return CellTable(times=(), rows=(), rows_left_out=len(tile.rows), unit=tile.unit)
    edges = np.unique(np.linspace(0, columns, min(_TABLE_COLUMNS, columns) + 1).astype(int))
    # No data counts as less than any value.
    codes = np.where(tile.cells == NO_DATA, -1, tile.cells.astype(np.int16))
    parts = np.stack([codes[:, a:b].max(axis=1) for a, b in pairwise(edges)], axis=1)
    order = np.argsort(-parts.max(axis=1), kind="stable")[:_TABLE_ROWS]
    return CellTable(
        times=tuple(tile.since_ms + int(edge) * tile.column_ms for edge in edges[:-1]),
        rows=tuple(_table_row(tile, tile.rows[at], parts[at], names, rows, limit) for at in order),
        rows_left_out=len(tile.rows) - len(order) + tile.rows_left_out,
        unit="%" if tile.unit == "percent" else tile.unit,
    )


def _table_row(
    tile: Tile, row: TileRow, codes: Sequence[int], names: BrokerNames, rows: MapRows, limit: float | None
) -> TableRow:
    values = [None if code < 0 else float(tile.values[code]) for code in codes]
    is_percent = tile.unit == "percent"
    known = [value for value in values if value is not None]
    is_bundle = bool(BundleLabel.of(row.name).range)
    return TableRow(
        name=row.name,
        kind="" if not row.name else "brokers" if rows == "brokers" else "bundles" if is_bundle else "namespaces",
        label=row_label(row, names, rows),
        cells=tuple("no data" if value is None else percent(value) if is_percent else short(value) for value in values),
        is_over=is_percent and limit is not None and bool(known) and max(known) > limit,
    )


def row_label(row: TileRow, names: BrokerNames, rows: MapRows) -> str:
    """A row by name; one that folds several says how many, and from which to which."""
    if row.name:
        return names.label(row.name) if rows == "brokers" else row.name
    if rows == "brokers":
        return f"{counted(row.count, 'broker')}: {names.label(row.first)} to {names.label(row.last)}"
    return f"{row.count:,} more: {row.first} to {row.last}"


def map_title(query: MapQuery, table: CellTable | None, limit: float | None) -> str:
    """The picture in one sentence; the script says the same of other spans."""
    if query.metric == "owner":
        return "Who owned what"
    if table is None:
        return "Load of the keyspace"
    if not table.rows:
        return "There is no data in this span"
    first = table.rows[0]
    what = {"brokers": "broker", "namespaces": "namespace", "bundles": "bundle"}.get(first.kind, "row")
    over = [row.label for row in table.rows if row.is_over]
    if over and any(not row.kind for row in table.rows):  # each row has several
        return f"At least {counted(len(over), 'broker')} went above the limit of {percent(limit)} %"
    if over:
        others = f" and {counted(len(over) - 1, f'other {what}')}" if len(over) > 1 else ""
        return f"{over[0]}{others} went above the limit of {percent(limit)} %"
    if query.rows == "brokers" and table.unit == "%" and limit is not None:
        return f"No broker went above the limit of {percent(limit)} %"
    return f"{first.label} is the busiest {what}" if first.kind else f"The busiest row: {first.label}"


# ---- what happened ----


def events_of(
    moves: Sequence[IssuedCommand], counts: Sequence[int], controls: Sequence[ControlEvent], until_ms: int
) -> dict[str, object]:
    """What the map draws over its cells: moves one by one, or their counts, and when a person paused."""
    return {
        "moves": [
            [each.interval, each.action, each.bundle, each.source, each.destination] for each in moves if each.source
        ],
        "counts": list(counts),
        "bands": pauses_of(controls, until_ms),
    }


def pauses_of(controls: Sequence[ControlEvent], until_ms: int) -> list[list[object]]:
    """Spans in which somebody's pause stood: begin, end and text, the oldest first."""
    bands: list[list[object]] = []
    since, by = None, ""
    for event in sorted(controls, key=lambda each: each.at_ms):
        if event.action == "pause" and since is None:
            since, by = event.at_ms, event.by
        elif event.action == "resume" and since is not None:
            bands.append([since, event.at_ms, f"paused by {by}"])
            since = None
    if since is not None:
        bands.append([since, until_ms, f"paused by {by}"])
    return bands
