"""Carries a step of a plan out: checks it, hands wave after wave to the controllers, and waits for the results.

The controllers issue the commands, with all their guardrails; this process writes no command.  It keeps nothing either:
what was issued is in the journal, and what is in force is with the operator's controls.  So it may end at any time, and
be started again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final

from controller.model.controls import Orders
from controller.offline.plans.blockers import blocked_by
from controller.offline.plans.moves import NamedMove, named_moves
from controller.offline.plans.progress import MoveState, PlanProgress
from controller.offline.plans.restarting import BrokerRestarts, RestartFailedError, StepRestarts
from controller.offline.plans.step_lease import (
    MINUTE_MS,
    PATIENCE,
    STALE,
    PlanHaltedError,
    StepLease,
    StepProgress,
    Surroundings,
    some,
)
from controller.offline.plans.today import Today, today
from controller.planning.plans.plan import Plan
from controller.wire.readable import counted, lasting

#: Intervals for which a bundle that was unloaded may be seen nowhere.
_UNSEEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of carrying a step out."""

    moves: int
    done: int
    notes: tuple[str, ...]
    #: Bundles that are still on a broker that should be empty.
    left_behind: tuple[str, ...] = ()
    #: Brokers that the hook restarted.
    restarted: tuple[str, ...] = ()


def together(steps: Sequence[Applied]) -> Applied:
    """What came of several *steps*."""
    return Applied(
        moves=sum(step.moves for step in steps),
        done=sum(step.done for step in steps),
        notes=tuple(chain.from_iterable(step.notes for step in steps)),
        left_behind=tuple(chain.from_iterable(step.left_behind for step in steps)),
        restarted=tuple(chain.from_iterable(step.restarted for step in steps)),
    )


@dataclass
class PlanRun:
    """One step of a plan, carried out."""

    plan: Plan
    sha256: str
    #: From 0.
    number: int
    around: Surroundings
    #: A bundle's load may differ by this share of what the plan says.
    tolerance: float = 0.25
    #: What restarts the brokers that the step empties; None: a person does.
    restarts: BrokerRestarts | None = None
    #: Whether the step before, and the step after it, are this process's, too: the plan stays in force between them.
    follows: bool = False
    precedes: bool = False
    _notes: list[str] = field(default_factory=list)
    _issued: set[str] = field(default_factory=set)
    #: Since when nothing was issued, or got a result, and nothing explained that, epoch ms; None: it is not so.
    _idle_since: int | None = None
    #: T of the newest decision that was read.
    _decided: int | None = None
    #: Why the last moves that were handed over were not issued.
    _blocked_by: str = ""
    #: Whether the last decision with moves issued none of them.
    _all_blocked: bool = False
    #: Moves that were done when the step was checked last, and the wave that was handed over since, from 1; 0: none.
    _done: int = 0
    _wave_number: int = 0
    #: The last messages about a wave, and about its moves.
    _last_wave_text: str = ""
    _last_moves_text: str = ""

    def check(self) -> Today:
        """The progress of the step now; PlanHaltedError where the cluster is not as the plan says."""
        state = today(self.plan, self.number, self.around.source(), tolerance=self.tolerance, issued=self._issued)
        self._note(state.notes)
        late = self.around.now_ms() - state.interval
        if late > STALE * self.plan.period_ms + MINUTE_MS:
            raise PlanHaltedError(
                f"the newest load is {lasting(late / 1000)} old, so no move is issued: see whether"
                f" `{self.around.command('collect')}` and `{self.around.command('run')}` work"
            )
        if late < -MINUTE_MS:
            # Orders would have lapsed before the controllers see them, and strategies would go on beside the plan.
            raise PlanHaltedError(
                f"the newest load is of a time that is {lasting(-late / 1000)} ahead of this host's clock, so no move"
                " is issued: set the clock (chrony, ntpd)"
            )
        if state.changed:
            raise PlanHaltedError(
                f"the cluster is not as the plan says, so no move is issued: {some(state.changed)}; make a new plan,"
                " or one of what is left with --repair"
            )
        return state

    def run(self) -> Applied:
        """Carry the step out.  PlanHaltedError where something is in the way; what was issued is finished.

        RestartFailedError where the hook, or the broker that it restarts, is.
        """
        stays_in_force = False
        try:
            done = self._move_all() if self.restarts is None else self._move_and_restart(self.restarts)
            stays_in_force = self.precedes
            return done
        except PlanHaltedError as error:
            drained = self._lease.still_drained()
            raise PlanHaltedError(f"{error}; {drained}" if drained else str(error)) from error
        except BaseException:  # the log is away, or the person ends it
            if drained := self._lease.still_drained():
                self.around.say(drained)
            raise
        finally:
            if not stays_in_force:
                self._lease.withdraw()

    def _move_and_restart(self, how: BrokerRestarts) -> Applied:
        restarts = StepRestarts(self._lease, how)
        if restarts.has_begun():
            self._lease.take_over()
            moves = sum(map(len, self.plan.steps[self.number].waves))
            done = Applied(moves=moves, done=moves, notes=())
        else:
            done = self._move_all()
        if done.left_behind:
            raise RestartFailedError(
                f"no broker is restarted: {counted(len(done.left_behind), 'bundle')} left on one"
                f" ({some(done.left_behind)}): --repair plans their moves"
            )
        if self.plan.emptied_by(self.number):
            restarts.run()
        return replace(done, restarted=tuple(restarts.restarted), notes=(*done.notes, *restarts.notes))

    def _move_all(self) -> Applied:
        """Hand over wave after wave, until nothing is left."""
        self._go_on()
        while True:
            state, is_new = self._checked(), not self._lease.is_active
            paused = self._hold_empty(state.interval)
            self._done, self._wave_number = len(state.done), 0
            self._report()
            if not state.waves:
                return self._finished(state)
            if paused:
                self._until_resumed(state.interval)
            elif is_new:
                self._until_decided(state.interval)
            else:
                self._wave(state)

    def _go_on(self) -> None:
        """Finish the wave that an earlier run of this plan left in force."""
        orders = self._lease.take_over()
        if orders is not None:
            self.around.say(f"continuing with wave {orders.wave} of {orders.waves}, which was handed over before")
            self._lease.hold(orders)
            self._settle([move.bundle for move in orders.moves], orders)

    def _checked(self) -> Today:
        """How the step stands, once every bundle that was issued is seen somewhere."""
        started_ms = self.around.now_ms()
        while True:
            state = self.check()
            if not state.unseen:
                return state
            if self.around.now_ms() - started_ms >= _UNSEEN * self.plan.period_ms:
                raise PlanHaltedError(f"{some(state.unseen)}; {self._so_far(state)}")
            self._hold_empty(state.interval)
            self._lease.pause()

    def _until_resumed(self, checked_at: int) -> None:
        """Hold without a move while the controllers are paused; what was checked before has to be checked again."""
        resume = self._lease.paused_until or self.around.command("resume")
        self.around.say(f"paused: nothing is issued until `{resume}`")
        while self._hold_empty(checked_at):
            self._lease.pause()
        self._idle_since = None
        self.around.say("resumed")

    def _until_decided(self, interval: int) -> None:
        """Wait for a decision after *interval*: what the strategies did before they were held is known then."""
        started_ms = self.around.now_ms()
        while (self.around.progress(self.sha256, interval).decided or 0) <= interval:
            if self.around.now_ms() - started_ms > PATIENCE * self.plan.period_ms + MINUTE_MS:
                raise PlanHaltedError(
                    f"the controllers have decided nothing for {PATIENCE} intervals: see"
                    f" `{self.around.command('status')}`"
                )
            self._hold_empty(interval)
            self._lease.pause()

    def _wave(self, state: Today) -> None:
        """Hand over the first wave that is left, and wait until it is settled and its time is over."""
        whole = len(self.plan.steps[self.number].waves)
        wave, number = state.waves[0], whole - len(state.waves) + 1
        connections = sum(move.connections for move in wave)
        text = f"wave {number} of {whole}: {counted(len(wave), 'move')}, {counted(int(connections), 'connection')}"
        if text != self._last_wave_text:
            self._last_wave_text, self._last_moves_text = text, ""
            self.around.say(text)
        started_ms = self.around.now_ms()
        orders = self._orders(wave, number, state.interval)
        self._wave_number = number
        self._lease.hold(orders)
        self._settle([move.bundle for move in wave], orders)
        rate = self.plan.pace.connections_per_second
        issued = [move for move in wave if move.bundle in self._issued]
        until = started_ms + (0 if rate is None else sum(move.connections for move in issued) / rate * 1000)
        is_last = len(state.waves) == 1 and len(issued) == len(wave)
        while self.around.now_ms() < until and not is_last:
            self._hold_empty(state.interval)
            self._lease.pause()

    def _settle(self, bundles: Sequence[str], orders: Orders) -> None:
        """Wait until each of *bundles* is done; PlanHaltedError where one fails, or nothing explains a standstill.

        What a decision did not issue is taken back.  Then this returns as soon as nothing is under way and a decision
        has seen that it was taken back: what was held back has to be checked again.
        """
        last: dict[str, MoveState] = {}
        is_taken_back = False
        while True:
            progress = self.around.progress(self.sha256, orders.checked_at)
            states = progress.of(bundles)
            obeyed = progress.orders is not None and _same(progress.orders, orders)
            has_waiting = MoveState.WAITING in states.values()
            if obeyed:
                self._blocked_by, self._all_blocked = self._blockers(progress, states), not _issued(states)
            self._follow(states, progress, moved=_issued(states) != last)
            last = _issued(states)
            if MoveState.UNDER_WAY not in states.values() and (
                not has_waiting or (is_taken_back and self._is_known(progress))
            ):
                self._end_wave(progress, states)
                return
            if is_taken_back:
                self._lease.hold(replace(orders, moves=(), held_back=self._all_blocked))
            elif self._lease.hold(orders) or (obeyed and has_waiting):
                is_taken_back = True
                self._lease.hold(replace(orders, moves=(), held_back=self._all_blocked))
                if obeyed and not last:
                    self.check()
            self._lease.pause()

    def _report(self, done_of_wave: int = 0) -> None:
        waves = self.plan.steps[self.number].waves
        moves, done = sum(map(len, waves)), self._done + done_of_wave
        self.around.report(
            StepProgress(moves=moves, moves_done=min(done, moves), wave=self._wave_number, waves=len(waves))
        )

    def _follow(self, states: dict[str, MoveState], progress: PlanProgress, *, moved: bool) -> None:
        """Say how far a wave is; PlanHaltedError where the breaker tripped, or nothing explains a standstill.

        *moved*: whether a move is further than at the last look.
        """
        now_ms = self.around.now_ms()
        self._issued |= {bundle for bundle, state in states.items() if state is MoveState.DONE}
        if moved or (self._blocked_by and progress.decided != self._decided) or self._idle_since is None:
            self._idle_since = now_ms
        self._decided = progress.decided
        self._report(sum(state is MoveState.DONE for state in states.values()))
        text = f"{_describe(states)}{f'; held back by {self._blocked_by}' if self._blocked_by else ''}"
        if text != self._last_moves_text:
            self._last_moves_text = text
            self.around.say(text)
        if progress.breaker:
            raise PlanHaltedError(f"the breaker tripped: {progress.breaker}; {_describe(states)}")
        if now_ms - self._idle_since > PATIENCE * self.plan.period_ms + MINUTE_MS:
            raise PlanHaltedError(
                f"nothing has changed for {PATIENCE} intervals: {_describe(states)}; the last decision: "
                f"{progress.summary or 'none'}; `{self.around.command('explain')}` says why a bundle stays"
            )

    def _blockers(self, progress: PlanProgress, states: dict[str, MoveState]) -> str:
        """What held back the moves that the newest decision had and did not issue; "": nothing that passes."""
        waiting = [self._named[bundle] for bundle, state in states.items() if state is MoveState.WAITING]
        if not waiting or progress.last is None:
            return ""
        return blocked_by(progress.last, progress.limits, self.plan.period_ms, waiting)

    @cached_property
    def _lease(self) -> StepLease:
        return StepLease(
            self.plan,
            self.sha256,
            self.number,
            self.around,
            has_hook=self.restarts is not None,
            follows=self.follows,
        )

    @cached_property
    def _named(self) -> dict[str, NamedMove]:
        """The moves of the step, by bundle."""
        return {move.bundle: move for wave in named_moves(self.plan, self.plan.steps[self.number]) for move in wave}

    def _end_wave(self, progress: PlanProgress, states: dict[str, MoveState]) -> None:
        """PlanHaltedError where a move failed; a standstill that nothing explains goes on to count."""
        failed = [f"{name} ({progress.details[name]})" for name, state in states.items() if state is MoveState.FAILED]
        if failed:
            raise PlanHaltedError(f"{counted(len(failed), 'move')} failed: {some(failed)}")
        if _issued(states) or self._blocked_by:
            self._idle_since = None

    def _is_known(self, progress: PlanProgress) -> bool:
        """Whether the newest decision was made when nothing was handed over."""
        return (
            progress.orders is not None and progress.orders.holder == self.around.holder and not progress.orders.moves
        )

    def _hold_empty(self, checked_at: int) -> bool:
        """Keep the plan in force between two waves; whether the controllers are paused."""
        return self._lease.hold(self._orders((), 0, checked_at))

    def _orders(self, wave: Sequence[NamedMove], number: int, checked_at: int) -> Orders:
        return self._lease.orders(wave, number=number, checked_at=checked_at, held_back=self._all_blocked)

    def _finished(self, state: Today) -> Applied:
        return Applied(
            moves=sum(len(wave) for wave in named_moves(self.plan, self.plan.steps[self.number])),
            done=len(state.done),
            notes=tuple(self._notes),
            left_behind=state.on_emptied,
        )

    def _note(self, notes: Sequence[str]) -> None:
        new = [note for note in notes if note not in self._notes]
        self._notes += new
        for note in new:
            self.around.say(note)

    def _so_far(self, state: Today) -> str:
        not_issued = sum(len(wave) for wave in state.waves)
        return f"{counted(len(state.done), 'move')} done, {not_issued} not issued"


def _describe(states: dict[str, MoveState]) -> str:
    counts = {state: sum(each is state for each in states.values()) for state in MoveState}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _issued(states: dict[str, MoveState]) -> dict[str, MoveState]:
    """The moves of *states* that were issued."""
    return {bundle: state for bundle, state in states.items() if state is not MoveState.WAITING}


def _same(one: Orders, other: Orders) -> bool:
    """Whether both are the same orders, however long they hold."""
    return replace(one, expires_at_ms=0) == replace(other, expires_at_ms=0)
