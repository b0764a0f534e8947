"""Matrices of rows × time at seven resolutions, each twice as coarse as the one before: a pyramid of maxima.

Time is cut into slots of one interval; a column of level k spans 2**k slots.  A level keeps 1,440 * 2**k slots, but no
more than all others: at one minute a day of minutes, two days of double minutes, and so on.  Columns lie in chunks of
128.  In a cell 0 means that there is no data, so that maxima need no exception; codes are stored one higher.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import StateError
from controller.model.load import Ints

Cells: TypeAlias = NDArray[Any]

LEVELS: Final = 7
COLUMNS: Final = 128
#: Columns that a level keeps at least.
_KEPT_COLUMNS: Final = 1_440
#: Rows of a chunk at most: more are names that somebody invents.
_MOST_ROWS: Final = 1 << 18
_FAST: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What a pyramid holds for each cell."""

    name: str
    kind: Any
    #: Of several slots the highest counts; False: the last one that has data.
    maximum: bool = True


@dataclass(slots=True, kw_only=True)
class Chunk:
    """128 columns of one level.  Row r is about what has the id ``ids[r]``."""

    level: int
    number: int
    ids: Ints
    #: Layer -> (COLUMNS, rows).
    cells: dict[str, Cells]

    @property
    def size(self) -> int:
        """Bytes of all layers."""
        return sum(each.nbytes for each in self.cells.values())


def packed_ids(ids: Ints) -> bytes:
    """*ids* as bytes."""
    return zlib.compress(ids.astype("<i4").tobytes(), _FAST)


def packed_cells(cells: Cells) -> bytes:
    """(COLUMNS, rows) *cells* as bytes: row by row, since a row repeats itself more than a column does."""
    return zlib.compress(np.ascontiguousarray(cells.T).tobytes(), _FAST)


def unpacked_ids(content: bytes) -> Ints:
    """What ``packed_ids`` made bytes of; StateError where it is damaged."""
    return np.frombuffer(_inflated(content, 4 * _MOST_ROWS), "<i4").astype(np.int64)


def unpacked_cells(content: bytes, kind: Any, rows: int) -> Cells:
    """What ``packed_cells`` made bytes of; StateError where it is damaged."""
    size = rows * COLUMNS * np.dtype(kind).itemsize
    values = _inflated(content, size)
    if len(values) != size:
        raise StateError(f"a chunk of the store has {len(values)} bytes, expected {size}")
    return np.frombuffer(values, kind).reshape(rows, COLUMNS).T


def _inflated(content: bytes, largest: int) -> bytes:
    inflating = zlib.decompressobj()
    try:
        values = inflating.decompress(content, largest + 1)
    except zlib.error as error:
        raise StateError(f"a chunk of the store is damaged: {error}") from error
    if not inflating.eof or len(values) > largest:
        raise StateError(f"a chunk of the store is damaged: it has more than {largest} bytes, or is cut off")
    return values


def retained_slots(level: int, all_slots: int) -> int:
    """For how many slots *level* is kept, if all are kept for *all_slots*."""
    return all_slots if level == LEVELS - 1 else min(all_slots, _KEPT_COLUMNS << level)


@dataclass(slots=True, kw_only=True)
class Pyramid:
    """The chunks of one kind that still change, at every level."""

    kind: str
    layers: Sequence[Layer]
    #: For how many slots data is kept.
    slots: int
    open: dict[int, Chunk] = field(default_factory=dict)
    #: Chunks that are complete and not stored yet.
    complete: list[Chunk] = field(default_factory=list)
    #: Level -> ids that were written there last, and their rows in the open chunk.
    _last: dict[int, tuple[Ints, Ints]] = field(default_factory=dict)

    def add(self, slot: int, newest_slot: int, ids: Ints, values: Mapping[str, Cells]) -> None:
        """Set the cells of *ids* (each once) at *slot*.  *newest_slot*: the end of all that will be added soon.

        Levels that would not keep the slot any more are left out.
        """
        for level in range(LEVELS):
            if newest_slot - slot >= retained_slots(level, self.slots):
                continue
            column = slot >> level
            chunk = self._chunk(level, column // COLUMNS, ids)
            rows = self._rows(chunk, ids)
            fits = rows >= 0
            for layer in self.layers:
                line, new = chunk.cells[layer.name][column % COLUMNS], values[layer.name]
                old = line[rows]
                line[rows[fits]] = (np.maximum(old, new) if layer.maximum else np.where(new == 0, old, new))[fits]

    def chunks(self, level: int, first: int, last: int) -> Iterator[Chunk]:
        """The chunks in memory from number *first* to *last*, the older first."""
        for chunk in [*self.complete, *([self.open[level]] if level in self.open else [])]:
            if chunk.level == level and first <= chunk.number <= last:
                yield chunk

    def stored(self, chunks: Sequence[Chunk]) -> None:
        """*chunks* are stored: those that are complete leave memory."""
        done = {id(each) for each in chunks}
        self.complete = [each for each in self.complete if id(each) not in done]

    def _chunk(self, level: int, number: int, ids: Ints) -> Chunk:
        chunk = self.open.get(level)
        if chunk is None or chunk.number != number:
            if chunk is not None:
                self.complete.append(chunk)
            chunk = Chunk(
                level=level,
                number=number,
                ids=ids.copy(),
                cells={each.name: np.zeros((COLUMNS, len(ids)), each.kind) for each in self.layers},
            )
            self.open[level] = chunk
            self._last.pop(level, None)
        return chunk

    def _rows(self, chunk: Chunk, ids: Ints) -> Ints:
        """The row of each of *ids* in *chunk*, which gets those that it lacks; -1 where it has no room."""
        last = self._last.get(chunk.level)
        if last is not None and (last[0] is ids or np.array_equal(last[0], ids)):
            return last[1]
        highest = int(max(ids.max(initial=0), chunk.ids.max(initial=0)))
        place = np.full(highest + 1, -1, np.int64)
        place[chunk.ids] = np.arange(len(chunk.ids))
        new = ids[place[ids] < 0][: max(0, _MOST_ROWS - len(chunk.ids))]
        if len(new):
            place[new] = len(chunk.ids) + np.arange(len(new))
            chunk.ids = np.concatenate([chunk.ids, new])
            for name, cells in chunk.cells.items():
                chunk.cells[name] = np.concatenate([cells, np.zeros((COLUMNS, len(new)), cells.dtype)], axis=1)
        rows: Ints = place[ids]
        self._last[chunk.level] = ids, rows
        return rows
