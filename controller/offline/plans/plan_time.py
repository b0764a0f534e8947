"""How long a plan takes: `trimtab apply` and the controllers, decision by decision, with their budgets and windows.

The budgets are the cycle's own.  Assumed is that every command has its result in the next interval, that each check
passes, and that nothing else uses the budgets.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.guardrails.listing import Rooms
from controller.cycle.limits import Limits
from controller.model.memory import Destination, Issued
from controller.offline.plans.blockers import describe_budget, max_connections, never_issued
from controller.offline.plans.moves import NamedMove, named_moves
from controller.planning.plans.plan import Plan
from controller.settings.maintenance import Maintenance
from controller.wire.readable import duration

#: A plan that stands still for longer than that is followed no further: no window lasts longer.
_LONGEST_MS: Final = 8 * 86_400_000
#: Windows begin and end with a minute.
_MINUTE_MS: Final = 60_000
#: Maximum number of reported reasons that make a plan longer.
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveTime:
    """When a wave is carried out, in seconds from the beginning of its step."""

    #: The wave before is done, and the next decision may issue this one.
    ready: float
    #: Its first move is issued; None: none ever is.
    begins: float | None = None
    #: Its last result is there; None: some of its moves are never issued.
    ends: float | None = None
    #: Which budgets and windows delay it; "": none.
    delayed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTime:
    """How long the steps of a plan take, each from the beginning of its `trimtab apply` to its last result."""

    #: Seconds of each step.
    steps: tuple[float, ...]
    #: For each step, its waves.
    waves: tuple[tuple[WaveTime, ...], ...]
    #: What makes them longer, and how long they would take without; "": nothing does.
    slowed: str = ""
    #: Moves that are not issued while the settings are as they are, and why, a sentence each.
    never: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long all steps take; what a person does between them is not counted."""
        return sum(self.steps)


def plan_time(plan: Plan, limits: Limits, maintenance: Maintenance, used: Iterable[Issued] = ()) -> PlanTime:
    """How long *plan* takes if `trimtab apply` begins with the interval of its load.

    *used*: what counts against the budgets of the rolling window before it.
    """
    before = sorted(used, key=lambda each: each.interval)
    walk, free = _Walk(plan, limits, maintenance, before), _Walk(plan, Limits(), Maintenance(), ())
    waves = walk.steps()
    free.steps()
    steps, least = walk.seconds, sum(free.seconds)
    slowed = ""
    if sum(steps) > least and walk.blockers:
        because = " and ".join(text for text, _ in walk.blockers.most_common(_MAX_NAMED))
        slowed = f"{duration(sum(steps))} instead of {duration(least)}, because of {because}"
    return PlanTime(steps=tuple(steps), waves=tuple(waves), slowed=slowed, never=tuple(walk.never))


class _Walk:
    """The decisions of a plan, one after the other."""

    def __init__(self, plan: Plan, limits: Limits, maintenance: Maintenance, used: Collection[Issued]) -> None:
        """*used*: what counts against the budgets of the rolling window before the plan, by interval."""
        self._plan, self._limits, self._maintenance = plan, limits, maintenance
        self._now = plan.interval
        self._max_connections = max_connections(limits)
        self._window = deque(used)
        #: No window opens before, epoch ms.
        self._opens = 0
        self._ledger = Ledger(limits, used, ())
        #: The brokers that bundles went to; they are taken to have listed them by the next decision.
        self._listed: dict[str, Destination] = {}
        #: What held moves back, and in how many decisions; and moves that are not issued, a sentence each.
        self.blockers: Counter[str] = Counter()
        self.never: list[str] = []
        #: Seconds of each step so far.
        self.seconds: list[float] = []

    def steps(self) -> list[tuple[WaveTime, ...]]:
        """The waves of each step."""
        return [self._step(named_moves(self._plan, step)) for step in self._plan.steps]

    def _step(self, waves: Sequence[Sequence[NamedMove]]) -> tuple[WaveTime, ...]:
        started = self._now
        # The first decision is one that knows of the plan; from then on each second one has moves.
        at, times = started + 2 * self._plan.period_ms, list[WaveTime]()
        is_stuck = False
        for wave in waves:
            if is_stuck:
                times.append(WaveTime(ready=(at - started) / 1000))
                continue
            at, time, is_stuck = self._wave(wave, at, started)
            times.append(time)
        self.seconds.append((self._now - started) / 1000)
        return tuple(times)

    def _wave(self, wave: Sequence[NamedMove], at: int, started: int) -> tuple[int, WaveTime, bool]:
        """Issue *wave* from the interval *at* on, in a step that was *started*, epoch ms.

        Returns the interval of the next decision with moves, the wave's time, and whether the plan stands still.
        """
        ready, begins, blockers = at, None, self.blockers.copy()
        waiting = [move for move in wave if not self._is_never(move)]
        is_whole, is_stuck = len(waiting) == len(wave), False
        while waiting:
            issued = self._issued(at, waiting)
            waiting = [move for move in waiting if move not in issued]
            if issued:
                begins = (at - started) / 1000 if begins is None else begins
                self._now = at + self._plan.period_ms
            elif at - self._now > _LONGEST_MS:
                days = _LONGEST_MS // 86_400_000
                self.never += [f"{move.bundle} is not issued for {days} days" for move in waiting]
                is_whole, is_stuck = False, True
                break
            at += self._until_next(issued) if issued else self._until_another_try(at)
        delayed_by = " and ".join(text for text, _ in (self.blockers - blockers).most_common(_MAX_NAMED))
        ends = (self._now - started) / 1000 if is_whole else None
        return at, WaveTime(ready=(ready - started) / 1000, begins=begins, ends=ends, delayed_by=delayed_by), is_stuck

    def _is_never(self, move: NamedMove) -> bool:
        if move.connections <= self._max_connections:
            return False
        why = never_issued(move, self._limits)
        self.never += [f"{move.bundle} {why}"] if why else []
        return bool(why)

    def _issued(self, at: int, moves: Sequence[NamedMove]) -> list[NamedMove]:
        """Those of *moves* that the decision of the interval *at* issues."""
        forbidden = self._maintenance.forbids(at)
        if forbidden:
            self.blockers[f"guardrails.maintenance ({forbidden})"] += 1
            self._opens = at + _MINUTE_MS
            return []
        issued_now = list[Issued]()
        while self._window and self._window[0].interval <= at - self._limits.window_ms:
            issued_now.append(self._window.popleft())
        self._ledger = ledger = self._ledger.of_next_interval(issued_now, Rooms(self._listed, (), self._limits, at))
        issued = [move for move in moves if ledger.try_charge(move.bundle, move.issued(at)) is None]
        self._window.extend(move.issued(at) for move in issued)
        for verdict in ledger.verdicts():
            self.blockers[describe_budget(verdict, self._limits.window_ms)] += 1
        for broker in (move.destination for move in issued):
            bundles = self._listed[broker].listed if broker in self._listed else 0
            self._listed[broker] = Destination(listed=bundles + 1)
        return issued

    def _until_next(self, issued: Sequence[NamedMove]) -> int:
        """From a decision with moves to the next one, ms: results have to come, and clients to reconnect."""
        period, rate = self._plan.period_ms, self._plan.pace.connections_per_second
        connections = sum(move.connections for move in issued)
        return period * max(2, 0 if rate is None else ceil(connections / rate * 1000 / period))

    def _until_another_try(self, at: int) -> int:
        """From the interval *at*, in which nothing was issued, to the next one in which something may be, ms."""
        both, again = 2 * self._plan.period_ms, self._opens
        if again <= at and self._window:
            again = self._window[0].interval + self._limits.window_ms
        return both * max(1, ceil((again - at) / both))
