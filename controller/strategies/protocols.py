"""The shapes of a strategy: one file, one frozen dataclass of options, one pure ``decide``.

Same view and memory, same answer, on any machine: rows are looked at in name order, ties go to the
lower name unless the vectors show otherwise, and nothing reads a clock.
"""

from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from controller.model.decision import Reason, SplitDecision, UnloadDecision
from controller.model.load import ClusterView, Floats, Ints
from controller.model.memory import StrategyMemory

M = TypeVar("M", bound=StrategyMemory)


class Shedder(Protocol[M]):
    """Chooses the bundles to unload.  Pulsar: LoadSheddingStrategy."""

    def initial_memory(self) -> M:
        """The memory before the first interval."""
        ...

    def decide(self, view: ClusterView, memory: M) -> tuple[UnloadDecision, M]:
        """The bundles to unload, with a verdict for everything looked at."""
        ...


class Placement(Protocol[M]):
    """Chooses a broker for a bundle.  Pulsar: ModularLoadManagerStrategy."""

    def initial_memory(self) -> M:
        """The memory before the first placement."""
        ...

    def acceptable(self, view: ClusterView, bundle: int, candidates: Ints, memory: M) -> tuple[Ints, M]:
        """The rows of *candidates* (ascending broker rows) that *bundle* (a row) may go to, all equally good.

        Pulsar picks one of them at random; the cycle picks by its seed.
        """
        ...


class Filter(Protocol):
    """Says which brokers a bundle may go to at all.  Pulsar: BrokerFilter, and the steps of selectBroker."""

    #: Why it excludes a broker.
    reason: ClassVar[Reason]
    #: Whether its answer stands where it leaves no broker, and where all that are left are overloaded; filters of
    #: which that is not true are then ignored.
    binding: ClassVar[bool]

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The rows of *candidates* (ascending broker rows) that *bundle* (a row) may go to."""
        ...


@runtime_checkable
class Anchor(Protocol):
    """A filter that may also find that a bundle had better stay where it is."""

    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        """Whether *bundle* (a row) may leave its broker, *candidates* (rows) being open to it by binding filters."""
        ...


class SplitPolicy(Protocol[M]):
    """Chooses the bundles to split.  Pulsar: BundleSplitStrategy."""

    def initial_memory(self) -> M:
        """The memory before the first interval."""
        ...

    def decide(self, view: ClusterView, memory: M) -> tuple[SplitDecision, M]:
        """The bundles to split, with a verdict for every bundle over a threshold."""
        ...


class SplitAlgorithm(Protocol):
    """Computes where to cut a bundle.  Pulsar: NamespaceBundleSplitAlgorithm."""

    @property
    def name(self) -> str:
        """Pulsar's name for it, as broker.conf and the admin API spell it."""
        ...

    @property
    def needs_topic_detail(self) -> bool:
        """Whether it looks at the bundle's topics."""
        ...

    def boundaries(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...] | None:
        """The full list of boundaries, *lower* and *upper* included, or None for no split.

        *positions* and *load* (topics, 4) are the bundle's topic detail, empty where not needed.
        """
        ...
