"""Cut a bundle in the middle of its hash range, wherever its topics lie.

Pulsar: org.apache.pulsar.common.naming.RangeEquallyDivideBundleSplitAlgorithm, NamespaceBundleFactory.canSplitBundle
"""

from dataclasses import dataclass

from controller.model.load import Floats, Ints
from controller.model.names import can_split


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEquallyDivide:
    """See the module docstring."""

    name = "range_equally_divide"
    needs_topic_detail = False

    def boundaries(
        self,
        lower: int,
        upper: int,
        positions: Ints,  # noqa: ARG002
        load: Floats,  # noqa: ARG002
    ) -> tuple[int, ...] | None:
        """``lower``, the middle (rounded down) and ``upper``; None for a range too small to be cut."""
        return (lower, lower + (upper - lower) // 2, upper) if can_split(lower, upper) else None
