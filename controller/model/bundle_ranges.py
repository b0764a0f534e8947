"""Ranges of bundles before and after a split, computed as Pulsar does from the positions of a split algorithm.

The boundaries of a namespace are strictly ascending; bundle i ranges from boundary i up to boundary i + 1.

Pulsar: org.apache.pulsar.common.naming.NamespaceBundleFactory.splitBundles
"""

from collections.abc import Sequence
from itertools import pairwise

from controller.model.errors import TrimtabError
from controller.model.names import can_split


def equal_cuts(lower: int, upper: int, parts: int) -> tuple[int, ...]:
    """Positions that divide a range into *parts* of equal size, rounded down; the last part gets the remainder."""
    size = (upper - lower) // parts
    return tuple(lower + i * size for i in range(1, parts))


def divided(lower: int, upper: int, cuts: Sequence[int]) -> tuple[int, ...]:
    """All boundaries of the bundle from *lower* to *upper* after a split at *cuts*, *lower* and *upper* included.

    Raises TrimtabError if the split is impossible: the range is too small, or a cut lies outside it, or a cut is
    given twice.
    """
    if not can_split(lower, upper):
        raise TrimtabError(f"0x{lower:08x}_0x{upper:08x} cannot be split further")
    ends = (lower, *sorted(cuts), upper)
    if any(left >= right for left, right in pairwise(ends)):
        at = ", ".join(f"0x{cut:08x}" for cut in sorted(cuts))
        raise TrimtabError(
            f"0x{lower:08x}_0x{upper:08x} cannot be split at {at}: every position must lie inside the range, only once"
        )
    return ends
