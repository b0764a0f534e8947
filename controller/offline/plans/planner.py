"""Makes the requested plan for the present cluster, and notes what is not possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from controller.model.errors import SettingsError, TrimtabError
from controller.model.load import Ints
from controller.model.names import is_broker_own, is_system_owned, namespace_of
from controller.model.some_of import some_of
from controller.offline.plans.filters import describe_filters_against, filters_against, named
from controller.offline.plans.named_moves import better_or_worse, broker_named, named_moves
from controller.offline.plans.plan_time import PlanTime, plan_time
from controller.offline.plans.shortfall import shortfall
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import own_bundles_on
from controller.planning.checking.checker import flaws
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.from_view import MappedProblem, unexplained
from controller.planning.objective import highest, load_after, loads
from controller.planning.plans.plan import BALANCE, DRAIN, EMPTY, FILL, JOIN, REMOVE, RESTART, Plan, PlanKind, PlanStep
from controller.planning.plans.plan_steps import (
    MAX_MOVES,
    PlanLimits,
    emptied_step,
    empty_step,
    fill_step,
    given_step,
    named_step,
    restart_steps,
    spread_step,
)
from controller.planning.plans.rightsizing import removable
from controller.planning.plans.waves import WaveLimits, WavePace
from controller.planning.problem import RATE_SHARE, BalanceProblem, CertifiedPlan, PlannedMove
from controller.planning.solving.frontier import FURTHER_MOVES, numbers_of_moves, plans_by_moves
from controller.wire.readable import counted

#: Kinds of plans that are wrong if they do not know of a broker -> what is planned, for a sentence.
_OF_EVERY_BROKER: Final[Mapping[PlanKind, str]] = {RESTART: "a rolling restart", REMOVE: "a removal of brokers"}
#: Maximum number of bundles that stay, or of impossible named moves, for which the filter in the way is determined.
_EXPLAINED: Final = 100
#: Maximum number of namespaces that are named.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The request for a plan."""

    kind: PlanKind = BALANCE
    #: Names of brokers to drain or to fill.
    brokers: tuple[str, ...] = ()
    #: Of a balance: the highest usage as a multiple of the mean.
    to: float = 1.05
    #: Of a rolling restart: one failure domain at a time, not one broker.
    by_zone: bool = False
    #: Of a removal: the number of brokers.
    number: int = 0
    #: Of a balance: these moves (bundle, owner, destination), as far as they are possible, and no others.
    moves: tuple[tuple[str, str, str], ...] | None = None
    #: Of a balance: these moves (bundle, destination), which a person named, and no others.
    named: tuple[tuple[str, str], ...] = ()
    max_moves: int = MAX_MOVES
    #: Producers and consumers that reconnect in a second, at most; None: any number.
    connections_per_second: float | None = None
    #: Those that reconnect at once are at most as many as that allows in so many seconds; None: as between two waves.
    burst_seconds: float | None = None
    #: Moves of a wave, and off and to any one broker in it.
    wave_moves: int = 20
    wave_moves_per_broker: int = 10
    #: Brokers that get bundles of drained ones stay at or below this share of their capacity.
    ceiling: float = 1.0
    #: Resources whose usage stays with the brokers when bundles leave, by name: bundles are spread by message rate.
    own: tuple[str, ...] = ()
    #: Of a balance: also how low other numbers of moves would bring the highest usage.
    frontier: bool = False
    #: In words, for the plan.
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCluster:
    """A verified plan, with notes about it."""

    plan: Plan
    notes: tuple[str, ...]
    #: Of a rolling restart, a drain, a removal: no plan that does the same has fewer moves.
    fewest_moves: int | None = None
    #: Bundles that stay on brokers that are to be empty, or whose named move is not possible, by name, and why.
    stays: dict[str, str] = field(default_factory=dict)
    #: Bundles of trimtab's own topics on brokers that are to be empty, and the command that moves each.
    by_hand: dict[str, str] = field(default_factory=dict)
    #: Of a balance, where it was asked for: plans of at most so many moves, ascending, verified.
    frontier: tuple[CertifiedPlan, ...] = ()
    #: How long it takes, with the budgets and windows of the controllers.
    time: PlanTime


class _Planner:
    """A plan in progress."""

    def __init__(self, source: PlanSource, request: PlanRequest) -> None:
        if request.kind in _OF_EVERY_BROKER:
            source.require_every_broker(_OF_EVERY_BROKER[request.kind])
        self._source, self._mapped, self._own = source, *_mapped_problem(source, request)
        self._request = request
        if not len(source.view.brokers) or not self._mapped.problem.resources:
            raise TrimtabError("the load has no broker with a usage and a limit that count, so nothing can be planned")
        is_ordered = bool(request.named) or request.moves is not None
        self._allowed = source.allowed(self._mapped, must_leave=is_ordered)
        self._closing = source.closing(self._mapped)
        self._pace = WavePace(
            wave_seconds=2 * source.period_ms / 1000,
            connections_per_second=request.connections_per_second,
            burst_seconds=request.burst_seconds,
        )
        self._limits = PlanLimits(
            max_moves=request.max_moves,
            waves=WaveLimits(
                max_moves=request.wave_moves,
                max_per_broker=request.wave_moves_per_broker,
                max_connections=self._pace.max_connections,
            ),
            ceiling=request.ceiling,
            effort=source.shedder.effort,
        )
        self.fewest: int | None = None
        #: Bundles of named moves that are not possible, and why.
        self._not_possible: dict[str, str] = {}
        self.notes = [*source.notes, *source.note_on_missing, *_assumed(self._mapped), *_by_rate(self._own, request)]

    @property
    def problem(self) -> BalanceProblem:
        return self._mapped.problem

    def steps(self) -> Sequence[PlanStep]:
        request, rows = self._request, self._rows(self._request.brokers)
        if request.named:
            return [self._named(named_moves(self._source, self._mapped, request.named))]
        if request.moves is not None:
            return [given_step(self.problem, self._given_moves(request.moves), self._limits, self._allowed)]
        if request.kind == BALANCE:
            spread = spread_step(self.problem, self._limits, request.to, self._allowed)
            self.notes += shortfall(self._source, self._mapped, spread, request.to, self._limits)
            return [spread]
        if request.kind == DRAIN:
            self.fewest = int(np.isin(self.problem.owner, rows).sum())
            return [empty_step(self.problem, rows, self._limits, self._closing)]
        if request.kind == JOIN:
            return [fill_step(self.problem, rows, self._limits, allowed=self._allowed)]
        if request.kind == RESTART:
            return self._restart()
        return self._removal()

    def _given_moves(self, moves: Sequence[tuple[str, str, str]]) -> list[PlannedMove]:
        view = self._source.view
        row_of = {view.bundles.names[row]: at for at, row in enumerate(self._mapped.rows.tolist())}
        codes = view.brokers.code_of
        return [PlannedMove(row_of[bundle], codes[source], codes[to]) for bundle, source, to in moves]

    def _named(self, moves: Sequence[PlannedMove]) -> PlanStep:
        problem = self.problem
        step = named_step(problem, moves, self._limits, self._allowed)
        done = frozenset(step.moves)
        for move in moves:
            if move not in done:
                self._not_possible[self._bundle_name(move.bundle)] = self._why_not(move, step)
        before, after = (highest(load_after(problem, of), problem.capacity) for of in ((), step.moves))
        self.notes.append(better_or_worse(before, after))
        return step

    def _bundle_name(self, bundle: int) -> str:
        return self._source.view.bundles.names[int(self._mapped.rows[bundle])]

    def _why_not(self, move: PlannedMove, step: PlanStep) -> str:
        """Why the named *move* is not in *step*."""
        to = self._source.view.brokers.names[move.destination]
        if self._allowed is None or self._allowed(move.bundle, step.moves)[move.destination]:
            return f"{to} has no room for it"
        if len(self._not_possible) >= _EXPLAINED:
            return f"filters do not let it go to {to}"
        return describe_filters_against(self._source, self._mapped, move, step.moves)

    def _restart(self) -> Sequence[PlanStep]:
        restart, steps = restart_steps(self.problem, self._groups(), self._limits, self._closing)
        self.fewest = restart.fewest
        again = int((restart.times() > 1).sum())
        max_times = int(restart.times().max(initial=0))
        twice = "twice" if max_times == 2 else f"up to {max_times} times"
        self.notes.append(
            f"{counted(restart.moves, 'move')} to empty every broker once ({restart.fewest} is the minimum)"
            + (f"; {counted(again, 'bundle')} {'moves' if again == 1 else 'move'} {twice}" if again else "")
        )
        if steps and steps[-1].task == FILL:
            back = len(restart.steps[-1].moves)
            self.notes.append(
                f"the last step fills the broker that was restarted last, with {counted(len(steps[-1].moves), 'move')}"
                f" (bringing its own bundles back would take {back})"
            )
        return steps

    def _removal(self) -> Sequence[PlanStep]:
        request = self._request
        if request.number >= len(self._source.view.brokers):
            raise SettingsError(f"--remove {request.number}: the cluster has {len(self._source.view.brokers)} brokers")
        removed = removable(self.problem, request.number, request.ceiling, self._closing)
        if not removed.is_complete:
            no_room = sum(each.no_room for each in removed.stuck)
            why = {
                f"{counted(no_room, 'bundle')} fit nowhere below {request.ceiling:.0%} of the capacity": no_room,
                f"filters let {counted(len(removed.stuck) - no_room, 'bundle')} go nowhere": len(removed.stuck)
                - no_room,
            }
            raise TrimtabError(
                f"no way was found to remove {counted(request.number, 'broker')}: {len(removed.brokers)} can go; of the"
                f" next one {' and '.join(text for text, number in why.items() if number)}"
            )
        self.fewest = int(np.isin(self.problem.owner, list(removed.brokers)).sum())
        return [emptied_step(self.problem, removed.brokers, removed.emptied, self._limits, self._closing)]

    def _groups(self) -> list[list[int]]:
        names = self._source.view.brokers.names
        if not self._request.by_zone:
            return [[row] for row in range(len(names))]
        zones: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            zone = self._source.view.policies.failure_domain.get(name)
            if zone is None:
                raise TrimtabError(f"--zone: broker {name} is in no failure domain; set one, or leave --zone out")
            zones.setdefault(zone, []).append(row)
        return [zones[zone] for zone in sorted(zones)]

    def _rows(self, names: Sequence[str]) -> list[int]:
        return sorted({broker_named(self._source, name) for name in names})

    def plan(self) -> Plan:
        steps, view = self.steps(), self._source.view
        nonempty = [step for step in steps if step.waves or step.stuck or step.task == EMPTY]
        plan = Plan(
            cluster=self._source.cluster,
            interval=view.as_of_ms,
            kind=self._request.kind,
            asked=self._request.text,
            period_ms=self._source.period_ms,
            pace=self._pace,
            ceiling=self._request.ceiling,
            own=self._own,
            fits=tuple(self._mapped.fits.items()),
            brokers=view.brokers.names,
            bundles=tuple(view.bundles.names[row] for row in self._mapped.rows.tolist()),
            problem=self.problem,
            msg_rate=self._source.msg_rate(self._mapped),
            steps=tuple(nonempty),
        )
        wrong = plan_flaws(plan)
        if wrong:
            raise TrimtabError(f"no plan is given: the checker rejects the one that was found: {'; '.join(wrong[:3])}")
        return plan

    def frontier(self, plan: Plan) -> tuple[CertifiedPlan, ...]:
        """Plans of other numbers of moves than *plan* has, up to as many as bring all brokers to the mean usage."""
        if not self._request.frontier:
            return ()
        problem, effort, moves = self.problem, self._limits.effort, len(plan.moves)
        [to_the_mean] = plans_by_moves(problem, [MAX_MOVES], effort, self._allowed)
        numbers = numbers_of_moves(len(to_the_mean.moves), also=(moves, moves + FURTHER_MOVES))
        plans = tuple(plans_by_moves(problem, numbers, effort, self._allowed))
        wrong = [flaw for each in plans for flaw in flaws(problem, each.moves, each.certificate)]
        if wrong:
            raise TrimtabError(f"no frontier is given: the checker rejects one of its plans: {'; '.join(wrong[:3])}")
        return plans

    def stays(self, plan: Plan) -> dict[str, str]:
        """Why bundles stay on brokers that are to be empty, or where a named move would take them from."""
        reasons = dict(self._not_possible)
        for number, step in enumerate(plan.steps):
            owner = plan.before(number).owner
            allowed = None if self._closing is None else self._closing(step.brokers, owner)
            for bundle in step.stuck:
                if allowed is None or allowed(bundle, step.moves).any():
                    why = f"no other broker has room for it below {plan.ceiling:.0%}"
                else:
                    why = "filters allow no other"
                    if len(reasons) < _EXPLAINED:
                        why += self._without_one(bundle, step, owner)
                reasons[plan.bundles[bundle]] = why
        return reasons | self._guarded({row for step in plan.steps if step.task == EMPTY for row in step.brokers})

    def _without_one(self, bundle: int, step: PlanStep, owner: Ints) -> str:
        """Without which filter *bundle* could leave the brokers that *step* empties."""
        against = filters_against(self._source, self._mapped, bundle, step, owner)
        return f": without {' or '.join(map(named, against))} there is one" if against else ""

    def _guarded(self, emptied: set[int]) -> dict[str, str]:
        """Bundles that must not move although their broker is *emptied*, and why."""
        view, source, reasons, pulsars = self._source.view, self._source, dict[str, str](), 0
        on_them = np.isin(view.bundles.broker, list(emptied)) & source.guarded & ~source.own
        for row in np.flatnonzero(on_them).tolist():
            name = view.bundles.names[row]
            if is_system_owned(namespace_of(name)):
                pulsars += not is_broker_own(namespace_of(name))
            else:
                reasons[name] = source.why_guarded(row)
        if pulsars:
            self.notes.append(
                f"{counted(pulsars, 'bundle')} of Pulsar's own namespaces are not moved: Pulsar moves them when the"
                " broker stops"
            )
        return reasons


def _by_hand(source: PlanSource, plan: Plan) -> dict[str, str]:
    """The bundles of trimtab's own topics on brokers that *plan* empties, and the command that moves each off them.

    They go to the broker that the plan leaves the emptiest, of those that are not emptied in the same step.
    """
    owner = plan.before(len(plan.steps)).owner
    ascending = np.argsort(highest(loads(plan.problem, owner), plan.problem.capacity), kind="stable").tolist()
    commands = dict[str, str]()
    for step in plan.steps:
        others = [plan.brokers[row] for row in ascending if row not in step.brokers]
        if step.task == EMPTY and others:
            own = own_bundles_on(source, [plan.brokers[row] for row in step.brokers], others[0])
            commands |= {each.bundle: each.command for each in own}
    return commands


def _mapped_problem(source: PlanSource, request: PlanRequest) -> tuple[MappedProblem, tuple[str, ...]]:
    """The problem that *request* is about, and the resources whose usage counts as the brokers' own.

    Of a balance, these are all that no load explains, where such a one is the scarcest: nothing else would move.
    """
    recently = request.kind != BALANCE or request.moves is not None or bool(request.named)
    mapped = source.problem(request.kind, request.own, recently_unloaded_too=recently)
    own = unexplained(mapped) if request.kind == BALANCE and not request.own else ()
    if not own:
        return mapped, request.own
    by_rate = source.problem(request.kind, own, recently_unloaded_too=recently)
    return (by_rate, own) if RATE_SHARE in by_rate.problem.resources else (mapped, ())


def _by_rate(own: Sequence[str], request: PlanRequest) -> list[str]:
    """That bundles are spread by message rate although nobody asked for it; nothing where that is not so."""
    if not own or request.own:
        return []
    return [
        f"the brokers' {' and '.join(own)} usage does not follow their messages (do they share hosts?): planned by"
        " message rate"
    ]


def _assumed(mapped: MappedProblem) -> list[str]:
    """Notes on how *mapped* counts the bundles."""
    if not mapped.assumed:
        return []
    of, options = " and ".join(mapped.assumed), " ".join(f"--own {name.replace(' ', '-')}" for name in mapped.assumed)
    return [
        f"trimtab cannot tell how much {of} leaves with a bundle, so it assumes all of it; if brokers share their"
        f" machines, add {options}: then bundles are spread by message rate"
    ]


def _undescribed(source: PlanSource) -> list[str]:
    """That bundles stay because nothing is known of their namespaces, with the names of these."""
    bundles = source.view.bundles
    rows = np.flatnonzero(source.undescribed)
    names = sorted({bundles.namespaces[row] for row in np.unique(bundles.namespace[rows]).tolist()})
    if not names:
        return []
    return [
        f"{counted(len(rows), 'bundle')} {'stays' if len(rows) == 1 else 'stay'}: the policies of"
        f" {'namespace' if len(names) == 1 else 'namespaces'} {some_of(names, _NAMED)} are not known yet"
        " (no namespace_state record; guardrails.move_undescribed)"
    ]


def planned_cluster(source: PlanSource, request: PlanRequest) -> PlannedCluster:
    """The plan that *request* describes, of *source*, verified.

    TrimtabError where there is none; SettingsError where a name is not known.
    """
    planner = _Planner(source, request)
    plan = planner.plan()
    stays = planner.stays(plan)
    planner.notes += _undescribed(source)
    frontier = planner.frontier(plan)
    return PlannedCluster(
        plan=plan,
        notes=tuple(planner.notes),
        fewest_moves=planner.fewest,
        stays=stays,
        by_hand=_by_hand(source, plan),
        frontier=frontier,
        time=plan_time(plan, source.policy.limits, source.maintenance, source.memory.issued.values()),
    )
