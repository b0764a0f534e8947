"""Where the filters let a bundle go, when other bundles of the same plan are already on their way."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from controller.model.load import Bools, ClusterView, Ints, Preallocated
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.strategies.common.candidates import keeps_in_place, left_by
from controller.strategies.protocols import Filter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Destinations:
    """The brokers that all *filters* leave for a bundle; none where one of them wants it to stay."""

    view: ClusterView
    #: (m,) the view's row of each bundle of the problem.
    rows: Ints
    filters: tuple[Filter, ...]
    #: (n,) brokers that get nothing; None: there are none.
    closed: Bools | None = None

    def closing(self, brokers: Collection[int], owner: Ints | None) -> Allowed:
        """``allowed`` where *brokers* (rows) get nothing, and no filter sees them.

        *owner* (m,) has the bundles of the problem; None: the broker that has them in the view.
        """
        closed = np.zeros(len(self.view.brokers), np.bool_)
        closed[list(brokers)] = True
        view = self.view
        if owner is not None and (owner != view.bundles.broker[self.rows]).any():
            broker = view.bundles.broker.copy()
            broker[self.rows] = owner
            view = replace(view, bundles=replace(view.bundles, broker=broker))
        return replace(self, view=view, closed=closed).allowed

    def allowed(self, bundle: int, moves: Sequence[PlannedMove]) -> Bools:
        """(n,) where *bundle*, a row of the problem, may go after *moves*.

        A filter that does not bind and leaves no broker is ignored, as the load managers do.
        """
        n = len(self.view.brokers)
        everywhere = np.arange(n, dtype=np.int64) if self.closed is None else np.flatnonzero(~self.closed)
        view, row = self._after(moves), int(self.rows[bundle])
        kept = binding = everywhere
        for step in self.filters:
            left = left_by(step, view, row, kept)
            kept = left if len(left) or step.binding else kept
            binding = kept if step.binding else binding
        found = np.zeros(n, np.bool_)
        if not any(keeps_in_place(step, view, row, binding) for step in self.filters):
            found[kept] = True
        return found

    def _after(self, moves: Sequence[PlannedMove]) -> ClusterView:
        if not moves:
            return self.view
        sent = self.view.preallocated
        # A quarter of the time that np.array takes: the filters are asked for each move, with all moves before it.
        bundle, _, to = np.fromiter(chain.from_iterable(moves), np.int64, 3 * len(moves)).reshape(-1, 3).T
        return replace(
            self.view,
            preallocated=Preallocated(
                bundle=np.append(sent.bundle, self.rows[bundle]), broker=np.append(sent.broker, to)
            ),
        )
