"""Place a bundle on any broker: what AvgShedder does with bundles that have no planned destination.

AvgShedder plans where a bundle goes when it unloads it (strategies/shedding/avg_shedder), and the plan is part of the
command.  Only a bundle without a plan, or whose planned broker may not take it, is placed here.  Pulsar then takes the
CRC32 of a random number modulo the number of candidates, so every candidate is as good as any other.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.AvgShedder, as ModularLoadManagerStrategy
"""

from dataclasses import dataclass

from controller.model.load import ClusterView, Ints
from controller.model.memory import NoMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgShedder:
    """See the module docstring.  It has the name of the shedder, as one class is both in Pulsar."""

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def acceptable(
        self,
        view: ClusterView,  # noqa: ARG002  load makes no difference
        bundle: int,  # noqa: ARG002
        candidates: Ints,
        memory: NoMemory,
    ) -> tuple[Ints, NoMemory]:
        """All *candidates*."""
        return candidates, memory
