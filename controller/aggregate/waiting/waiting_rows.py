"""Rows in columns that wait for their interval to close: what claims and headers have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from controller.model.load import Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class WaitingRows:
    """Every field of a subclass is a column; a stored state has them in the order of the fields.

    A column is (n,) of whole numbers unless ``WIDE``, ``FLOATS`` or ``FLAGS`` (one byte each) name it.
    """

    #: Column -> width of each of its rows.
    WIDE: ClassVar[Mapping[str, int]] = {}
    FLOATS: ClassVar[frozenset[str]] = frozenset()
    FLAGS: ClassVar[frozenset[str]] = frozenset()

    #: T of the interval, UNDUE or LATE: see intervals.
    due: Ints

    def __len__(self) -> int:
        return len(self.due)

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        columns: dict[str, Any] = {}
        for f in fields(cls):
            kind = np.float64 if f.name in cls.FLOATS else np.uint8 if f.name in cls.FLAGS else np.int64
            columns[f.name] = np.empty((0, cls.WIDE[f.name]) if f.name in cls.WIDE else 0, kind)
        return cls(**columns)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Name -> column, to be stored."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """All rows of *parts*."""
        return cls(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)})
