"""How even a cluster can be with how many moves: PeakShedder's plans, what is proved of them, and the best ones."""

from collections.abc import Iterator
from dataclasses import dataclass

from controller.planning.from_view import Counted, map_problem
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from tests.measure.balance import cluster
from tests.measure.exact import solved, with_prices

#: What brokers of the bench's clusters use.
_COUNTED = Counted(weights={"cpu": 1.0, "bandwidth in": 1.0, "bandwidth out": 1.0})
#: HiGHS may look so long for the best plan of one number of moves.
_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """The plan of at most so many moves; levels are multiples of the mean usage."""

    max_moves: int
    moves: int
    #: The highest usage over brokers and resources after the plan; no plan of so many moves is below the bound.
    reached: float
    bound: float
    #: The bound that says so: docs/objective.md.
    kind: str
    #: How far reached is above bound, as a share of it.
    gap: float
    #: Of HiGHS, with exact: the best plan that it found in its time, and the level that no plan is below.
    best_found: float | None
    best_bound: float | None


def frontier(
    brokers: int, bundles: int, highest: int, *, seed: int, uneven: bool, exact: bool
) -> Iterator[FrontierPoint]:
    """The plans of at most 0, 1, ... *highest* moves for one of the bench's clusters; *exact*: with HiGHS."""
    view = cluster(brokers, bundles, uneven=uneven, seed=seed)
    problem = map_problem(view, view.recently_unloaded, _COUNTED).problem
    mean = mean_level(problem)
    for max_moves in range(highest + 1):
        plan = planned(problem, SearchLimits(max_moves=max_moves))
        certificate = with_prices(problem, plan.certificate) if exact else plan.certificate
        best = solved(problem, max_moves, seconds=_SECONDS) if exact else None
        yield FrontierPoint(
            max_moves=max_moves,
            moves=len(plan.moves),
            reached=certificate.reached / mean,
            bound=certificate.bound / mean,
            kind=certificate.kind,
            gap=certificate.gap,
            best_found=None if best is None else best.reached / mean,
            best_bound=None if best is None else best.bound / mean,
        )
