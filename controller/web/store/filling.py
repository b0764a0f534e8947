"""Fills the store with what the log has: summaries, decisions, results, and what people did.

Every record may come again, as after a restart, and changes nothing then.  Summaries come in the order of their
intervals; one that is not newer than the last is passed over.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import numpy as np

from controller.model.controls import ControlChange
from controller.model.decision import Command, Decision
from controller.model.errors import StateError
from controller.model.load import MEMORY, RESOURCES, UNOWNED
from controller.model.names import namespace_of
from controller.model.summary import IntervalSummary, coded_rate
from controller.web.store.catalogue import Catalogue
from controller.web.store.database import Database, StoreDamagedError
from controller.web.store.hot_topics import packed_hot_topics
from controller.web.store.pyramid import (
    COLUMNS,
    LEVELS,
    Chunk,
    Layer,
    Pyramid,
    packed_cells,
    packed_ids,
    retained_slots,
    unpacked_cells,
    unpacked_ids,
)
from controller.wire.base import encode, printable
from controller.wire.journal import ControlsRecord
from controller.wire.results import Result
from controller.wire.summary import ReadSummary

#: Kinds of pyramids.
BROKERS: Final = "brokers"
NAMESPACES: Final = "namespaces"
RANGES: Final = "ranges"
#: Columns of usage of which one is the fullest.  Heap memory says little, so it never is.
_COUNTED: Final = tuple(column for column in range(len(RESOURCES)) if column != MEMORY)
#: Codes of a usage for each percent.
USAGE_STEPS: Final = 2
_HIGHEST: Final = 254
#: A cell of owners: nobody; owner number n is n + 1.
NOBODY: Final = 1
_LAST_OWNER: Final = 65_534
_IDS: Final = "ids"
LAYERS: Final = {
    BROKERS: tuple(
        Layer(name=name, kind=np.uint8) for name in ("usage", *RESOURCES, "rate", "throughput", "connections")
    ),
    NAMESPACES: (
        Layer(name="rate", kind=np.uint8),
        Layer(name="throughput", kind=np.uint8),
        Layer(name="owner", kind=np.uint16, maximum=False),
    ),
    RANGES: (
        Layer(name="rate", kind=np.uint8),
        Layer(name="throughput", kind=np.uint8),
        Layer(name="owner", kind=np.uint16, maximum=False),
    ),
}
_HOUR_MS: Final = 3_600_000
#: So much is deleted at once where the file grows too large, of what may be used.
_SHRINK_TO: Final = 0.9


class Latest(NamedTuple):
    """The newest summary, and its details as they came."""

    summary: IntervalSummary
    details: bytes


class StoreWriter:
    """Writes to *database*.  Methods may be called by several threads."""

    def __init__(self, database: Database, *, retention_ms: int, max_bytes: int) -> None:
        self._database, self._retention_ms, self._max_bytes = database, retention_ms, max_bytes
        #: Guards all that follows, for those who read it.
        self.lock = threading.RLock()
        self.latest: Latest | None = None
        self.period_ms = 0
        #: The newest interval that will be added soon, as far as that is known, epoch ms.
        self.horizon_ms = 0
        self.pyramids: dict[str, Pyramid] = {}
        #: Kind and layer -> (256,) how often each value of a cell came.
        self.histograms: dict[tuple[str, str], Any] = {}
        self._catalogue = Catalogue()
        self._pruned_ms = 0
        #: The newest interval whose pictures are here.
        self._added = 0
        self._restore()

    # ---- summaries ----

    def add_summaries(self, summaries: Sequence[ReadSummary]) -> int:
        """Take summaries in; returns how many were newer than the last one.  ``flush`` makes them durable."""
        with self.lock, self._database.write() as connection:
            return sum(self._add(each, connection) for each in summaries)

    def _add(self, read: ReadSummary, connection: Any) -> bool:
        summary = read.summary
        if summary.interval < self._added or (self.latest is not None and summary.interval == self._added):
            return False
        if summary.interval == self._added:
            self.latest = Latest(summary, read.details)  # its pictures are stored: this process has just begun
            return True
        if summary.period_ms != self.period_ms:
            if self.period_ms:
                connection.execute("DELETE FROM chunks")
            self._begin(summary.period_ms)
        self._add_rows(summary, read.details, connection)
        brokers = self._catalogue.brokers(summary.brokers.names, connection)
        ranges, spaces = self._catalogue.ranges(summary.ranges, connection)
        newest = max(self.horizon_ms, summary.interval) // self.period_ms
        for kind, ids, cells in (
            (BROKERS, brokers, _broker_cells(summary)),
            (RANGES, ranges, _range_cells(summary, brokers)),
            (NAMESPACES, spaces, _namespace_cells(summary, brokers)),
        ):
            if len(ids):
                self.pyramids[kind].add(summary.interval // self.period_ms, newest, ids, cells)
                self._count(kind, cells)
        self.latest, self._added = Latest(summary, read.details), summary.interval
        return True

    def _begin(self, period_ms: int) -> None:
        """Intervals have this length from now on: pictures begin anew."""
        self.period_ms = period_ms
        slots = max(1, self._retention_ms // period_ms)
        self.pyramids = {kind: Pyramid(kind=kind, layers=layers, slots=slots) for kind, layers in LAYERS.items()}
        self.histograms = {
            (kind, layer.name): np.zeros(256, np.int64)
            for kind, layers in LAYERS.items()
            for layer in layers
            if layer.maximum
        }

    def _count(self, kind: str, cells: dict[str, Any]) -> None:
        for layer in LAYERS[kind]:
            if layer.maximum:
                self.histograms[kind, layer.name] += np.bincount(cells[layer.name], minlength=256)

    def _add_rows(self, summary: IntervalSummary, details: bytes, connection: Any) -> None:
        reasons = summary.judged.reasons
        values = (
            summary.interval,
            summary.epoch,
            json.dumps(dict(reasons)),
            summary.judged.total,
            summary.decided_at_ms,
            summary.tick_to_decision_ms,
            details,
            packed_hot_topics(summary.bundles),
        )
        connection.execute(
            "INSERT INTO decisions (interval, epoch, reasons, verdicts, decided_at_ms, tick_ms, details, hot_topics)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (interval) DO UPDATE SET reasons = excluded.reasons,"
            " verdicts = excluded.verdicts, decided_at_ms = excluded.decided_at_ms, tick_ms = excluded.tick_ms,"
            " details = excluded.details, hot_topics = excluded.hot_topics",
            values,
        )
        rows = ((str(reason), summary.interval) for reason in reasons)
        connection.executemany("INSERT OR IGNORE INTO reasons VALUES (?, ?)", rows)
        outcomes = ((each.id, summary.interval, json.dumps(asdict(each))) for each in summary.outcomes)
        connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", outcomes)

    # ---- the journal, results and controls ----

    def add_decisions(self, decisions: Sequence[tuple[Decision, ControlsRecord, int]]) -> None:
        """Take decisions of the journal in, each with its controls and its epoch."""
        with self._database.write() as connection:
            connection.executemany(
                "INSERT INTO decisions (interval, epoch, summary, mode, paused, commands, controls)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (interval) DO UPDATE SET epoch = excluded.epoch,"
                " summary = excluded.summary, mode = excluded.mode, paused = excluded.paused,"
                " commands = excluded.commands, controls = excluded.controls",
                (_decision_row(*each) for each in decisions),
            )
            commands = [
                _command_row(place, command)
                for decision, _, _ in decisions
                for place, command in enumerate(decision.commands)
            ]
            connection.executemany(
                f"INSERT OR IGNORE INTO commands VALUES ({', '.join('?' * 11)})",
                commands,
            )

    def add_results(self, results: Sequence[tuple[Result, int]]) -> None:
        """Take results in, each with its append time; the first one of a command counts."""
        rows = (
            (each.id, at_ms, each.status, each.detail, each.started_at, each.finished_at) for each, at_ms in results
        )
        with self._database.write() as connection:
            connection.executemany("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_controls(self, history: Iterable[ControlChange]) -> bool:
        """Take in what people did; whether any of it is new."""
        rows = [(each.at_ms, each.by, each.action, each.detail, each.reason) for each in history]
        with self._database.write() as connection:
            before = connection.total_changes
            connection.executemany("INSERT OR IGNORE INTO controls VALUES (?, ?, ?, ?, ?)", rows)
            return connection.total_changes > before

    # ---- what becomes durable ----

    def flush(self, positions: dict[str, int]) -> None:
        """Store all pictures, and *positions*: source -> append time up to which it is read, epoch ms."""
        with self.lock:
            chunks = {kind: [*each.complete, *each.open.values()] for kind, each in self.pyramids.items()}
            rows = [row for kind, some in chunks.items() for chunk in some for row in _chunk_rows(kind, chunk)]
            with self._database.write() as connection:
                connection.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)", rows)
                meta = {f"read {source}": at_ms for source, at_ms in positions.items()}
                meta |= {f"histogram {kind} {layer}": each.tobytes() for (kind, layer), each in self.histograms.items()}
                if self.latest is not None:
                    meta |= {"period_ms": self.period_ms, "last_interval": self._added}
                connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
            for kind, some in chunks.items():
                self.pyramids[kind].stored(
                    [each for each in some if each is not self.pyramids[kind].open.get(each.level)]
                )
            self._prune()

    def positions(self) -> dict[str, int]:
        """What the last ``flush`` stored."""
        rows = self._database.read("SELECT key, value FROM meta WHERE key LIKE 'read %'")
        return {key.removeprefix("read "): value for key, value in rows}

    def _restore(self) -> None:
        period = self._database.value("period_ms")
        with self._database.write() as connection:
            self._catalogue.load(connection)
        if not period:
            return
        self._begin_restored(int(period))

    def _begin_restored(self, period_ms: int) -> None:
        self._begin(period_ms)
        self._added = int(self._database.value("last_interval") or 0)
        for key in self.histograms:
            content = self._database.value(f"histogram {key[0]} {key[1]}")
            if isinstance(content, bytes) and len(content) == 256 * 8:
                self.histograms[key] = np.frombuffer(content, np.int64).copy()
        for kind, pyramid in self.pyramids.items():
            for level in range(LEVELS):
                rows = self._database.read("SELECT max(number) FROM chunks WHERE kind = ? AND level = ?", (kind, level))
                if rows[0][0] is not None:
                    pyramid.open[level] = _writable(stored_chunk(self._database, kind, level, rows[0][0]))

    def _prune(self) -> None:
        """Delete what is too old, now and then; and what is too much."""
        # Of summaries or the journal: each may be without the other.
        newest: int | None = self._database.read("SELECT max(interval) FROM decisions")[0][0]
        if newest is None or newest - self._pruned_ms < _HOUR_MS:
            return
        self._pruned_ms = newest
        before = newest - self._retention_ms
        with self._database.write() as connection:
            for table in ("decisions", "reasons", "commands", "outcomes"):
                connection.execute(f"DELETE FROM {table} WHERE interval < ?", (before,))
            for table in ("results", "controls"):
                connection.execute(f"DELETE FROM {table} WHERE at_ms < ?", (before,))
            for kind, pyramid in self.pyramids.items():
                for level in range(LEVELS):
                    oldest = (newest // self.period_ms - retained_slots(level, pyramid.slots)) >> level
                    where = "kind = ? AND level = ? AND number < ?"
                    connection.execute(f"DELETE FROM chunks WHERE {where}", (kind, level, oldest // COLUMNS))
            self._forget(connection)
        self._shrink()

    def _forget(self, connection: Any) -> None:
        """Forget names that no picture has any more."""
        numbers: dict[str, set[int]] = {kind: set() for kind in LAYERS}
        rows = connection.execute("SELECT kind, content FROM chunks WHERE level = ? AND layer = ?", (LEVELS - 1, _IDS))
        for kind, content in rows.fetchall():
            numbers[kind].update(unpacked_ids(content).tolist())
        for kind, pyramid in self.pyramids.items():
            for chunk in pyramid.open.values():
                numbers[kind].update(chunk.ids.tolist())
        self._catalogue.forget(numbers[BROKERS] | numbers[NAMESPACES], numbers[RANGES], connection)

    def _shrink(self) -> None:
        """Delete the oldest of the finest pictures, then the oldest details, where the file is too large."""
        allowed = int(_SHRINK_TO * self._max_bytes)
        is_too_large = self._database.used_bytes > self._max_bytes
        while is_too_large and self._delete_some():
            is_too_large = self._database.used_bytes > allowed

    def _delete_some(self) -> bool:
        """Delete a little of what is missed least; False: there is nothing that may be deleted."""
        with self._database.write() as connection:
            # The newest chunk of a level still changes.
            oldest = connection.execute(
                "SELECT level, min(number) FROM chunks GROUP BY level HAVING min(number) < max(number)"
                " ORDER BY level LIMIT 1"
            ).fetchone()
            if oldest is not None:
                connection.execute("DELETE FROM chunks WHERE level = ? AND number = ?", oldest)
                return True
            half = "SELECT avg(interval) FROM decisions WHERE details IS NOT NULL"
            older = f"details IS NOT NULL AND interval < ({half})"
            return bool(
                connection.execute(f"UPDATE decisions SET details = NULL, hot_topics = NULL WHERE {older}").rowcount
            )


def stored_chunk(database: Database, kind: str, level: int, number: int, layers: Sequence[str] = ()) -> Chunk:
    """The chunk as it is stored, with *layers*, or all.  StoreDamagedError."""
    rows = dict(
        database.read(
            "SELECT layer, content FROM chunks WHERE kind = ? AND level = ? AND number = ?", (kind, level, number)
        )
    )
    try:
        ids = unpacked_ids(rows[_IDS])
        cells = {
            each.name: unpacked_cells(rows[each.name], each.kind, len(ids))
            for each in LAYERS[kind]
            if not layers or each.name in layers
        }
    except (StateError, KeyError, TypeError, ValueError) as error:
        database.damage = str(error)
        raise StoreDamagedError(f"a picture in the store is damaged: {error}") from error
    return Chunk(level=level, number=number, ids=ids, cells=cells)


def _writable(chunk: Chunk) -> Chunk:
    chunk.cells = {name: np.ascontiguousarray(cells).copy() for name, cells in chunk.cells.items()}
    return chunk


def _chunk_rows(kind: str, chunk: Chunk) -> list[tuple[Any, ...]]:
    key = (kind, chunk.level, chunk.number)
    cells = [(*key, name, packed_cells(each)) for name, each in chunk.cells.items()]
    return [(*key, _IDS, packed_ids(chunk.ids)), *cells]


def _decision_row(decision: Decision, controls: ControlsRecord, epoch: int) -> tuple[Any, ...]:
    return (
        decision.interval,
        epoch,
        printable(decision.summary),
        controls.mode,
        int(controls.paused),
        len(decision.commands),
        encode(controls).decode(),
    )


def _command_row(place: int, command: Command) -> tuple[Any, ...]:
    why = command.why
    texts = (printable(each) for each in (why.subject, why.reason, why.unit, why.by, why.detail))
    return (
        command.id,
        command.interval,
        place,
        command.action,
        command.bundle,
        namespace_of(command.bundle),
        printable(command.source),
        printable(command.destination),
        command.mode,
        str(why.reason),
        json.dumps([why.observed, why.limit, *texts]),
    )


# ---- cells: codes, one higher, and 0 where there is no data ----


def _broker_cells(summary: IntervalSummary) -> dict[str, Any]:
    brokers = summary.brokers
    usage = _usage_codes(brokers.usage)
    load = np.where(brokers.has_data[:, None], brokers.load, np.nan)
    cells = {name: usage[:, column] for column, name in enumerate(RESOURCES)}
    return cells | {
        "usage": usage[:, list(_COUNTED)].max(axis=1, initial=0),
        "rate": _rate_codes(load[:, 0] + load[:, 1]),
        "throughput": _rate_codes(load[:, 2] + load[:, 3]),
        "connections": _rate_codes(np.where(brokers.has_data, brokers.connections, np.nan)),
    }


def _usage_codes(percent: Any) -> Any:
    codes = np.minimum(np.rint(np.nan_to_num(percent) * USAGE_STEPS), _HIGHEST) + 1
    return np.where(np.isfinite(percent), codes, 0).astype(np.uint8)


def _rate_codes(rate: Any) -> Any:
    return np.where(np.isfinite(rate), coded_rate(np.asarray(rate, np.float64)).astype(np.int64) + 1, 0).astype(
        np.uint8
    )


def _range_cells(summary: IntervalSummary, brokers: Any) -> dict[str, Any]:
    ranges = summary.ranges
    return {
        "rate": ranges.rate + np.uint8(1),
        "throughput": ranges.throughput + np.uint8(1),
        "owner": _owners(ranges.owner, brokers),
    }


def _owners(owner: Any, brokers: Any) -> Any:
    numbers = np.append(brokers, 0)[owner] + 1
    unknown = (owner == UNOWNED) | (numbers > _LAST_OWNER)
    return np.where(unknown, NOBODY, numbers).astype(np.uint16)


def _namespace_cells(summary: IntervalSummary, brokers: Any) -> dict[str, Any]:
    ranges, spaces = summary.ranges, len(summary.ranges.namespaces)
    cells = {name: np.zeros(spaces, np.uint8) for name in ("rate", "throughput")}
    np.maximum.at(cells["rate"], ranges.namespace, ranges.rate + np.uint8(1))
    np.maximum.at(cells["throughput"], ranges.namespace, ranges.throughput + np.uint8(1))
    owner = np.zeros(spaces, np.uint16)
    order = np.argsort(ranges.throughput, kind="stable")
    owner[ranges.namespace[order]] = _owners(ranges.owner, brokers)[order]
    return {**cells, "owner": owner}
