"""Place a bundle on any broker: what AvgShedder does with bundles that have no planned destination.

AvgShedder plans where a bundle goes when it unloads it (strategies/shedding/avg_shedder), and the plan is part of the
command.  A bundle without a plan goes to any candidate: Pulsar takes the CRC32 of a random number modulo their number.
What happens to plans differs between versions of Pulsar.

Before 5.0 the choice is kept: while a bundle is on its way to a candidate, or was sent there in this interval, it goes
there and nowhere else, also where that broker is full.  Unless ``fixed``, a bundle whose data are equal to those of one
that was sent goes where that one went.

From 5.0 on (``plans_by_bundle``) a plan is for one bundle and one round.  It gives way where the planned broker is no
candidate, or is overloaded and another candidate is not.  A bundle with a plan never stays on its broker.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.AvgShedder, as ModularLoadManagerStrategy
"""

from dataclasses import dataclass

from controller.model.load import UNOWNED, ClusterView, Ints
from controller.model.resource_usage import ResourceWeights
from controller.model.strategy_memory import NoMemory
from controller.strategies.common import options
from controller.strategies.common.equal_data import data_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgShedder(ResourceWeights):
    """See the module docstring.  It has the name of the shedder, as one class is both in Pulsar."""

    fixed: bool = options.avg_shedder_fixed()
    plans_by_bundle: bool = options.avg_shedder_plans_by_bundle()
    overloaded_percent: int = options.overloaded_percent(
        "with trimtabAvgShedderPlansByBundle: a planned broker above this usage gives way to one that is not"
    )

    @property
    def keeps_its_choice(self) -> bool:
        """Whether it remembers a broker that it chose."""
        return not self.plans_by_bundle

    @property
    def plan_aware(self) -> bool:
        """Whether it may choose another broker than the planned one."""
        return self.plans_by_bundle

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered: the view says which bundles were sent where."""
        return NoMemory()

    def acceptable(
        self,
        view: ClusterView,
        bundle: int,
        candidates: Ints,
        memory: NoMemory,
    ) -> tuple[Ints, NoMemory]:
        """The one of *candidates* that the bundle was sent to or is planned for, else all that may take it."""
        choose = self._by_plan if self.plans_by_bundle else self._by_choice
        return choose(view, bundle, candidates), memory

    def _by_choice(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The broker that the bundle was sent to, or all *candidates*.  Pulsar 4: selectBroker."""
        sent = [*view.preallocated.pairs(), *view.chosen.pairs()]
        if sent:
            rows = [bundle, *(row for row, _ in sent)]
            key, *keys = rows if self.fixed else data_keys(view.bundles, rows)
            broker = dict(zip(keys, (broker for _, broker in sent), strict=True)).get(key, UNOWNED)
            chosen: Ints = candidates[candidates == broker]
            if len(chosen):
                return chosen
        return candidates

    def _by_plan(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The planned broker, or those that may take its place.  Pulsar 5: selectBrokerWithBundleName.

        Where the planned broker is no candidate, Pulsar takes any other one.  Here it is one that is not overloaded, if
        there is one: this is one of the answers that Pulsar may give.
        """
        if view.planned == UNOWNED:
            return candidates
        score = self.usage_of_all(view) * 100
        planned: Ints = candidates[candidates == view.planned]
        if len(planned) and not score[view.planned] > self.overloaded_percent:
            return planned
        others: Ints = candidates[candidates != view.bundles.broker[bundle]]
        healthy: Ints = others[score[others] <= self.overloaded_percent]
        if len(healthy):
            return healthy
        return planned if len(planned) else others
