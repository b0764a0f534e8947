"""Compares a plan with the present cluster: moves done, moves left, and changes since the plan was made."""

import shlex
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.offline.plans.blockers import never_issued
from controller.offline.plans.filters import describe_filters_against
from controller.offline.plans.moves import NamedMove, named_moves
from controller.offline.plans.source import PlanSource
from controller.planning.checking.wave_checker import wave_flaws
from controller.planning.from_view import MappedProblem
from controller.planning.objective import ROUNDING, highest, load_after, loads
from controller.planning.plans.emptying import full_with
from controller.planning.plans.plan import EMPTY, Plan, PlanStep
from controller.planning.problem import PlannedMove
from controller.planning.sequence import Allowed, among_those_with_room


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBundle:
    """One bundle, its broker, and the command that moves it."""

    bundle: str
    broker: str
    command: str


def own_bundles_on(source: PlanSource, emptied: Collection[str], destination: str) -> list[OwnBundle]:
    """The bundles of trimtab's own topics on the brokers *emptied*; the commands move them to *destination*."""
    bundles, brokers = source.view.bundles, source.view.brokers
    rows = [row for name in emptied if (row := brokers.code_of.get(name)) is not None]
    own = list[OwnBundle]()
    for row in np.flatnonzero(np.isin(bundles.broker, rows) & source.own & bundles.owned).tolist():
        namespace, _, bounds = bundles.names[row].rpartition("/")
        words = ["pulsar-admin", "namespaces", "unload", namespace, "--bundle", bounds]
        words += ["--destinationBroker", destination]
        broker = brokers.names[int(bundles.broker[row])]
        own.append(OwnBundle(bundle=bundles.names[row], broker=broker, command=shlex.join(words)))
    return own


#: A change of a bundle's load below this share of its broker's capacity is none.
_SMALL: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The state of a step of a plan."""

    #: T of the load, epoch ms.
    interval: int
    #: Moves whose bundle is where it is to go; of what was issued, also those whose bundle went elsewhere.
    done: tuple[NamedMove, ...]
    #: The moves that are left, in their waves; none is empty.
    waves: tuple[tuple[NamedMove, ...], ...]
    #: Differences from the plan, a sentence each: the remaining moves must not be carried out.
    changed: tuple[str, ...]
    #: Moves that were issued and whose bundle is not seen on another broker yet.
    unseen: tuple[str, ...]
    #: Notes that do not stop the plan.
    notes: tuple[str, ...]
    #: Bundles that can move and are on a broker that the step is to empty.
    on_emptied: tuple[str, ...]


class _Comparison:
    """Compares one step with the cluster of *source*."""

    def __init__(self, plan: Plan, number: int, source: PlanSource, tolerance: float, issued: Set[str]) -> None:
        self._plan, self._number, self._step = plan, number, plan.steps[number]
        self._source, self._view, self._tolerance, self._issued = source, source.view, tolerance, issued
        self._mapped: MappedProblem = source.problem(plan.kind, plan.own, fits=dict(plan.fits))
        self._row_of = {source.view.bundles.names[row]: at for at, row in enumerate(self._mapped.rows.tolist())}
        self._planned = {plan.bundles[move.bundle]: move for move in self._step.moves}
        self.done, self.changed, self.unseen, self.notes = list[NamedMove](), list[str](), list[str](), list[str]()

    def waves(self) -> tuple[tuple[NamedMove, ...], ...]:
        """The moves that are left; fills the lists."""
        if self._source.cluster != self._plan.cluster:
            self.changed.append(f"the plan is for cluster {self._plan.cluster!r}, not {self._source.cluster!r}")
            return ()
        self.changed += self._silent()
        self.notes += self._own_topics()
        unfinished = tuple(tuple(filter(self._is_unfinished, wave)) for wave in named_moves(self._plan, self._step))
        unfinished = tuple(wave for wave in unfinished if wave)
        self.changed += self._unplanned()
        if not self.changed and not self.unseen:
            self.changed += self._impossible(unfinished)
        return unfinished

    def _is_unfinished(self, move: NamedMove) -> bool:
        """Whether *move* is still to be carried out, and can be; else it is put where it belongs."""
        table, brokers = self._view.bundles, self._view.brokers
        row, issued = table.code_of.get(move.bundle), move.bundle in self._issued
        owner = "" if row is None or not table.owned[row] else brokers.names[int(table.broker[row])]
        if owner == move.destination or (issued and owner and owner != move.source):
            self.done.append(move)
            if owner != move.destination:
                self.notes.append(f"{move.bundle} went to {owner}, and the plan said {move.destination}")
            return False
        if issued:
            self.unseen.append(f"{move.bundle} was unloaded, and is {f'still on {owner}' if owner else 'on no broker'}")
            return False
        why = self._why_not(move, owner)
        self.changed += [f"{move.bundle} {why}"] if why else []
        return not why

    def _why_not(self, move: NamedMove, owner: str) -> str:
        view = self._view
        if not owner:
            return "is on no broker with data: it was split or deleted, or its broker sent no load"
        if owner != move.source:
            return f"is on {owner}, and the plan moves it off {move.source}"
        if move.destination not in view.brokers.code_of:
            return f"is to go to {move.destination}, which is gone or has no data"
        at = self._row_of.get(move.bundle)
        if at is None:
            return f"must not move: {self._source.why_guarded(view.bundles.code_of[move.bundle]) or 'it is on its way'}"
        never = never_issued(move, self._source.policy.limits)
        if never:
            return never
        before, now = self._share(move.bundle), self._share_now(at)
        if abs(now - before) > max(_SMALL, self._tolerance * before):
            return f"takes {now:.1%} of its broker, and the plan says {before:.1%}"
        return ""

    def _share(self, bundle: str) -> float:
        problem, move = self._plan.problem, self._planned[bundle]
        return float((problem.size[move.bundle] / problem.capacity[move.source]).max(initial=0.0))

    def _share_now(self, at: int) -> float:
        problem = self._mapped.problem
        return float((problem.size[at] / problem.capacity[problem.owner[at]]).max(initial=0.0))

    def _silent(self) -> Iterator[str]:
        """Brokers that are to be empty and of which nobody knows whether they are."""
        for row in self._step.brokers if self._step.task == EMPTY else ():
            if self._plan.brokers[row] in self._view.missing:
                yield f"{self._plan.brokers[row]}, which is to be empty, has no data in this interval"

    def _own_topics(self) -> Iterator[str]:
        """Bundles of trimtab's own topics on brokers that are to be empty, and how a person moves them."""
        emptied = [self._plan.brokers[row] for row in self._step.brokers] if self._step.task == EMPTY else []
        others = sorted({*self._view.brokers.names} - {*emptied})
        of_moves = [self._plan.brokers[move.destination] for move in self._step.moves]
        for own in own_bundles_on(self._source, emptied, next(iter([*of_moves, *others]), "")):
            yield f"{own.bundle} holds trimtab's own topics and stays on {own.broker}; to move it: {own.command}"

    def _unplanned(self) -> Iterator[str]:
        """Bundles on a broker that is to be empty, of which the plan does not know."""
        if self._step.task != EMPTY:
            return
        view, known = self._view, {*self._planned, *(self._plan.bundles[row] for row in self._step.stuck)}
        for broker in self._step.brokers:
            row = view.brokers.code_of.get(self._plan.brokers[broker])
            for bundle in [] if row is None else view.bundles.of_broker(row).tolist():
                name = view.bundles.names[bundle]
                if name not in known and not self._source.guarded[bundle]:
                    yield f"{name} is on {self._plan.brokers[broker]}, which is to be empty, and not in the plan"

    def _impossible(self, waves: tuple[tuple[NamedMove, ...], ...]) -> Iterator[str]:
        """Why filters or capacity do not allow the waves, by today's load."""
        step, codes, before = self._step, self._view.brokers.code_of, list[PlannedMove]()
        rows = [codes[name] for row in step.brokers if (name := self._plan.brokers[row]) in codes]
        closing, closed = self._source.closing(self._mapped), rows if step.task == EMPTY else []
        # As for the controllers, how many bundles others have keeps no bundle on a broker that is to be empty.
        # Once a lookup was faster than a move, or a broker has a little more room, others than planned have the fewest.
        allowed = None if closing is None else closing(closed, None, by_number=not closed)
        of_today = list[list[PlannedMove]]()
        for wave in waves:
            of_today.append([])
            for move in wave:
                planned = PlannedMove(self._row_of[move.bundle], codes[move.source], codes[move.destination])
                if not self._may_go(planned, before, allowed, closed):
                    against = describe_filters_against(self._source, self._mapped, planned, before, closed)
                    yield f"{move.bundle}: {against}"
                before.append(planned)
                of_today[-1].append(planned)
        names = self._view.brokers.names
        for flaw in wave_flaws(self._mapped.problem, of_today, self._ceilings()):
            # The checker knows rows.
            yield f"by today's load, {_with_names(flaw, names)}"

    def _may_go(
        self, move: PlannedMove, before: Sequence[PlannedMove], allowed: Allowed | None, closed: list[int]
    ) -> bool:
        """Whether filters let *move* happen by today's load, after the moves *before*.

        Off a broker that is emptied (*closed*), a bundle may also go where none of the brokers *allowed* has room.
        """
        if allowed is None or allowed(move.bundle, before)[move.destination]:
            return True
        closing, problem = self._source.closing(self._mapped), self._mapped.problem
        if closing is None or not closed:
            return False
        load = loads(problem, problem.owner)
        for each in before:
            load[each.destination] += problem.size[each.bundle]
        room = full_with(load, problem.capacity, problem.size[move.bundle]) <= self._plan.ceiling + ROUNDING
        best = among_those_with_room(closing, closed, None, move.bundle, before, room, by_number=False)
        return bool(best[move.destination])

    def _ceilings(self) -> list[float]:
        """How full brokers may be on the way: above their capacity only where they are today, or are to end.

        The plan's own figure is no leave to fill a broker above what any of them has today.
        """
        problem, plan, names = self._mapped.problem, self._plan, self._view.brokers.names
        if self._step.task == EMPTY:
            return [plan.ceiling] * len(names)
        today = highest(loads(problem, problem.owner), problem.capacity)
        after = highest(load_after(plan.before(self._number), self._step.moves), plan.problem.capacity)
        ends = dict(zip(plan.brokers, after.tolist(), strict=True))
        highest_now = float(today.max(initial=0.0))
        return [
            max(1.0, now, min(ends.get(name, 0.0), highest_now))
            for name, now in zip(names, today.tolist(), strict=True)
        ]


def _with_names(flaw: str, names: tuple[str, ...]) -> str:
    words = flaw.split(" ")
    return " ".join(
        names[int(word)] if before == "broker" and word.isdigit() and int(word) < len(names) else word
        for before, word in zip(["", *words], words, strict=False)
    )


def today(plan: Plan, number: int, source: PlanSource, *, tolerance: float, issued: Set[str] = frozenset()) -> Today:
    """How the step *number* (from 0) of *plan* stands in the cluster of *source*.

    *tolerance*: a bundle's load may differ by this share of what the plan says.  *issued*: bundles whose move was
    issued and has a good result.
    """
    comparison = _Comparison(plan, number, source, tolerance, issued)
    waves = comparison.waves()
    return Today(
        interval=source.view.as_of_ms,
        done=tuple(comparison.done),
        waves=waves,
        changed=tuple(comparison.changed),
        unseen=tuple(comparison.unseen),
        notes=tuple(comparison.notes),
        on_emptied=_on_emptied(plan.steps[number], plan, source),
    )


def _on_emptied(step: PlanStep, plan: Plan, source: PlanSource) -> tuple[str, ...]:
    if step.task != EMPTY:
        return ()
    view = source.view
    rows = [row for each in step.brokers if (row := view.brokers.code_of.get(plan.brokers[each])) is not None]
    remaining = np.isin(view.bundles.broker, rows) & ~source.guarded
    return tuple(view.bundles.names[row] for row in np.flatnonzero(remaining).tolist())
