"""The bundles that a shard knows, with their averages: one row for each bundle, sorted by name."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.kept.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, advance
from controller.aggregate.kept.seeds import Seeds
from controller.model.load import DEFAULT_LOAD, Bools, Floats, Ints

#: ``seen`` of a bundle that was in no closed interval yet.
NEVER = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownBundles:
    """Averages of every bundle within its time to live.  Pulsar: BundleData."""

    names: list[str]
    #: Number of samples in the averages, capped; 0 for a new bundle.
    short_samples: Ints
    long_samples: Ints
    #: (n, 4) msg/s and bytes/s.
    short_term: Floats
    long_term: Floats
    #: The last T at which a roster broker listed the bundle, or NEVER.
    seen: Ints

    def __len__(self) -> int:
        return len(self.names)

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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name -> numeric column, to be stored."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "names"}

    def keep(self, mask: Bools) -> Self:
        """Only the rows where *mask*, (n,), is True."""
        names = [name for name, kept in zip(self.names, mask.tolist(), strict=True) if kept]
        return type(self)(names=names, **{k: a[mask] for k, a in self.arrays().items()})

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
        stay = np.arange(len(self), dtype=np.int64)
        if not new.names:
            return self, stay
        names = self.names + new.names
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        columns = {
            k: np.concatenate([a, b])[order]
            for (k, a), b in zip(self.arrays().items(), new.arrays().values(), strict=True)
        }
        moved = np.empty(len(order), np.int64)
        moved[order] = np.arange(len(order))
        return type(self)(names=[names[i] for i in order.tolist()], **columns), moved[stay]

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
