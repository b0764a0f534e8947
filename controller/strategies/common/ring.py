"""Bundles by number along the hash ring, for whole columns of topics.

Pulsar: NamespaceBundles.getBundle
"""

from collections.abc import Sequence

import numpy as np

from controller.model.load import Ints


def bundles_at(positions: Ints, boundaries: Sequence[int]) -> Ints:
    """The bundle that holds each of *positions*, -1 where none does: the ring's very end, in Pulsar too."""
    found = np.searchsorted(np.array(boundaries, np.int64), positions, side="right") - 1
    return np.where(found < len(boundaries) - 1, found, -1)


def rows_that_moved(before: Ints, old: Sequence[int], after: Ints, new: Sequence[int]) -> Ints:
    """Where bundle ``before[i]`` of the *old* boundaries and ``after[i]`` of the *new* ones are not the same range."""
    was, now = _ends(old), _ends(new)
    return np.flatnonzero((was[before] != now[after]).any(axis=1))


def _ends(boundaries: Sequence[int]) -> Ints:
    """(bundles + 1, 2) lower and upper end of each bundle; the last row, which -1 finds, is no bundle."""
    edges = np.array(boundaries, np.int64)
    return np.append(np.stack([edges[:-1], edges[1:]], axis=1), [[-1, -1]], axis=0)
