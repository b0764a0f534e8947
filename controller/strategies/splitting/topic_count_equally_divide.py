"""Cut a bundle so that both halves hold as many topics.

Pulsar: org.apache.pulsar.common.naming.TopicCountEquallyDivideBundleSplitAlgorithm
"""

from dataclasses import dataclass

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Floats, Ints
from controller.model.option import option


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCountEquallyDivide:
    """See the module docstring.

    Pulsar cuts halfway between the two topics in the middle, rounded down.  If these are neighbours on the ring, the
    left one goes to the right half.  If it lies at the bundle's first position, or if both have the same position,
    Pulsar may refuse the cut.
    """

    name = "topic_count_equally_divide"
    needs_topic_detail = True

    fixed: bool = option(
        "trimtabTopicCountSplitFixedBoundary",
        default=False,
        meaning="topic_count_equally_divide: never part a topic from its half; where the two in the middle lie at one"
        " place, cut beside the nearest that do not",
    )

    def cuts(
        self,
        lower: int,  # noqa: ARG002
        upper: int,
        positions: Ints,
        load: Floats,  # noqa: ARG002
    ) -> tuple[int, ...] | Reason:
        """One cut; TooFewTopics where there are not two topics to part."""
        if len(positions) < 2:
            return Reason.TOO_FEW_TOPICS
        ordered = np.sort(positions)
        middle = len(ordered) // 2
        if not self.fixed:
            left, right = int(ordered[middle - 1]), int(ordered[middle])
            return (left + (right - left) // 2,)
        # There is a cut between two different positions, unless it would be the end of the bundle.
        partings = np.flatnonzero((ordered[:-1] < ordered[1:]) & (ordered[:-1] + 1 < upper)) + 1
        if len(partings) == 0:
            return Reason.TOO_FEW_TOPICS
        nearest = int(partings[np.abs(partings - middle).argmin()])
        left, right = int(ordered[nearest - 1]), int(ordered[nearest])
        return (min(left + (right - left) // 2 + 1, upper - 1),)
