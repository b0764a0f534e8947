"""How even a cluster can be with how many moves: PeakShedder's plans, what is proved of them, and the best ones."""

from collections.abc import Iterator

from controller.bench.balance import cluster
from controller.bench.exact import solved, with_prices
from controller.planning.from_view import Counted, map_problem
from controller.planning.solving.bounds import mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits
from controller.wire.answers.bench import FrontierAnswer

#: What brokers of the bench's clusters use.
_COUNTED = Counted(weights={"cpu": 1.0, "bandwidth in": 1.0, "bandwidth out": 1.0})
#: HiGHS may look so long for the best plan of one number of moves.
_SECONDS = 10.0


def frontier(
    brokers: int, bundles: int, highest: int, *, seed: int, uneven: bool, exact: bool
) -> Iterator[FrontierAnswer]:
    """The plans of at most 0, 1, ... *highest* moves for one of the bench's clusters; *exact*: with HiGHS."""
    view = cluster(brokers, bundles, uneven=uneven, seed=seed)
    problem = map_problem(view, view.recently_unloaded, _COUNTED).problem
    mean = mean_level(problem)
    for max_moves in range(highest + 1):
        plan = planned(problem, SearchLimits(max_moves=max_moves))
        certificate = with_prices(problem, plan.certificate) if exact else plan.certificate
        best = solved(problem, max_moves, seconds=_SECONDS) if exact else None
        yield FrontierAnswer(
            max_moves=max_moves,
            moves=len(plan.moves),
            reached=certificate.reached / mean,
            bound=certificate.bound / mean,
            kind=certificate.kind,
            gap=certificate.gap,
            best_found=None if best is None else best.reached / mean,
            best_bound=None if best is None else best.bound / mean,
        )
