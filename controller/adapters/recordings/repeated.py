"""Rows of a file that have the text of the row before: only what differs is kept.

The sweeps of a broker have the same text for hours, but for the sweep's id, and numbers near those of a minute ago.
So of a stretch of such rows only the first holds its text and its numbers.  Of the others ``value`` is MARK and the
sweep's id.  Their ``digits`` together say how far each number lies from the one before it, as whole numbers from 0 on
(0, -1, 1, -2, ...): all steps of one number, then those of the next, in the order of size of the first row's numbers.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from controller.adapters.recordings.manifest import LARGEST_FILE, RecordingError
from controller.model.load import Ints

#: A value that begins with it repeats the text of the row before; no JSON text does.
MARK: Final = b"\x01"
_SWEEP_ID: Final = re.compile(rb'"sweepId":"([^"\\]*)"')


class Shape(NamedTuple):
    """A text, cut where its sweep's id stands."""

    before: bytes
    #: None where it has none.
    sweep_id: bytes | None
    behind: bytes

    @property
    def same(self) -> tuple[bytes, bytes, bool]:
        """What two texts have in common of which one can repeat the other."""
        return self.before, self.behind, self.sweep_id is None

    def text_of(self, sweep_id: bytes) -> bytes:
        """The text with another id."""
        return self.before + sweep_id + self.behind


def shape_of(text: bytes) -> Shape:
    """The shape of *text*."""
    match = _SWEEP_ID.search(text)
    if match is None:
        return Shape(text, None, b"")
    return Shape(text[: match.start(1)], match[1], text[match.end(1) :])


def shortened(rows: Sequence[tuple[Shape, Ints]]) -> tuple[list[bytes], list[Ints]]:
    """``value`` and ``digits`` of *rows* with the same shape, one after the other: the first is whole."""
    first, numbers = rows[0][0], np.stack([digits for _, digits in rows])
    order = np.argsort(numbers[0], kind="stable")
    steps = np.diff(numbers, axis=0)[:, order].T.ravel()
    steps = (steps << 1) ^ (steps >> 63)
    values = [first.text_of(first.sweep_id or b""), *(MARK + (shape.sweep_id or b"") for shape, _ in rows[1:])]
    return values, [numbers[0], *np.split(steps, len(rows) - 1)] if len(rows) > 1 else [numbers[0]]


class Whole(NamedTuple):
    """Rows as they were."""

    values: list[bytes]
    #: All digits, one row's after the other's.
    digits: Ints


def whole(values: Sequence[bytes], repeats: Sequence[bool], digits: Ints, ends: Ints, where: object) -> Whole:
    """The rows of a file, whole; *repeats*: which have the text of the row before; *ends* of their digits (rows,).

    RecordingError of *where* where they do not fit together, or have more text than a file may have.
    """
    texts, room = list(values), LARGEST_FILE
    digits = digits.copy()
    for first, last in _stretches(repeats):
        if first < 0:
            raise RecordingError(f"{where}: begins with a row that repeats another")
        shape, n = shape_of(texts[first]), int(ends[first]) - (int(ends[first - 1]) if first else 0)
        if (np.diff(ends[first : last + 1]) != n).any():
            raise RecordingError(f"{where}: has rows with other numbers than the row that they repeat")
        for row in range(first + 1, last + 1):
            sweep_id = texts[row][len(MARK) :]
            if sweep_id and shape.sweep_id is None:
                raise RecordingError(f"{where}: has a sweep's id in a text that has none")
            texts[row] = shape.text_of(sweep_id)
            room -= len(texts[row])
            if room < 0:
                raise RecordingError(f"{where}: unpacks to more than {LARGEST_FILE} bytes")
        begin, end = int(ends[first]), int(ends[last])
        digits[begin:end] = _added_up(digits[begin - n : begin], digits[begin:end].reshape(n, last - first).T)
    return Whole(texts, digits)


def _stretches(repeats: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The row before each stretch of rows that repeat it, and the last one of these."""
    at = 0
    for repeated, rows in groupby(repeats):
        end = at + sum(1 for _ in rows)
        if repeated:
            yield at - 1, end - 1
        at = end


def _added_up(first: Ints, steps: Ints) -> Ints:
    """(rows * n,) the numbers of the rows behind *first*, (n,), from their *steps*, (rows, n)."""
    order = np.argsort(first, kind="stable")
    unsigned = steps.view(np.uint64)
    signed = (unsigned >> np.uint64(1)).view(np.int64) ^ -(unsigned & np.uint64(1)).view(np.int64)
    numbers = np.empty_like(signed)
    numbers[:, order] = signed
    # A step that leads too far wraps around; a number below 0 is refused by whoever reads it.
    added: Ints = (np.cumsum(numbers, axis=0) + first).ravel()
    return added
