"""Running averages of bundles, over a capped number of samples, in columns.

Pulsar: org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData.update
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from controller.model.load import Bools, Floats, Ints


def advance(samples: Ints, average: Floats, x: Floats, max_samples: int) -> tuple[Ints, Floats]:
    """Add one sample to every average: ``((n - 1) * average + x) / n``, where n is at most *max_samples*.

    ``samples`` is (n,); ``average`` and ``x`` are (n, 4) in msg/s and bytes/s.  Returns the new samples and averages.
    The first sample replaces the initial average, as in Pulsar.
    """
    count = np.minimum(samples + 1, max_samples)
    n = count[:, None].astype(np.float64)
    moved = (n - 1) * average
    # In place: writing three arrays of this size takes longer than the arithmetic.
    moved += x
    moved /= n
    return count, moved


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
        names = [name for name, is_in in zip(self.names, mask.tolist(), strict=True) if is_in]
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
