"""Which bundle of a namespace holds which positions on the hash ring, for whole columns of topics.

Pulsar: NamespaceBundles.getBundle
"""

from collections.abc import Sequence

import numpy as np

from controller.model.load import Ints


def bundles_at(positions: Ints, boundaries: Sequence[int]) -> Ints:
    """The bundle that holds each of *positions*; -1 for the last position of the ring, which no bundle holds."""
    rows = np.searchsorted(np.array(boundaries, np.int64), positions, side="right") - 1
    return np.where(rows < len(boundaries) - 1, rows, -1)


def rows_that_moved(before: Ints, old: Sequence[int], after: Ints, new: Sequence[int]) -> Ints:
    """The rows whose bundle *before*, of the *old* boundaries, has another range than *after*, of the *new* ones."""
    was, now = _ends(old), _ends(new)
    return np.flatnonzero((was[before] != now[after]).any(axis=1))


def _ends(boundaries: Sequence[int]) -> Ints:
    """(bundles + 1, 2) lower and upper end of each bundle; the last row is no bundle: -1 finds it."""
    edges = np.array(boundaries, np.int64)
    return np.append(np.stack([edges[:-1], edges[1:]], axis=1), [[-1, -1]], axis=0)
