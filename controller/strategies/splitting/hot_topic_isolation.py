"""When a bundle is split, give a topic that carries most of its load a bundle of its own.

Halving such a bundle does not help: one half is as hot as the whole was.  A bundle with only the hot topic can be
placed by itself, and the rest stays together.  Every other bundle is cut by the split algorithm.

Pulsar: `pulsar-admin topics get-positions`, then a split at specified positions, by hand.
"""

from dataclasses import dataclass

import numpy as np

from controller.model.decision import Reason
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from controller.model.option import option
from controller.strategies.protocols import SplitAlgorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class HotTopic:
    """What makes a topic hot."""

    percent: int = option(
        "trimtabIsolateHotTopicPercentage",
        default=0,
        unit="%",
        meaning="a bundle that is split, and of whose messages or bytes one topic has at least this share, is cut on"
        " both sides of that topic; 0: never.  The extensible load manager needs trimtabSplitStrategySeveralCuts too",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HotTopicIsolation:
    """A split algorithm around another one; see the module docstring."""

    hot: HotTopic
    otherwise: SplitAlgorithm

    @property
    def wrapped(self) -> SplitAlgorithm:
        """The other one."""
        return self.otherwise

    @property
    def name(self) -> str:
        """That of the other one."""
        return self.otherwise.name

    @property
    def needs_topic_detail(self) -> bool:
        """Always when it is on: without topic detail it cannot know that no topic is hot."""
        return self.hot.percent > 0 or self.otherwise.needs_topic_detail

    def cuts(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...] | Reason:
        """Cuts on both sides of the hot position, or on the side inside the bundle; without one, those of the other.

        Topics at the same position on the ring cannot be separated, so they count as one.  TooFewTopics where there are
        no others.
        """
        place = self._hot_place(positions, load)
        if place is None:
            return self.otherwise.cuts(lower, upper, positions, load)
        if (positions == place).all():
            return Reason.TOO_FEW_TOPICS
        around = tuple(at for at in (place, place + 1) if lower < at < upper)
        return around or self.otherwise.cuts(lower, upper, positions, load)

    def _hot_place(self, positions: Ints, load: Floats) -> int | None:
        """The place with the largest share of messages or bytes, if that is large enough; the lower one of equals."""
        if not self.hot.percent or not len(positions):
            return None
        places, at = np.unique(positions, return_inverse=True)
        share = np.zeros(len(places))
        for column in (load[:, RATE_IN] + load[:, RATE_OUT], load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]):
            of_place = np.bincount(at, column)
            total = of_place.sum()
            if total > 0:
                share = np.maximum(share, of_place / total)
        hottest = int(share.argmax())
        # Without any load no share is large.
        return int(places[hottest]) if share[hottest] > 0 and share[hottest] * 100 >= self.hot.percent else None


def isolating(hot: HotTopic, otherwise: SplitAlgorithm) -> SplitAlgorithm:
    """*otherwise*, with hot topics isolated first where *hot* says so."""
    return HotTopicIsolation(hot=hot, otherwise=otherwise) if hot.percent else otherwise
