"""The bundles that a shard knows, with their averages: one row for each bundle, sorted by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from controller.aggregate.kept.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, advance
from controller.aggregate.kept.bundle_averages import BundleAverages
from controller.aggregate.kept.seeds import Seeds
from controller.model.load import DEFAULT_LOAD, Bools, Floats, Ints

#: ``seen`` of a bundle that was in no closed interval yet.
NEVER = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownBundles(BundleAverages):
    """Averages of every bundle within its time to live."""

    #: The last T at which a roster broker listed the bundle, or NEVER.
    seen: Ints

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Name -> row."""
        return {name: row for row, name in enumerate(self.names)}

    @classmethod
    def empty(cls) -> Self:
        """No bundles."""
        return cls.of([])

    @classmethod
    def of(cls, names: list[str]) -> Self:
        """New bundles *names*: without samples, with Pulsar's default stats."""
        n = len(names)
        default = np.tile(DEFAULT_LOAD, (n, 1))
        zero = np.zeros(n, np.int64)
        return cls(
            names=names,
            short_samples=zero,
            long_samples=zero,
            short_term=default,
            long_term=default,
            seen=np.full(n, NEVER),
        )

    def renewed(self, mask: Bools) -> Self:
        """The rows where *mask*, (n,), is True become new bundles; the others are unchanged."""
        if not mask.any():
            return self
        new = self.of(self.names).arrays()
        columns = {k: np.where(mask.reshape(-1, *[1] * (a.ndim - 1)), new[k], a) for k, a in self.arrays().items()}
        return type(self)(names=self.names, **columns)

    def with_names(self, wanted: Iterable[str]) -> tuple[Self, Ints]:
        """This table with new bundles for those *wanted* names it lacks; and (n,) the new row of each old row."""
        new = self.of([name for name in dict.fromkeys(wanted) if name not in self.row_of])
        if not new.names:
            return self, np.arange(len(self), dtype=np.int64)
        table, order = self.merged(new)
        moved = np.empty(len(order), np.int64)
        moved[order] = np.arange(len(order))
        return table, moved[: len(self)]

    def seeded(self, seeds: Seeds) -> Self:
        """Bundles without samples start from their stored averages in *seeds*."""
        new = np.flatnonzero(self.long_samples == 0).tolist() if len(seeds) else []
        seed_of = {name: i for i, name in enumerate(seeds.names)} if new else {}
        found = [(row, seed_of[self.names[row]]) for row in new if self.names[row] in seed_of]
        if not found:
            return self
        rows, of = np.array(found, np.int64).T
        columns = {k: a.copy() for k, a in self.arrays().items()}
        for name in ("short_samples", "long_samples", "short_term", "long_term"):
            columns[name][rows] = seeds.arrays()[name][of]
        return type(self)(names=self.names, **columns)

    def advanced(self, rows: Ints, load: Floats, interval: int) -> Self:
        """Add one sample, the *load* (rows, 4) of *interval*, to the averages of *rows*."""
        columns = {k: a.copy() for k, a in self.arrays().items()}
        for term, cap in (("short", SHORT_TERM_SAMPLES), ("long", LONG_TERM_SAMPLES)):
            samples, average = columns[f"{term}_samples"], columns[f"{term}_term"]
            samples[rows], average[rows] = advance(samples[rows], average[rows], load, cap)
        columns["seen"][rows] = interval
        return type(self)(names=self.names, **columns)
