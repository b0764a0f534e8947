"""The bundles that a shard knows, and Pulsar's stored averages of those not seen yet: one row each, sorted by name."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.state.averages import BundleAverages, advance
from controller.model.load import DEFAULT_LOAD, LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, Bools, Floats, Ints
from controller.model.records import BundleSeed

#: ``seen`` of a bundle that was in no closed interval yet.
NEVER = -1
#: Maximum number of seeds in a shard; the last written are kept.
MAX_SEEDS: Final = 500_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Seeds(BundleAverages):
    """Averages that Pulsar stored: bundles that are seen for the first time start from them."""

    #: Number of closed intervals when the bundle was last written.
    written: Ints

    @classmethod
    def of(cls, seeds: Iterable[BundleSeed], closes: int = 0) -> Self:
        """*seeds*, one for each bundle, written when *closes* intervals were closed."""
        ordered = sorted(seeds, key=lambda seed: seed.bundle)

        def column(values: list[Any], kind: type[np.generic], *shape: int) -> NDArray[Any]:
            return np.array(values, kind).reshape(len(ordered), *shape)

        return cls(
            names=[seed.bundle for seed in ordered],
            short_samples=column([min(seed.short_term_samples, SHORT_TERM_SAMPLES) for seed in ordered], np.int64),
            long_samples=column([min(seed.long_term_samples, LONG_TERM_SAMPLES) for seed in ordered], np.int64),
            short_term=column([seed.short_term for seed in ordered], np.float64, 4),
            long_term=column([seed.long_term for seed in ordered], np.float64, 4),
            written=np.full(len(ordered), closes, np.int64),
        )

    def with_later(self, seeds: Mapping[str, BundleSeed], closes: int) -> Self:
        """A copy with *seeds* added, which replace those of the same bundles."""
        if not seeds:
            return self
        merged, _ = self.without(seeds).merged(type(self).of(seeds.values(), closes))
        newest_first = np.argsort(-merged.written, kind="stable")
        mask = np.zeros(len(merged), np.bool_)
        mask[newest_first[:MAX_SEEDS]] = True
        return merged.keep(mask)

    def without(self, bundles: Collection[str]) -> Self:
        """A copy without those of *bundles* (a set or a mapping, for fast lookup)."""
        return self.keep(np.array([name not in bundles for name in self.names], np.bool_))

    def since(self, closes: int) -> Self:
        """A copy without those last written when fewer than *closes* intervals were closed."""
        return self.keep(self.written >= closes)


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

    def with_names(self, names: Iterable[str]) -> tuple[Self, Ints]:
        """This table with new bundles for those *names* names it lacks; and (n,) the new row of each old row."""
        new = self.of([name for name in dict.fromkeys(names) if name not in self.row_of])
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
        matches = [(row, seed_of[self.names[row]]) for row in new if self.names[row] in seed_of]
        if not matches:
            return self
        rows, of = np.array(matches, np.int64).T
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
