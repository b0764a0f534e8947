"""Numbers for the names that columns refer to: brokers, namespaces and ranges of the keyspace."""

import sqlite3
from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Ints
from controller.model.summary import SummarizedRanges

BROKER: Final = "broker"
NAMESPACE: Final = "namespace"


class KnownRange(NamedTuple):
    """A range of the keyspace."""

    namespace: str
    lower: int
    upper: int

    @property
    def name(self) -> str:
        """As a bundle is called."""
        return f"{self.namespace}/0x{self.lower:08x}_0x{self.upper:08x}"


class Catalogue:
    """For one writer; every name gets a number that stays while anything refers to it."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], int] = {}
        self._ranges: dict[tuple[int, int, int], int] = {}
        self._next = {"names": 1, "ranges": 1}
        #: Of the summary before: its layout, and the numbers.
        self._layout: tuple[tuple[str, ...], bytes] | None = None
        self._numbers: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._brokers: tuple[tuple[str, ...], Ints] = ((), np.zeros(0, np.int64))

    def load(self, connection: sqlite3.Connection) -> None:
        """Go on with what is stored."""
        for number, kind, name in connection.execute("SELECT id, kind, name FROM names"):
            self._names[kind, name] = number
        for number, *key in connection.execute("SELECT id, namespace, lower, upper FROM ranges"):
            self._ranges[tuple(key)] = number
        self._next = {
            "names": max(self._names.values(), default=0) + 1,
            "ranges": max(self._ranges.values(), default=0) + 1,
        }

    def brokers(self, names: tuple[str, ...], connection: sqlite3.Connection) -> Ints:
        """The number of each broker; new ones are stored."""
        if names != self._brokers[0]:
            self._brokers = names, self._named(BROKER, names, connection)
        return self._brokers[1]

    def ranges(self, ranges: SummarizedRanges, connection: sqlite3.Connection) -> tuple[Ints, Ints]:
        """The number of each range, and of each namespace; new ones are stored."""
        layout = (
            ranges.namespaces,
            b"".join(each.tobytes() for each in (ranges.namespace, ranges.lower, ranges.upper)),
        )
        if layout != self._layout:
            spaces = self._named(NAMESPACE, ranges.namespaces, connection)
            keys = zip(spaces[ranges.namespace].tolist(), ranges.lower.tolist(), ranges.upper.tolist(), strict=True)
            self._numbers = self._ranged(list(keys), connection), spaces
            self._layout = layout
        return self._numbers

    def forget(self, names: set[int], ranges: set[int], connection: sqlite3.Connection) -> None:
        """Forget all but the numbers *names* and *ranges*, and namespaces of those."""
        self._ranges = {key: number for key, number in self._ranges.items() if number in ranges}
        stay = names | {key[0] for key in self._ranges}
        self._names = {key: number for key, number in self._names.items() if number in stay}
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS stay (id INTEGER PRIMARY KEY)")
        for table, numbers in (("names", stay), ("ranges", ranges)):
            connection.execute("DELETE FROM stay")
            connection.executemany("INSERT INTO stay VALUES (?)", ((number,) for number in numbers))
            connection.execute(f"DELETE FROM {table} WHERE id NOT IN (SELECT id FROM stay)")
        self._layout, self._brokers = None, ((), np.zeros(0, np.int64))

    def _named(self, kind: str, names: tuple[str, ...], connection: sqlite3.Connection) -> Ints:
        new = [name for name in names if (kind, name) not in self._names]
        for name in new:
            self._names[kind, name] = self._number("names")
        rows = ((self._names[kind, name], kind, name) for name in new)
        connection.executemany("INSERT OR REPLACE INTO names VALUES (?, ?, ?)", rows)
        return np.array([self._names[kind, name] for name in names], np.int64)

    def _ranged(self, keys: list[tuple[int, int, int]], connection: sqlite3.Connection) -> Ints:
        new = [key for key in keys if key not in self._ranges]
        for key in new:
            self._ranges[key] = self._number("ranges")
        connection.executemany(
            "INSERT OR REPLACE INTO ranges VALUES (?, ?, ?, ?)", ((self._ranges[key], *key) for key in new)
        )
        return np.array([self._ranges[key] for key in keys], np.int64)

    def _number(self, table: str) -> int:
        number = self._next[table]
        self._next[table] += 1
        return number
