"""The balance problem in numbers: what can move, how much of each resource it takes, and what each broker can carry.

Only nouns.  The search, the bounds and the checker read them; from_view.py makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.model.load import Floats, Ints

#: A resource that spreads messages where usage does not say what bundles take: a broker's share of all messages/s.
RATE_SHARE: Final = "share of the message rate"
MESSAGE_RATE: Final = "message rate"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BalanceProblem:
    """Brokers (n), resources (R), and the bundles (m) that may move."""

    #: Names of the resources, R.
    resources: tuple[str, ...]
    #: (n, R) what each broker can carry, above 0, in the unit of the resource.
    capacity: Floats
    #: (n, R) load that no move changes: bundles that stay, and what the broker uses by itself.
    fixed: Floats
    #: (m, R) load of each bundle that may move; the same on every broker.
    size: Floats
    #: (m,) row of the broker that owns each bundle.
    owner: Ints
    #: (m,) producers and consumers that have to reconnect when the bundle moves.
    connections: Floats
    #: (m,) what a move of the bundle costs: see objective.py.
    disturbance: Floats


class PlannedMove(NamedTuple):
    """One bundle from its owner to another broker; all are rows of the problem."""

    bundle: int
    source: int
    destination: int


#: Kinds of lower bounds: see bounds.py.
MEAN: Final = "mean"
FIXED: Final = "fixed"
PIGEONHOLE: Final = "pigeonhole"
REMOVAL: Final = "removal"
PRICES: Final = "prices"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """What a plan reaches, and a level of utilisation that no plan with as many moves can be below.

    Levels are the highest utilisation over brokers and resources, as shares of the capacity.
    """

    #: As many moves the plan could have.
    max_moves: int
    #: Before the plan, and after it.
    before: float
    reached: float
    #: No plan of at most ``max_moves`` moves ends below this.
    bound: float
    #: Which bound that is, and the resource (a column) that it is about; -1: all of them.
    kind: str
    resource: int = 0
    #: pigeonhole: bundles of at least this load in the resource are counted.
    size: float = 0.0
    #: prices: (n, R) a price for the utilisation of each broker's resource, and a price for a move.
    prices: Floats | None = None
    move_price: float = 0.0

    @property
    def gap(self) -> float:
        """How far above the bound the plan ends, as a share of the bound; 0 is proved to be the best."""
        return 0.0 if self.reached <= self.bound or self.bound <= 0 else self.reached / self.bound - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CertifiedPlan:
    """Moves in the order in which they are to be carried out, and their certificate."""

    moves: Sequence[PlannedMove]
    certificate: Certificate
