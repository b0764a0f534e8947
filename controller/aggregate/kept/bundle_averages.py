"""Averages of bundles in columns: what the bundles that a shard knows and Pulsar's stored averages have in common."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from controller.model.load import Bools, Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class BundleAverages:
    """One row for each bundle, sorted by name; a stored state has the columns in the order of the fields.

    Pulsar: BundleData.
    """

    names: list[str]
    #: Number of samples in the averages, capped; 0 for a new bundle.
    short_samples: Ints
    long_samples: Ints
    #: (n, 4) msg/s and bytes/s.
    short_term: Floats
    long_term: Floats

    def __len__(self) -> int:
        return len(self.names)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name -> numeric column, to be stored."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "names"}

    def keep(self, mask: Bools) -> Self:
        """Only the rows where *mask*, (n,), is True."""
        if mask.all():
            return self
        names = [name for name, kept in zip(self.names, mask.tolist(), strict=True) if kept]
        return type(self)(names=names, **{k: a[mask] for k, a in self.arrays().items()})

    def merged(self, other: Self) -> tuple[Self, Ints]:
        """The rows of this table and of *other*, of other bundles; and of each the row it was, this table's first."""
        names = self.names + other.names
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        columns = {
            k: np.concatenate([a, b])[order]
            for (k, a), b in zip(self.arrays().items(), other.arrays().values(), strict=True)
        }
        return type(self)(names=[names[i] for i in order.tolist()], **columns), order
