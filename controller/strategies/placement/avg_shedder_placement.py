"""Place a bundle on any broker: the half of AvgShedder for bundles without a plan.

Where a bundle is to go is planned when it is unloaded (strategies/shedding/avg_shedder.py), and the plan travels in the
command.  Only a bundle without a plan, or whose planned broker may not have it, gets here: Pulsar then takes the CRC32
of a random number modulo the number of candidates, so that every candidate is as good as any other.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.AvgShedder, as ModularLoadManagerStrategy
"""

from dataclasses import dataclass

from controller.model.load import ClusterView, Ints
from controller.model.memory import NoMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgShedder:
    """See the module docstring.  It goes by the name of the shedder, as one class is both in Pulsar."""

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
