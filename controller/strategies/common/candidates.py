"""What filters leave of the brokers for a bundle, and which of them excluded one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from controller.model.load import ClusterView, Ints
from controller.strategies.protocols import Anchor, Filter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """What filters leave of the brokers, as ascending rows."""

    #: The bundle may go to no other ones.
    allowed: Ints
    #: By all filters; the allowed ones again where they leave none.
    kept: Ints
    #: Each filter, and what it left.
    steps: tuple[tuple[Filter, Ints], ...]

    def excludes(self, broker: int) -> Filter | None:
        """The first filter that excluded *broker*, or None when it is kept."""
        if (self.kept == broker).any():
            return None
        return next((step for step, left in self.steps if not (left == broker).any()), None)

    def confines(self, broker: int) -> Filter | None:
        """The first filter because of which no broker but *broker* is allowed, or None when another one is."""
        return None if (self.allowed != broker).any() else self._leaves_no_other(broker)

    def leaves_only(self, broker: int) -> Filter | None:
        """The first filter that left no broker but *broker*, or None when others are kept."""
        return None if (self.kept != broker).any() else self._leaves_no_other(broker)

    def _leaves_no_other(self, broker: int) -> Filter | None:
        return next((step for step, left in self.steps if not (left != broker).any()), None)

    def anchored(self, view: ClusterView, bundle: int) -> Filter | None:
        """The first filter that finds *bundle* (a row) better off where it is, or None."""
        for step, _ in self.steps:
            if _is_anchor(type(step)) and not cast("Anchor", step).may_leave(view, bundle, self.allowed):
                return step
        return None


@lru_cache(maxsize=64)
def _is_anchor(kind: type) -> bool:
    """Kept, as to ask that of a protocol takes longer than most filters."""
    return issubclass(kind, Anchor)


def first_against(view: ClusterView, bundle: int, broker: int, filters: Sequence[Filter]) -> Filter | None:
    """The first of *filters* that excludes *broker* (a row) for *bundle* (a row); None: it may go there.

    Every filter narrows down what the one before left, and nothing is given back: one that leaves no broker at all is
    against each.  Pulsar: TransferShedder.isTransferable.
    """
    left = np.arange(len(view.brokers), dtype=np.int64)
    for step in filters:
        left = step.keep(view, bundle, left)
        if not (left == broker).any():
            return step
    return None
