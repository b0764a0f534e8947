"""A mapping from names to numbers that stores the numbers as an array."""

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np

from controller.model.load import Bools, Floats, Ints


class HistoryColumn(Mapping[str, float]):
    """One number for each broker, as an immutable mapping; brokers without a number are not in it.

    A placement reads and updates the numbers of 1,000 brokers.  A dict would spend most of that time hashing names.
    This class reads the names only when the set of brokers changes.
    """

    __slots__ = ("_dict", "_others", "known", "names", "numbers")

    def __init__(self, names: tuple[str, ...], numbers: Floats, known: Bools, others: Mapping[str, float]) -> None:
        """*numbers* and *known* are (names,); *others* holds the numbers of names that have no row.

        A row counts only where *known* is True.
        """
        self.names = names
        #: (names,) meaningless where not known; a known number may be NaN.
        self.numbers = numbers
        self.known = known
        self._others = others
        self._dict: dict[str, float] | None = None

    @classmethod
    def of(cls, mapping: Mapping[str, float], names: tuple[str, ...]) -> Self:
        """*mapping* with the (unique) *names* as its rows; *mapping* itself if it has these rows already."""
        if isinstance(mapping, cls) and (mapping.names is names or mapping.names == names):
            return mapping
        others = dict(mapping)
        known = np.array([name in others for name in names], np.bool_)
        numbers = np.array([others.pop(name, np.nan) for name in names], np.float64)
        return cls(names, numbers, known, others)

    def with_numbers(self, rows: Ints | slice, numbers: Floats) -> Self:
        """A copy with *numbers* at *rows*."""
        moved, known = self.numbers.copy(), self.known.copy()
        moved[rows], known[rows] = numbers, True
        return type(self)(self.names, moved, known, self._others)

    def __getitem__(self, name: str) -> float:
        return self._mapping()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())

    def __repr__(self) -> str:
        return repr(self._mapping())

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _mapping(self) -> dict[str, float]:
        if self._dict is None:
            column = zip(self.names, self.numbers.tolist(), self.known.tolist(), strict=True)
            self._dict = {**self._others, **{name: number for name, number, known in column if known}}
        return self._dict
