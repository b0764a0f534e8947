"""A number for each name, kept in a column: reads as a mapping, moves as an array."""

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np

from controller.model.load import Bools, Floats, Ints


class HistoryColumn(Mapping[str, float]):
    """What is remembered of each broker; never written to, and a mapping from those that have a number to it.

    A placement reads and moves the numbers of 1,000 brokers.  With a dict most of its time would go into hashing
    their names; here they are only looked at when the brokers themselves change.
    """

    __slots__ = ("_dict", "_others", "known", "names", "numbers")

    def __init__(self, names: tuple[str, ...], numbers: Floats, known: Bools, others: Mapping[str, float]) -> None:
        """Numbers of *names*, those that are *known*, and of *others* that are not in the column."""
        self.names = names
        #: (names,) one that is not known means nothing; one that is may be NaN.
        self.numbers = numbers
        self.known = known
        self._others = others
        self._dict: dict[str, float] | None = None

    @classmethod
    def of(cls, mapping: Mapping[str, float], names: tuple[str, ...]) -> Self:
        """*mapping* with the (unique) *names* as its column; *mapping* itself if that is how it lies already."""
        if isinstance(mapping, cls) and (mapping.names is names or mapping.names == names):
            return mapping
        others = dict(mapping)
        known = np.array([name in others for name in names], np.bool_)
        numbers = np.array([others.pop(name, np.nan) for name in names], np.float64)
        return cls(names, numbers, known, others)

    def with_numbers(self, rows: Ints | slice, numbers: Floats) -> Self:
        """This with new *numbers* at *rows* of the column."""
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
