"""Averages of bundles whose history in the replay differs from the recorded one: cut here only, or there only."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.state.bundles import KnownBundles
from controller.model.load import Ints

#: Columns that snapshots and KnownBundles both have.
_COLUMNS: Final = ("short_term", "long_term", "short_samples", "long_samples")


class OwnAverages:
    """See the module docstring."""

    def __init__(self) -> None:
        self._known = KnownBundles.empty()

    def begin(self, parent: str, parts: Sequence[str]) -> None:
        """The new bundles *parts* take the place of *parent*."""
        self._known, _ = self._without([parent, *parts]).with_names(parts)

    def add(self, bundles: Sequence[str]) -> None:
        """New bundles, unless they are known already."""
        self._known, _ = self._known.with_names(bundles)

    def go_on(self, before: Snapshot, bundles: Sequence[str]) -> None:
        """Go on with the averages that *bundles*, which the recording does not have any more, had *before*."""
        row_of = {name: row for row, name in enumerate(before.names)} if bundles else {}
        names = [bundle for bundle in bundles if bundle in row_of]
        if not names:
            return
        table, _ = self._without(names).with_names(names)
        columns = {name: array.copy() for name, array in table.arrays().items()}
        for name in names:
            at = table.names.index(name)
            for column in _COLUMNS:
                columns[column][at] = getattr(before, column)[row_of[name]]
        self._known = KnownBundles(names=table.names, **columns)

    def in_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """*snapshot* with these averages, which take the load of its interval."""
        if not len(self._known):
            return snapshot
        row_of = {name: row for row, name in enumerate(snapshot.names)}
        pairs = [(at, row_of[name]) for at, name in enumerate(self._known.names) if name in row_of]
        if not pairs:
            return snapshot
        at, rows = np.array(pairs, np.int64).T
        self._known = self._known.advanced(at, snapshot.load[rows], snapshot.interval)
        return replace(snapshot, **self._columns(snapshot, at, rows))

    def _columns(self, snapshot: Snapshot, at: Ints, rows: Ints) -> dict[str, Any]:
        columns = {}
        for name in _COLUMNS:
            columns[name] = getattr(snapshot, name).copy()
            columns[name][rows] = getattr(self._known, name)[at]
        return columns

    def _without(self, bundles: Sequence[str]) -> KnownBundles:
        names = set(bundles)
        return self._known.keep(np.array([name not in names for name in self._known.names], np.bool_))
