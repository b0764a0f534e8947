"""Cells: small values with versions, as the operations of one topic make them.  Reads records, and does nothing else.

A cell's version is the ordinal of the operation that wrote it, so it never repeats.  A cell may have an owner, another
cell with which it ends: a session, for what ends with its process.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from controller.log.port import LogRecord, Position
from controller.model.errors import WireError
from controller.wire.base import encode
from controller.wire.cells import (
    CellChange,
    CellCondition,
    CellOperation,
    SnapshotPart,
    StoreBegin,
    StoredCell,
    StoreMark,
    bytes_of,
    parse_store_record,
    text_of,
)

#: The version of a cell that is not there, and of one that has any.
ABSENT: Final = -1
EXISTS: Final = -2
#: An operation that would make more is refused, by everybody.
MAX_CELLS: Final = 10_000
MAX_BYTES: Final = 96 << 20
#: Nearly all cells and bytes are proposals'.  They leave so much room for what must always succeed: to pause, to stop
#: all, to start a session, to lead.  New ones leave it twice, so that those that are there can be rejected.
PROPOSALS: Final = "proposals/"
_ROOM_CELLS: Final = 500
_ROOM_BYTES: Final = 8 << 20
#: How many marks are remembered, of those whose snapshots may still come.
_MARKS: Final = 16
_NO_DIGEST: Final = bytes(sha256().digest_size)
#: Of one cell, as in ZooKeeper.  What has more changes nothing: no part of a snapshot might hold it.
MAX_CELL_BYTES: Final = 1 << 20
#: Of the cells in one part of a snapshot, as they lie there, where it holds more than one.
_PART_BYTES: Final = 700_000


class ElectionCell(NamedTuple):
    """A value that all processes share."""

    value: bytes
    version: int
    #: The version of its first value: cells that were made earlier have a lower one.
    created: int
    #: When it was written last, epoch ms by the log's clock.  For people: nothing depends on it.
    changed_ms: int
    #: The key of the cell with which it ends; "": none.
    owner: str = ""


class StoreChangedError(Exception):
    """What was read does not go on from what was read before: records are missing, or the topic is another one."""


class CellState:
    """The cells after some operations."""

    def __init__(
        self,
        cells: Mapping[str, ElectionCell] | None = None,
        *,
        ordinal: int = 0,
        digest: bytes = _NO_DIGEST,
    ) -> None:
        self.cells = dict(cells or {})
        self.ordinal, self.digest = ordinal, digest
        self.size = sum(len(cell.value) for cell in self.cells.values())

    def apply(self, operation: CellOperation, raw: bytes, at_ms: int) -> int | None:
        """Apply *operation*, the record *raw*; returns the version of what it wrote, None where it changed nothing."""
        self.ordinal += 1
        self.digest = sha256(self.digest + raw).digest()
        if not all(map(self._holds, operation.conditions)):
            return None
        try:
            values = [None if each.value is None else bytes_of(each.value) for each in operation.changes]
        except ValueError:
            return None
        if any(value is not None and len(value) > MAX_CELL_BYTES for value in values):
            return None
        if any(each.owner and each.owner not in self.cells for each in operation.changes):
            return None
        written = {
            each.key: len(value) for each, value in zip(operation.changes, values, strict=True) if value is not None
        }
        if not self._has_room(written):
            return None
        for change, value in zip(operation.changes, values, strict=True):
            self._change(change, value, at_ms)
        for change in operation.changes:
            # The same operation may have ended the owner, too.
            if change.owner and change.owner not in self.cells:
                self._end(change.key)
        return self.ordinal

    def _has_room(self, written: Mapping[str, int]) -> bool:
        """Whether cells of these lengths can be written.  What does not grow can always: a session in a full store."""
        replaced = [len(self.cells[key].value) for key in written if key in self.cells]
        new, growth = len(written) - len(replaced), sum(written.values()) - sum(replaced)
        proposals = [key for key in written if key.startswith(PROPOSALS)]
        rooms = bool(proposals) + any(key not in self.cells for key in proposals)
        cells, size = MAX_CELLS - rooms * _ROOM_CELLS, MAX_BYTES - rooms * _ROOM_BYTES
        return (not new or len(self.cells) + new <= cells) and (growth <= 0 or self.size + growth <= size)

    def _holds(self, condition: CellCondition) -> bool:
        cell = self.cells.get(condition.key)
        if condition.version == EXISTS:
            return cell is not None
        return condition.version == (ABSENT if cell is None else cell.version)

    def _change(self, change: CellChange, value: bytes | None, at_ms: int) -> None:
        if value is None:
            self._end(change.key)
            return
        before = self.cells.get(change.key)
        self.size += len(value) - (0 if before is None else len(before.value))
        created = self.ordinal if before is None else before.created
        self.cells[change.key] = ElectionCell(value, self.ordinal, created, at_ms, change.owner)

    def _end(self, key: str) -> None:
        if key not in self.cells:
            return
        owned = defaultdict[str, list[str]](list)
        for name, cell in self.cells.items():
            owned[cell.owner].append(name)
        ending = [key]
        while ending:
            ended = self.cells.pop(name := ending.pop(), None)
            if ended is not None:
                self.size -= len(ended.value)
                ending += owned[name]


class Marked(NamedTuple):
    """The store at a mark."""

    position: Position
    ordinal: int
    digest: bytes
    #: None: another process writes this snapshot.
    cells: Mapping[str, ElectionCell] | None


class StoreReplay:
    """The store, as the records of its topic make it, from a beginning or a snapshot on.

    Where the first records are gone, it begins with the first mark whose snapshot is complete.  Snapshots that come
    later are compared: who missed a record that was deleted finds out by the next one.
    """

    def __init__(self, place: Callable[[Position], str]) -> None:
        """*place*: a record's place, for messages."""
        self._place = place
        #: None until a beginning or a snapshot was read.
        self.state: CellState | None = None
        self.store, self.cluster = "", ""
        #: Where others may begin to read; and how many operations, and bytes, came since.
        self.since: Position = 0
        self.records_since = self.bytes_since = 0
        #: Whether any record was read that belongs to a store.
        self.passed = False
        #: The first record that is none, and why; "": there was no such.
        self.foreign = ""
        #: Operation -> the version of what it wrote, None where it changed nothing: of those that somebody waits for.
        self.awaited: dict[str, int | None] = {}
        self.own_mark = ""
        self.marks: dict[str, Marked] = {}
        #: Set once the topic was read to its end: from then on nothing may be missing.
        self.loaded = False
        #: How many marks were read.  A record after one may be the first that was not deleted.
        self.marks_read = 0
        #: Marks that came after so many operations may be unknown.
        self._base = 0
        self._parts: dict[str, dict[int, SnapshotPart]] = {}
        #: Before there is a state: what came since the first mark; and for each mark how much of that came before it.
        self._behind: list[tuple[CellOperation | StoreMark, LogRecord]] = []
        self._waiting: dict[str, int] = {}
        self._outcomes: set[str] = set()

    def await_outcome(self, operation: str) -> None:
        """Remember what comes of *operation*."""
        self._outcomes = {operation}
        self.awaited.clear()

    def feed(self, record: LogRecord) -> None:
        """Apply *record*.  StoreChangedError: read everything anew.  StateError: a later release wrote it.

        What is no record of a store is passed over.
        """
        place = self._place(record.position)
        try:
            parsed = parse_store_record(record.value, place, self.store)
        except WireError as error:
            self.foreign = self.foreign or f"{place}: {error}"
            return
        if isinstance(parsed, StoreBegin):
            if not self.passed:
                self.state, self.store, self.cluster = CellState(), parsed.store, parsed.cluster
                self.since = record.position
            self.passed = True
            return
        self.passed = True
        if self.state is not None and parsed.store != self.store:
            if self.loaded and isinstance(parsed, CellOperation):
                raise StoreChangedError
            return
        self.records_since, self.bytes_since = self.records_since + 1, self.bytes_since + len(record.value)
        if isinstance(parsed, CellOperation):
            self._operation(parsed, record)
        elif isinstance(parsed, StoreMark):
            self._mark(parsed, record)
        else:
            self._part(parsed)

    def _operation(self, operation: CellOperation, record: LogRecord) -> None:
        if self.state is None:
            if self._waiting:
                self._behind.append((operation, record))
            return
        written = self.state.apply(operation, record.value, record.timestamp_ms)
        if operation.id in self._outcomes:
            self._outcomes.discard(operation.id)
            self.awaited[operation.id] = written

    def _mark(self, mark: StoreMark, record: LogRecord) -> None:
        self.marks_read += 1
        if self.state is None:
            self._waiting[mark.id] = len(self._behind)
            self._behind.append((mark, record))
            return
        cells = dict(self.state.cells) if mark.id == self.own_mark else None
        self.marks[mark.id] = Marked(record.position, self.state.ordinal, self.state.digest, cells)
        for old in list(self.marks)[:-_MARKS]:
            self._base = max(self._base, self.marks.pop(old).ordinal)
            self._parts.pop(old, None)

    def _part(self, part: SnapshotPart) -> None:
        known = part.mark in (self._waiting if self.state is None else self.marks)
        if not known:
            # Of a mark before those that this process remembers; a later one would have been read.
            if self.state is not None and part.ordinal > self._base:
                raise StoreChangedError
            return
        if part.part >= part.parts:
            return
        parts = self._parts.setdefault(part.mark, {})
        # Who knows the cells only compares what came before them.
        parts[part.part] = part if self.state is None else part.model_copy(update={"cells": ()})
        if parts.keys() != set(range(part.parts)):
            return
        del self._parts[part.mark]
        if self.state is None:
            self._begin_with(part, list(parts.values()))
            return
        marked = self.marks[part.mark] = self.marks[part.mark]._replace(cells=None)
        if (marked.ordinal, marked.digest.hex()) != (part.ordinal, part.digest):
            raise StoreChangedError
        # One that is stored again, or late, leads back to what may be deleted by now.
        if marked.position > self.since:
            self.since, self.records_since, self.bytes_since = marked.position, 0, 0

    def _begin_with(self, last: SnapshotPart, parts: list[SnapshotPart]) -> None:
        try:
            cells = {
                cell.key: ElectionCell(bytes_of(cell.value), cell.version, cell.created, cell.changed_ms, cell.owner)
                for part in parts
                for cell in part.cells
            }
        except ValueError:
            return
        self.state = CellState(cells, ordinal=last.ordinal, digest=bytes.fromhex(last.digest))
        self.store, self.cluster, self._base = last.store, last.cluster, last.ordinal
        (_, mark), *behind = self._behind[self._waiting[last.mark] :]
        self.since = mark.position
        self._behind.clear()
        self._waiting.clear()
        self._parts.clear()
        for each, record in behind:
            if each.store == self.store:
                self._operation(each, record) if isinstance(each, CellOperation) else self._mark(each, record)


def snapshot_of(replay: StoreReplay, mark: str) -> list[bytes]:
    """The records of the snapshot of *mark*, which this process wrote and has read."""
    marked = replay.marks[mark]
    groups = list(_grouped((marked.cells or {}).items()))
    return [
        encode(
            SnapshotPart(
                store=replay.store,
                since=replay.since,
                cluster=replay.cluster,
                mark=mark,
                part=number,
                parts=len(groups),
                ordinal=marked.ordinal,
                digest=marked.digest.hex(),
                cells=tuple(group),
            )
        )
        for number, group in enumerate(groups)
    ]


def _grouped(cells: Iterable[tuple[str, ElectionCell]]) -> Iterator[list[StoredCell]]:
    """*cells* in groups that a record holds; at least one group."""
    group, size = list[StoredCell](), 0
    for key, cell in cells:
        stored = StoredCell(
            key=key,
            value=text_of(cell.value),
            version=cell.version,
            created=cell.created,
            changed_ms=cell.changed_ms,
            owner=cell.owner,
        )
        length = len(encode(stored)) + 1
        if group and size + length > _PART_BYTES:
            yield group
            group, size = [], 0
        group.append(stored)
        size += length
    yield group
