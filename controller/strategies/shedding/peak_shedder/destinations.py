"""Where the filters let a bundle go, when other bundles of the same plan are already on their way."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import numpy as np

from controller.model.decision import Reason
from controller.model.load import Bools, ClusterView, Ints, Preallocated
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed
from controller.strategies.common.candidates import keeps_in_place, left_by
from controller.strategies.protocols import Filter

#: What filters with these reasons hold on to are policies of namespaces: no option of broker.conf changes them.
POLICIES: Final = (Reason.ANTI_AFFINITY, Reason.ISOLATION_POLICY)


@dataclass(slots=True)
class _Asked:
    """The moves that were asked about last, their bundles and destinations, and the view after them."""

    moves: Sequence[PlannedMove] = ()
    bundle: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    to: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    view: ClusterView | None = None

    def follow(self, moves: Sequence[PlannedMove]) -> None:
        """Ask about *moves*: mostly the last ones and one more, so only what is new among them becomes columns."""
        same = min(len(self.moves), len(moves))
        if self.moves[:same] != moves[:same]:
            same = 0
        # A quarter of the time that np.array takes.
        new = np.fromiter(chain.from_iterable(moves[same:]), np.int64, 3 * (len(moves) - same)).reshape(-1, 3)
        if len(new) or same < len(self.moves):
            self.bundle, self.to = np.append(self.bundle[:same], new[:, 0]), np.append(self.to[:same], new[:, 2])
            self.moves, self.view = moves[:], None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Destinations:
    """The brokers that all *filters* leave for a bundle; none where one of them wants it to stay."""

    view: ClusterView
    #: (m,) the view's row of each bundle of the problem.
    rows: Ints
    filters: tuple[Filter, ...]
    #: (n,) brokers that get nothing; None: there are none.
    closed: Bools | None = None
    #: A person has the bundles leave: filters limit where they go, and none makes them stay.
    must_leave: bool = False
    _asked: _Asked = field(default_factory=_Asked, init=False)

    def closing(self, closed: Collection[int], owner: Ints | None, *, by_number: bool = True) -> Allowed:
        """``allowed`` where the brokers *closed* (rows) get nothing, and no filter sees them.

        *owner* (m,) has the bundles of the problem; None: the broker that has them in the view.  *by_number*: ask also
        filters that prefer brokers by the number of their bundles or topics.
        """
        shut = np.zeros(len(self.view.brokers), np.bool_)
        shut[list(closed)] = True
        filters = tuple(each for each in self.filters if by_number or each.binding or each.reason in POLICIES)
        view = self.view
        if owner is not None and (owner != view.bundles.broker[self.rows]).any():
            broker = view.bundles.broker.copy()
            broker[self.rows] = owner
            view = replace(view, bundles=replace(view.bundles, broker=broker))
        return replace(self, view=view, closed=shut, filters=filters).allowed

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
        if self.must_leave or not any(keeps_in_place(step, view, row, binding) for step in self.filters):
            found[kept] = True
        return found

    def _after(self, moves: Sequence[PlannedMove]) -> ClusterView:
        if not moves:
            return self.view
        asked, sent = self._asked, self.view.preallocated
        asked.follow(moves)
        if asked.view is None:
            bundle = np.append(sent.bundle, self.rows[asked.bundle])
            asked.view = replace(
                self.view, preallocated=Preallocated(bundle=bundle, broker=np.append(sent.broker, asked.to))
            )
        return asked.view
