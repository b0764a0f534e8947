"""The protocols of strategies.  A strategy is a frozen dataclass: its fields are its options, its methods are pure.

The same view and memory give the same answer, on any machine.  Rows are looked at in name order, the lower name wins a
tie unless the vectors show otherwise, and nothing reads a clock.

The protocols that are ``runtime_checkable`` are capabilities, which a strategy may have besides its role.  Ask for
them by ``controller.strategies.common.capabilities``, which looks through wrappers.  A strategy that wraps another one
has it as ``wrapped``.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from controller.model.decision import Reason, SplitDecision, UnloadDecision
from controller.model.load import ClusterView, Floats, Ints
from controller.model.strategy_memory import StrategyMemory

M = TypeVar("M", bound=StrategyMemory)


class SplitThresholds(NamedTuple):
    """The values above which a split policy examines a bundle; infinity: never because of that value."""

    topics: float
    sessions: float
    msg_rate: float
    #: Bytes/s.
    throughput: float


class Shedder(Protocol[M]):
    """Chooses the bundles to unload.  Pulsar: LoadSheddingStrategy."""

    def initial_memory(self) -> M:
        """The memory before the first interval."""
        ...

    def decide(self, view: ClusterView, memory: M) -> tuple[UnloadDecision, M]:
        """The bundles to unload, with a verdict for everything that was examined."""
        ...


@runtime_checkable
class HurriedShedder(Protocol):
    """A shedder that can tell which brokers need relief at once."""

    def hurries(self, view: ClusterView) -> bool:
        """Whether a broker is so full now that its bundles have to leave at once."""
        ...

    def relieving(self) -> "Shedder[Any]":
        """The same shedder, restricted to relieving such brokers."""
        ...


@runtime_checkable
class PairedShedder(Protocol):
    """A shedder whose planned destinations hold with one placement alone.  Another placement places its bundles."""

    #: The class name of that placement.
    paired_placement: ClassVar[str]


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


@runtime_checkable
class Observer(Protocol[M]):
    """A shedder or placement whose memory changes once an interval, whether or not it is asked in it."""

    def observed(self, view: ClusterView, memory: M) -> M:
        """The memory after the interval of *view*; called again for the same interval, it returns *memory*."""
        ...


@runtime_checkable
class StickyPlacement(Protocol):
    """A placement that remembers the broker it chose, and keeps to it where the broker is overloaded."""

    @property
    def keeps_its_choice(self) -> bool:
        """False: it does not."""
        ...


@runtime_checkable
class PlanAwarePlacement(Protocol):
    """A placement that is also asked where the shedder planned a destination, and may choose another broker.

    The plan is ``ClusterView.planned``.  Without such a placement the planned broker is taken if filters leave it.
    """

    @property
    def plan_aware(self) -> bool:
        """False: it is not."""
        ...


class Filter(Protocol):
    """Says which brokers a bundle may go to at all.  Pulsar: BrokerFilter, and the steps of selectBroker."""

    #: Why it excludes a broker.
    reason: ClassVar[Reason]
    #: Whether it also holds where it leaves no broker, or where all that are left are overloaded.  Other filters are
    #: ignored there.
    binding: ClassVar[bool]

    def keep(self, view: ClusterView, bundle: int, candidates: Ints) -> Ints:
        """The rows of *candidates* (ascending broker rows) that *bundle* (a row) may go to."""
        ...


@runtime_checkable
class Anchor(Protocol):
    """A filter that can also decide that a bundle stays on its broker, unless a person has it leave."""

    def may_leave(self, view: ClusterView, bundle: int, candidates: Ints) -> bool:
        """Whether *bundle* (a row) may leave its broker; *candidates*: the rows that binding filters allow."""
        ...


class SplitPolicy(Protocol[M]):
    """Chooses the bundles to split.  Pulsar: BundleSplitStrategy, NamespaceBundleSplitStrategy."""

    @property
    def thresholds(self) -> SplitThresholds:
        """Above which values it may split a bundle, or has a verdict on its topics."""
        ...

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

    def cuts(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...] | Reason:
        """Positions to cut a bundle at, ascending and at least one, or the reason why there are none.

        *positions* on the ring and *load* (topics, 4) are the bundle's topic detail, empty where not needed.  Positions
        that cannot be carried out, which Pulsar's algorithms find at times, are refused by
        controller.strategies.common.cutting.
        """
        ...


class TopicBundleAssignment(Protocol):
    """Assigns topics to bundles. Pulsar: TopicBundleAssignmentStrategy (PIP-255)."""

    def assign(self, topics: Sequence[str], boundaries: Sequence[int]) -> Ints:
        """The bundle of each of *topics* (full names, of one namespace): i lies from boundary i up to i + 1.

        -1 where there is none: Pulsar has no bundle for position 0xffffffff.
        """
        ...

    def on_bundle_split(
        self, topics: Sequence[str], assigned: Ints, old: Sequence[int], new: Sequence[int]
    ) -> tuple[Ints, Ints]:
        """The bundles of *topics* after their namespace's boundaries went from *old* to *new*, and which topics move.

        The first are those *assigned* where nothing changed; the second are the rows of *topics* whose bundle now has
        another range.  Pulsar: NamespaceBundleSplitListener.
        """
        ...
