"""How many brokers a cluster needs, and what brokers more or less would change: for ``trimtab plan --add``."""

from collections.abc import Collection
from dataclasses import dataclass

from controller.model.errors import SettingsError, TrimtabError
from controller.offline.plans.source import PlanSource
from controller.planning.objective import highest, loads
from controller.planning.plans.plan import REMOVE
from controller.planning.plans.rightsizing import brokers_needed, with_more_brokers
from controller.planning.solving.bounds import lower_bounds, mean_level
from controller.planning.solving.certify import planned
from controller.planning.solving.limits import SearchLimits

#: Maximum number of moves of the plan that shows what more brokers would change.
_MOVES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rightsizing:
    """What the cluster has, needs, and would have."""

    brokers: int
    #: Highest usage of any broker, and mean usage of the scarcest resource.
    highest: float
    mean: float
    #: A fraction; no fewer brokers keep it, None: no number does; and so many are shown to, None: none was found.
    headroom: float
    needed: int | None
    enough: int | None
    #: The resource that needs the most brokers.
    resource: str
    #: How many brokers more were tried, and the highest usage and the moves then; no placement is below ``bound``.
    added: int = 0
    highest_after: float = 0.0
    moves: int = 0
    bound: float = 0.0


def rightsizing(source: PlanSource, *, headroom: float, added: int, own: Collection[str] = ()) -> Rightsizing:
    """Whether the cluster has the brokers that it needs to keep *headroom*; what *added* more would change.

    *own*: resources whose usage stays with the brokers when bundles leave.

    TrimtabError where a broker of the cluster has no complete report: its load would not be counted.
    """
    source.require_every_broker("a number of brokers")
    problem = source.problem(REMOVE, own, by_rate=False).problem
    if not len(problem.capacity) or not problem.resources:
        raise TrimtabError("the load has no broker with a usage and a limit that count, so nothing can be said")
    if len(problem.capacity) + added > 10_000:
        raise SettingsError(f"--add {added}: a cluster of more than 10,000 brokers is not planned")
    need = brokers_needed(problem, headroom)
    after, moves, bound = 0.0, 0, 0.0
    if added:
        larger = with_more_brokers(problem, added)
        goal = mean_level(larger) * 1.05
        plan = planned(larger, SearchLimits(max_moves=_MOVES, begin=goal, goal=goal, effort=source.shedder.effort))
        after, moves = plan.certificate.reached, len(plan.moves)
        bound = lower_bounds(larger, None)[0].level
    return Rightsizing(
        brokers=len(problem.capacity),
        highest=float(highest(loads(problem, problem.owner), problem.capacity).max()),
        mean=mean_level(problem),
        headroom=headroom,
        needed=need.at_least,
        enough=need.sufficient,
        resource=problem.resources[need.resource],
        added=added,
        highest_after=after,
        moves=moves,
        bound=min(bound, after),
    )
