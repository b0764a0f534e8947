"""The bundles of a namespace after a split.  Brokers make them; trimtab reads them from the brokers.

Pulsar: org.apache.pulsar.common.naming.NamespaceBundleFactory.splitBundles
"""

from collections.abc import Sequence
from itertools import pairwise

from controller.model.bundle_ranges import divided
from controller.model.names import can_split


def with_split(boundaries: Sequence[int], lower: int, upper: int, cuts: Sequence[int]) -> tuple[int, ...] | None:
    """The *boundaries* of a namespace after its bundle from *lower* to *upper* was split at *cuts*.

    None if the namespace has no such bundle.  Raises TrimtabError as ``divided`` does.
    """
    if can_split(lower, upper) and (lower, upper) not in pairwise(boundaries):
        return None
    ends = divided(lower, upper, cuts)
    at = list(boundaries).index(lower)
    return (*boundaries[:at], *ends, *boundaries[at + 2 :])
