"""Headers and facts that wait for their interval to close, in columns (claims: controller.aggregate.waiting.claims)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.waiting.waiting_rows import WaitingRows
from controller.model.load import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportHeader:
    """A SWEEP or REPORT row: a broker's report about itself."""

    due: int
    source: int
    partition: int
    offset: int
    broker: str
    #: "" for a REPORT.
    sweep: str
    chunk: int
    chunks: int
    last_update: int
    numbers: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingHeaders(WaitingRows):
    """SWEEP and REPORT rows that wait; ``broker`` and ``sweep`` are positions in the shard's pool of names."""

    WIDE: ClassVar[Mapping[str, int]] = {"numbers": NUMBERS}
    FLOATS: ClassVar[frozenset[str]] = frozenset({"numbers"})

    source: Ints
    partition: Ints
    offset: Ints
    #: Bytes that had arrived in its partition up to and including its record: see limits.
    upto: Ints
    broker: Ints
    sweep: Ints
    chunk: Ints
    chunks: Ints
    last_update: Ints
    #: (n, NUMBERS): see rows.
    numbers: Floats

    def take(self, mask: Bools) -> Self:
        """Only these rows."""
        return type(self)(**{name: array[mask] for name, array in self.columns().items()})

    def named(self, pool: Sequence[str]) -> Iterator[ReportHeader]:
        """Each row, with the names of its broker and sweep from *pool*."""
        numbers = self.numbers.tolist()
        columns = {name: array.tolist() for name, array in self.columns().items() if name not in ("upto", "numbers")}
        for i, values in enumerate(zip(*columns.values(), strict=True)):
            row = dict(zip(columns, values, strict=True))
            names = {"broker": pool[row["broker"]], "sweep": pool[row["sweep"]]}
            yield ReportHeader(**row | names, numbers=tuple(numbers[i]))


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingFacts:
    """Facts that wait for the next tick of their partition; kept as text, since most batches do not read them."""

    due: Ints
    source: Ints
    partition: Ints
    offset: Ints
    #: Bytes that had arrived in its partition up to and including its record: see limits.
    upto: Ints
    texts: list[str]

    def __len__(self) -> int:
        return len(self.due)

    @classmethod
    def empty(cls) -> Self:
        """No facts."""
        none = np.zeros(0, np.int64)
        return cls(due=none, source=none, partition=none, offset=none, upto=none, texts=[])

    def columns(self) -> dict[str, NDArray[Any]]:
        """The numeric columns, for packing."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "texts"}

    def take(self, mask: Bools) -> Self:
        """Only these rows."""
        texts = [self.texts[i] for i in np.flatnonzero(mask).tolist()]
        return type(self)(texts=texts, **{name: array[mask] for name, array in self.columns().items()})

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """All rows of *parts*."""
        numbers = {name: np.concatenate([p.columns()[name] for p in parts]) for name in parts[0].columns()}
        return cls(texts=[text for p in parts for text in p.texts], **numbers)

    def in_order(self) -> list[str]:
        """The texts, ordered by interval, then by their place in the log."""
        order = np.lexsort((self.offset, self.partition, self.source, self.due))
        return [self.texts[i] for i in order.tolist()]
