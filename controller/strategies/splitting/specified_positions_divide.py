"""Cut a bundle at given positions.

Pulsar: org.apache.pulsar.common.naming.SpecifiedPositionsBundleSplitAlgorithm
"""

from dataclasses import dataclass

from controller.model.decision import Reason
from controller.model.load import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecifiedPositionsDivide:
    """See the module docstring.

    As defaultNamespaceBundleSplitAlgorithm it has no positions, so it splits nothing; the same is true in Pulsar.
    """

    name = "specified_positions_divide"

    #: Positions on the ring, in any order; those outside of a bundle are ignored for it.
    at: tuple[int, ...] = ()
    #: Also cut a bundle that has only one topic, or none.
    force: bool = False

    @property
    def needs_topic_detail(self) -> bool:
        """Only to count the topics."""
        return not self.force

    def cuts(
        self,
        lower: int,
        upper: int,
        positions: Ints,
        load: Floats,  # noqa: ARG002
    ) -> tuple[int, ...] | Reason:
        """The positions inside the bundle, ascending; a position given twice is returned twice, and later refused.

        NoPositions where none is given at all, or none inside.
        """
        if not self.at:
            return Reason.NO_POSITIONS
        if not self.force and len(positions) < 2:
            return Reason.TOO_FEW_TOPICS
        return tuple(sorted(cut for cut in self.at if lower < cut < upper)) or Reason.NO_POSITIONS
