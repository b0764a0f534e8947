"""Stored averages of Pulsar for bundles that were not seen yet, which start from them; one row for each bundle."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from controller.aggregate.kept.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from controller.aggregate.kept.bundle_averages import BundleAverages
from controller.model.load import Ints
from controller.model.records import BundleSeed

#: Maximum number of rows in a shard; the last written are kept.
MOST: Final = 500_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Seeds(BundleAverages):
    """The stored averages."""

    #: Number of closed intervals when the bundle was last written.
    written: Ints

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

    def with_later(self, seeds: Mapping[str, BundleSeed], closes: int) -> Self:
        """A copy with *seeds* added, which replace those of the same bundles."""
        if not seeds:
            return self
        merged, _ = self.without(seeds).merged(type(self).of(seeds.values(), closes))
        newest_first = np.argsort(-merged.written, kind="stable")
        kept = np.zeros(len(merged), np.bool_)
        kept[newest_first[:MOST]] = True
        return merged.keep(kept)

    def without(self, bundles: Collection[str]) -> Self:
        """A copy without those of *bundles* (a set or a mapping, for fast lookup)."""
        return self.keep(np.array([name not in bundles for name in self.names], np.bool_))

    def since(self, closes: int) -> Self:
        """A copy without those last written when fewer than *closes* intervals were closed."""
        return self.keep(self.written >= closes)
