"""The named views of an interval: what each part that decides on unloads sees of the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from controller.cycle.commands import Issuing
from controller.cycle.ordered import drained_below_the_mean
from controller.cycle.protected import ProtectedBundles
from controller.model.decision import Unload
from controller.model.load import Bools, ClusterView
from controller.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundViews:
    """Made once an interval; no function takes one of these views and returns another one.

    Shedders know one reason to leave a bundle where it is: it was unloaded a short while ago.  So protected bundles
    look to them as if they had been; the verdicts then name the guardrail.
    """

    #: As the brokers report it: what moves count against budgets, and where placements begin.
    cluster: ClusterView
    #: For the membership rebalancer, which leaves protected bundles where they are.
    rebalancer: ClusterView
    #: What the membership rebalancer, and a person's plan, must not move.
    protected: ProtectedBundles
    #: What the shedder must not move: also the bundles of brokers whose unloads have no result yet.
    protected_from_shedder: ProtectedBundles
    _unseen_by_shedder: frozenset[str]

    @classmethod
    def of(cls, cluster: ClusterView, protected: ProtectedBundles, memory: Memory, issuing: Issuing) -> Self:
        """Those of *cluster*, of which *protected* bundles stay."""
        waits = issuing.policy.balancer.waits_for_results
        givers = {command.source for command in memory.in_flight.values() if command.action == "unload"}
        return cls(
            cluster=cluster,
            rebalancer=cluster.with_guarded(protected.mask),
            protected=protected,
            protected_from_shedder=protected.and_bundles_of(givers) if waits else protected,
            _unseen_by_shedder=drained_below_the_mean(cluster.brokers, issuing.controls),
        )

    def shedder(self, moves: Sequence[Unload], held_back: Bools | None = None) -> ClusterView:
        """For the shedder, which must not choose the bundles of *moves*, nor those *held_back*, (bundles,)."""
        guarded = self.protected_from_shedder.mask
        guarded[[self.cluster.bundles.code_of[unload.bundle] for unload in moves]] = True
        if held_back is not None:
            guarded |= held_back
        view = self.cluster.with_guarded(guarded)
        return view.without_data(self._unseen_by_shedder) if self._unseen_by_shedder else view
