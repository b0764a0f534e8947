"""Holds a step of a plan with the operator's controls: its orders, and the brokers that it empties.

Orders hold for some intervals and are handed over again and again, so those of a process that died lapse by themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controller.cycle.ordered import HOLD_INTERVALS, HOLD_MS
from controller.model.controls import ControlChange, Drained, OperatorControls, OrderedMove, Orders, PlanRestarts
from controller.model.errors import TrimtabError
from controller.offline.plans.moves import NamedMove
from controller.offline.plans.progress import PlanProgress
from controller.offline.plans.source import PlanSource
from controller.planning.plans.plan import EMPTY, Plan, PlanStep
from controller.wire.controls import MAX_REASON

#: Number of intervals, and a minute more, without an explained change after which nobody waits any longer.
PATIENCE: Final = 8
#: No moves are issued, and no broker is restarted, on a load that is older than this many intervals, plus a minute.
STALE: Final = 3
MINUTE_MS: Final = 60_000
#: Maximum number of items of a list in a message.
_MAX_NAMED: Final = 5


class PlanHaltedError(TrimtabError):
    """A plan is no longer carried out; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What running a plan needs from outside; tests provide their own."""

    #: Replace the controls, and return them.
    change: Callable[[Callable[[OperatorControls], OperatorControls]], OperatorControls]
    #: The cluster as of now.
    source: Callable[[], PlanSource]
    #: The outcomes of the commands of a plan (its hash) after an interval.
    progress: Callable[[str, int], PlanProgress]
    #: Epoch ms.
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    #: Prints a message for the operator.
    say: Callable[[str], None]
    #: trimtab with these words, as a shell takes it.
    command: Callable[..., str]
    #: Who runs it, and a name of this process that no other has.
    by: str
    holder: str
    #: Why, for the controls' history.
    reason: str = ""
    #: What has to be run to go on, where a person has paused this plan alone; "": nothing.  Called whenever moves are
    #: about to be handed over; PlanHaltedError where they must not be any more.
    paused_until: Callable[[], str] = lambda: ""
    #: Is told how far the step is.
    report: Callable[["StepProgress"], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """How far a step is."""

    moves: int
    moves_done: int
    #: From 1; 0: between two waves.
    wave: int = 0
    waves: int = 0


def some(texts: Sequence[str]) -> str:
    """The first of *texts*, for an error."""
    more = f"; and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    return f"{'; '.join(texts[:_MAX_NAMED])}{more}"


def _with_failed_hook(restarts: PlanRestarts | None) -> PlanRestarts | None:
    return None if restarts is None else replace(restarts, hook_failed=True)


@dataclass
class StepLease:
    """One step of a plan, as this process holds it."""

    plan: Plan
    sha256: str
    #: From 0.
    number: int
    around: Surroundings
    #: Whether a hook restarts the brokers that the step empties.
    has_hook: bool = False
    #: Whether the step before it is still in force, by this process.
    follows: bool = False
    #: Whether this process holds it.
    is_active: bool = False
    #: Brokers that it has released.
    released: set[str] = field(default_factory=set)
    #: See Surroundings, of the last time that it was held.
    paused_until: str = ""
    #: When `trimtab stop-all` was said last before this process took the step over.
    _stopped_ms: int = 0

    def take_over(self) -> Orders | None:
        """The orders with moves that an earlier run of this step left in force, as this process's, if there are any.

        PlanHaltedError where another plan is in force, or a broker that gets bundles is drained.
        """
        before: list[Orders | None] = []

        def taken(now: OperatorControls) -> OperatorControls:
            if self.follows:
                self._require_mine(now)
            self._refuse_others(now)
            self._refuse_drained(now)
            self._stopped_ms = now.stopped_ms
            mine = now.orders is not None and now.orders.plan == self.sha256
            # What has expired was checked long ago: it is checked again, as if it had never been handed over.
            holds = now.orders is not None and now.orders.hold_at(self.around.now_ms())
            before.append(now.orders if mine and holds else None)
            return now

        self.around.change(taken)
        orders_before = before[-1]
        if orders_before is None or orders_before.step != self.number + 1 or not orders_before.moves:
            return None
        return replace(orders_before, holder=self.around.holder, by=self.around.by)

    def orders(self, wave: Sequence[NamedMove], *, number: int, checked_at: int, held_back: bool) -> Orders:
        """Orders for *wave*, the *number*-th of the step: see Orders."""
        moves = tuple(OrderedMove(bundle=m.bundle, source=m.source, destination=m.destination) for m in wave)
        return Orders(
            plan=self.sha256,
            step=self.number + 1,
            wave=number,
            waves=len(self._step.waves),
            moves=moves,
            checked_at=checked_at,
            expires_at_ms=0,
            holder=self.around.holder,
            by=self.around.by,
            held_back=held_back,
        )

    def hold(self, orders: Orders) -> bool:
        """Have *orders* hold for some more intervals; whether the controllers, or this plan alone, are paused.

        While this plan is paused, its moves are not handed over.

        PlanHaltedError where another process has taken the plan over, or a person has stopped it.
        """
        expires = self.around.now_ms() + HOLD_INTERVALS * self.plan.period_ms + HOLD_MS
        first, paused_until = not self.is_active, ""

        def held(now: OperatorControls) -> OperatorControls:
            if now.stopped_ms != self._stopped_ms:
                raise PlanHaltedError("stopped by `trimtab stop-all`")
            if first:
                self._refuse_others(now)
            else:
                self._require_mine(now)
            nonlocal paused_until
            # Asked with the controls in hand: whoever pauses the plan changes them after it is said to be paused.
            paused_until = self.around.paused_until()
            moves = () if paused_until else orders.moves
            drained = self._drained(now) if first else now.drained
            changed = replace(now, drained=drained, orders=replace(orders, moves=moves, expires_at_ms=expires))
            if not first:
                return changed
            changed = replace(changed, restarts=self.restarts(now)) if self.has_hook else changed
            return changed.with_change(self._began(now, drained))

        controls = self.around.change(held)
        self.is_active, self.paused_until = True, paused_until
        return bool(paused_until or controls.pauses_at(self.around.now_ms()))

    def restarts(self, now: OperatorControls) -> PlanRestarts:
        """How far the hook is with the brokers of this step, by the controls *now*."""
        known, step = now.restarts, self.number + 1
        if known is not None and (known.plan, known.step) == (self.sha256, step):
            return known
        return PlanRestarts(plan=self.sha256, step=step)

    def begin_restart(self, broker: str, started_ms: int) -> bool:
        """Remember that the hook is to replace the process of *broker* that started at *started_ms*, epoch ms.

        False, and nothing is changed, where the broker is not drained any more.
        """
        restarts = PlanRestarts(plan=self.sha256, step=self.number + 1, broker=broker, started_ms=started_ms)
        controls = self._change(
            "restart", broker, lambda now: replace(now, restarts=restarts) if now.drains(broker) else now
        )
        return controls.drains(broker)

    def hook_failed(self, why: str) -> None:
        """Remember that the hook has failed, because of *why*."""
        self._change("restart", f"failed: {why}", lambda now: replace(now, restarts=_with_failed_hook(now.restarts)))

    def release(self, broker: str) -> None:
        """Let *broker*, which the step has emptied, get bundles again."""
        self._change(
            "release",
            broker,
            lambda now: replace(now, drained=tuple(each for each in now.drained if each.broker != broker)),
        )
        self.released.add(broker)

    def _change(
        self, action: str, detail: str, how: Callable[[OperatorControls], OperatorControls]
    ) -> OperatorControls:
        """Change the controls, unless *how* returns what it was given; the controls after that."""

        def changed(now: OperatorControls) -> OperatorControls:
            self._require_mine(now)
            after = how(now)
            return now if after is now else after.with_change(self._entry(action, detail))

        return self.around.change(changed)

    def _began(self, now: OperatorControls, drained: Sequence[Drained]) -> ControlChange:
        new = [each.broker for each in drained if each not in now.drained]
        return self._entry(
            "apply", f"of plan {self.sha256[:12]}, step {self.number + 1}" + (f"; drains {some(new)}" if new else "")
        )

    def _entry(self, action: str, detail: str) -> ControlChange:
        return ControlChange(
            at_ms=self.around.now_ms(),
            by=self.around.by,
            action=action,
            detail=detail[:MAX_REASON],
            reason=self.around.reason,
        )

    def pause(self) -> None:
        """Sleep until it is time to look again."""
        self.around.sleep(min(5.0, max(0.5, self.plan.period_ms / 6000)))

    def withdraw(self) -> None:
        """End the hold, if it is still this process's; drained brokers stay drained."""
        if not self.is_active:
            return
        self.is_active = False
        try:
            self.around.change(lambda now: replace(now, orders=None) if self._is_mine(now) else now)
        except TrimtabError as error:
            self.around.say(f"the plan stays in force for some intervals, the controls were not changed: {error}")

    def still_drained(self) -> str:
        """What a run that ends early leaves in force, and how that is ended; "" where it leaves nothing."""
        if not self.is_active or self._step.task != EMPTY:
            return ""
        names = [each for each in self.plan.emptied_by(self.number) if each not in self.released]
        if not names:
            return ""
        return f"{some(names)}: drained, no bundles before `{self.around.command('release', names[0])}`"

    @property
    def _step(self) -> PlanStep:
        return self.plan.steps[self.number]

    def _is_mine(self, now: OperatorControls) -> bool:
        return now.orders is not None and now.orders.holder == self.around.holder

    def _require_mine(self, now: OperatorControls) -> None:
        if not self._is_mine(now):
            who = "`trimtab stop-all`" if now.orders is None else f"another `trimtab apply`, of {now.orders.by}"
            raise PlanHaltedError(f"stopped by {who}")

    def _refuse_others(self, now: OperatorControls) -> None:
        orders = now.orders
        if orders is not None and orders.plan != self.sha256 and orders.hold_at(self.around.now_ms()):
            raise PlanHaltedError(
                f"plan {orders.plan[:12]} is being applied by {orders.by}: stop that first, or wait until it has ended"
            )

    def _refuse_drained(self, now: OperatorControls) -> None:
        to = {self.plan.brokers[move.destination] for move in self._step.moves}
        drained = sorted(to & {each.broker for each in now.drained})
        if drained:
            release = self.around.command("release", drained[0])
            raise PlanHaltedError(f"{some(drained)} is drained and gets no bundles: run `{release}` once it is back")

    def _drained(self, now: OperatorControls) -> tuple[Drained, ...]:
        """Brokers that get nothing from now on: also those that this step empties, unless it restarts them."""
        by_name = {each.broker: each for each in now.drained}
        has_begun = self.has_hook and self.restarts(now).broker
        for name in () if has_begun else self.plan.emptied_by(self.number):
            by_name.setdefault(name, Drained(broker=name, by=self.around.by, at_ms=self.around.now_ms()))
        return tuple(by_name[name] for name in sorted(by_name))
