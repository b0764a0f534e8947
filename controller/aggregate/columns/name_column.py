"""A column of names: many rows, few different names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from controller.model.load import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NameColumn:
    """Each row is a position in ``names``, where a name may stand several times; no row is a string of its own."""

    names: Sequence[str]
    #: (n,)
    codes: Ints

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """The column with *names* as its rows."""
        return cls(names=names, codes=np.arange(len(names), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        return self.names[int(self.codes[row])]

    def tolist(self) -> list[str]:
        """The name of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def take(self, rows: Ints) -> Self:
        """The rows at *rows*, in that order."""
        return type(self)(names=self.names, codes=self.codes[rows])

    def used(self) -> list[str]:
        """The names that rows have; one may be in it several times."""
        return [self.names[code] for code in self._used().tolist()]

    def numbered(self, number_of: Callable[[str], int]) -> Ints:
        """(n,) the number of each row's name; *number_of* is called for :meth:`used`, in that order."""
        used = self._used()
        numbers = np.zeros(len(self.names), np.int64)
        numbers[used] = [number_of(self.names[code]) for code in used.tolist()]
        return numbers[self.codes]

    def _used(self) -> Ints:
        """The codes that rows have, ascending."""
        mask = np.zeros(len(self.names), np.bool_)
        mask[self.codes] = True
        return np.flatnonzero(mask)
