"""Stored averages of Pulsar for bundles that were not seen yet, which start from them; one row for each bundle."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.kept.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from controller.model.load import Bools, Floats, Ints
from controller.model.records import BundleSeed

#: Maximum number of rows in a shard; the last written are kept.
MOST: Final = 500_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Seeds:
    """The stored averages, sorted by bundle."""

    names: list[str]
    short_samples: Ints
    long_samples: Ints
    #: (n, 4) msg/s and bytes/s.
    short_term: Floats
    long_term: Floats
    #: Number of closed intervals when the bundle was last written.
    written: Ints

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, seeds: Iterable[BundleSeed], closes: int = 0) -> Self:
        """*seeds*, one for each bundle, written when *closes* intervals were closed."""
        found = sorted(seeds, key=lambda seed: seed.bundle)

        def column(values: list[Any], kind: type[np.generic], *shape: int) -> NDArray[Any]:
            return np.array(values, kind).reshape(len(found), *shape)

        return cls(
            names=[seed.bundle for seed in found],
            short_samples=column([min(seed.short_term_samples, SHORT_TERM_SAMPLES) for seed in found], np.int64),
            long_samples=column([min(seed.long_term_samples, LONG_TERM_SAMPLES) for seed in found], np.int64),
            short_term=column([seed.short_term for seed in found], np.float64, 4),
            long_term=column([seed.long_term for seed in found], np.float64, 4),
            written=np.full(len(found), closes, np.int64),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name -> numeric column, to be stored."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "names"}

    def with_later(self, seeds: Mapping[str, BundleSeed], closes: int) -> Self:
        """A copy with *seeds* added, which replace those of the same bundles."""
        if not seeds:
            return self
        old, new = self.without(seeds), type(self).of(seeds.values(), closes)
        names = old.names + new.names
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        columns = {k: np.concatenate([a, new.arrays()[k]])[order] for k, a in old.arrays().items()}
        merged = type(self)(names=[names[i] for i in order.tolist()], **columns)
        newest_first = np.argsort(-merged.written, kind="stable")
        kept = np.zeros(len(names), np.bool_)
        kept[newest_first[:MOST]] = True
        return merged._keep(kept)

    def without(self, bundles: Collection[str]) -> Self:
        """A copy without those of *bundles* (a set or a mapping, for fast lookup)."""
        return self._keep(np.array([name not in bundles for name in self.names], np.bool_))

    def since(self, closes: int) -> Self:
        """A copy without those last written when fewer than *closes* intervals were closed."""
        return self._keep(self.written >= closes)

    def _keep(self, mask: Bools) -> Self:
        if mask.all():
            return self
        names = [name for name, kept in zip(self.names, mask.tolist(), strict=True) if kept]
        return type(self)(names=names, **{k: a[mask] for k, a in self.arrays().items()})
