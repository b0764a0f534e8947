"""Cut a bundle in the middle of its hash range, wherever its topics lie.

Pulsar: org.apache.pulsar.common.naming.RangeEquallyDivideBundleSplitAlgorithm
"""

from dataclasses import dataclass

from controller.model.bundle_ranges import equal_cuts
from controller.model.decision import Reason
from controller.model.load import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEquallyDivide:
    """See the module docstring."""

    name = "range_equally_divide"
    needs_topic_detail = False

    def cuts(
        self,
        lower: int,
        upper: int,
        positions: Ints,  # noqa: ARG002
        load: Floats,  # noqa: ARG002
    ) -> tuple[int, ...] | Reason:
        """The middle, rounded down; of a range of one position its lower end, where nothing can be cut."""
        return equal_cuts(lower, upper, 2)
