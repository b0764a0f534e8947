"""Place a bundle on any broker, and keep to it: what AvgShedder does with bundles that have no planned destination.

AvgShedder plans where a bundle goes when it unloads it (strategies/shedding/avg_shedder), and the plan is part of the
command.  Only a bundle without a plan, or whose planned broker may not take it, is placed here.  Pulsar then takes the
CRC32 of a random number modulo the number of candidates, so every candidate is as good as any other.  It remembers what
it took: while a bundle is on its way to a candidate, or was sent there in this interval, it goes there and nowhere
else, also where that broker is full.

As in Pulsar, unless ``fixed``, a bundle whose data are equal to those of one that was sent goes where that one went.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.AvgShedder, as ModularLoadManagerStrategy
"""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.load import UNOWNED, ClusterView, Ints
from controller.model.memory import NoMemory
from controller.strategies.common import options
from controller.strategies.common.equal_data import data_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgShedder:
    """See the module docstring.  It has the name of the shedder, as one class is both in Pulsar."""

    keeps_its_choice: ClassVar[bool] = True

    fixed: bool = options.avg_shedder_fixed()

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
        """The one of *candidates* that the bundle was sent to, else all *candidates*."""
        sent = [*view.preallocated.pairs(), *view.chosen.pairs()]
        if sent:
            rows = [bundle, *(row for row, _ in sent)]
            key, *keys = rows if self.fixed else data_keys(view.bundles, rows)
            broker = dict(zip(keys, (broker for _, broker in sent), strict=True)).get(key, UNOWNED)
            chosen = candidates[candidates == broker]
            if len(chosen):
                return chosen, memory
        return candidates, memory
