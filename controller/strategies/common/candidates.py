"""The brokers that the filters leave for a bundle, and which filter excluded a broker."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.errors import StrategyError
from controller.model.load import ClusterView, Ints
from controller.strategies.common.blamed import raised_by
from controller.strategies.common.capabilities import capability
from controller.strategies.protocols import Anchor, Filter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The brokers that the filters leave, as ascending rows."""

    #: The brokers that the binding filters leave: the bundle may go to no other.
    allowed: Ints
    #: The brokers that all filters leave; the allowed ones where all filters together leave none.
    remaining: Ints
    #: Each filter, and the brokers that were left after it.
    steps: tuple[tuple[Filter, Ints], ...]

    def excludes(self, broker: int) -> Filter | None:
        """The first filter that excluded *broker*, or None when it is kept."""
        if (self.remaining == broker).any():
            return None
        return next((step for step, remaining in self.steps if not (remaining == broker).any()), None)

    def confines(self, broker: int) -> Filter | None:
        """The first filter that left no broker but *broker*, if no other one is allowed; None when another one is."""
        return None if (self.allowed != broker).any() else self._leaves_no_other(broker)

    def leaves_only(self, broker: int) -> Filter | None:
        """The first filter that left no broker but *broker*, if no other one is kept; None when another one is."""
        return None if (self.remaining != broker).any() else self._leaves_no_other(broker)

    def _leaves_no_other(self, broker: int) -> Filter | None:
        return next((step for step, remaining in self.steps if not (remaining != broker).any()), None)

    def anchored(self, view: ClusterView, bundle: int) -> Filter | None:
        """The first filter that wants *bundle* (a row) to stay on its broker, or None."""
        return next((step for step, _ in self.steps if keeps_in_place(step, view, bundle, self.allowed)), None)


def keeps_in_place(step: Filter, view: ClusterView, bundle: int, allowed: Ints) -> bool:
    """Whether the filter *step* wants *bundle* (a row) to stay; *allowed*: the brokers that binding filters leave."""
    anchor: Anchor | None = capability(step, Anchor)
    if anchor is None:
        return False
    try:
        return not anchor.may_leave(view, bundle, allowed)
    except (StrategyError, MemoryError):
        raise
    except Exception as error:
        raise raised_by(step, "may_leave", error) from error


def left_by(step: Filter, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
    """The rows of *candidates* that the filter *step* leaves for *bundle* (a row).

    As in a block of ``Blamed``, which would take as long as most filters do.
    """
    try:
        return step.keep(view, bundle, candidates)
    except (StrategyError, MemoryError):
        raise
    except Exception as error:
        raise raised_by(step, "keep", error) from error


def first_against(view: ClusterView, bundle: int, broker: int, filters: Sequence[Filter]) -> Filter | None:
    """The first of *filters* that excludes *broker* (a row) for *bundle* (a row); None: it may go there.

    Each filter is asked about the brokers that the one before left.  One that leaves no broker excludes them all.
    Pulsar: TransferShedder.isTransferable.
    """
    remaining = np.arange(len(view.brokers), dtype=np.int64)
    for step in filters:
        remaining = left_by(step, view, bundle, remaining)
        if not (remaining == broker).any():
            return step
    return None
