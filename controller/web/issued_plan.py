"""How far a plan is that is being applied, or was: from its commands, their results and the controls."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from controller.cycle.ordered import told_step_and_wave
from controller.model.controls import Orders
from controller.web.store.queries import PageData
from controller.web.store.values import IssuedCommand, LatestState

IssuedMoveState: TypeAlias = Literal["done", "in_flight", "failed", "waiting"]

_DONE: Final = frozenset({"done", "already_done"})
#: Nobody began it, so the controllers issue it again.
_NEVER_STARTED: Final = frozenset({"expired", "fenced"})
NO_RESULT: Final = "no result came back"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedMove:
    """One move of a plan, and the newest command for it."""

    bundle: str
    source: str
    destination: str
    #: From 1.
    step: int
    wave: int
    state: IssuedMoveState
    #: Why it failed, or was not begun; "": it did not.
    detail: str
    #: T of its newest command; None: none was issued.
    interval: int | None
    #: When an executor began and ended it, epoch ms; None: no result says so.
    started_at: int | None = None
    finished_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedPlan:
    """What is known of a plan's moves: those that were issued, and those that are handed over now."""

    #: The plan's hash.
    plan: str
    #: In force: step, wave and who; None: it is not being applied.
    orders: Orders | None
    #: The newest first; of each bundle and step the newest command.
    moves: tuple[IssuedMove, ...]

    @property
    def counts(self) -> Mapping[IssuedMoveState, int]:
        """How many moves are in each state."""
        return Counter(move.state for move in self.moves)

    def waves_of(self, step: int) -> dict[int, Counter[IssuedMoveState]]:
        """Wave of *step*, from 1 -> how many of its moves are in each state, where something is known of it.

        A wave that is handed over in parts may have several numbers, so its place in a plan's file is by its bundles.
        """
        waves: dict[int, Counter[IssuedMoveState]] = {}
        for move in self.moves:
            if move.step == step:
                waves.setdefault(move.wave, Counter())[move.state] += 1
        return waves


def orders_in_force(state: LatestState | None, now_ms: int) -> Orders | None:
    """The part of a plan that controllers obey now; None: none, or it has lapsed since `trimtab apply` ended."""
    orders = None if state is None else state.controls.orders
    return orders if orders is not None and orders.hold_at(now_ms) else None


def issued_plan(data: PageData, plan: str, state: LatestState | None, now_ms: int) -> IssuedPlan:
    """What became of the plan with the hash *plan*, as far back as *data* reaches."""
    orders = orders_in_force(state, now_ms)
    orders = orders if orders is not None and orders.plan == plan else None
    issued = _newest(data.plan_commands(plan), state)
    known = {(move.bundle, move.step) for move in issued}
    return IssuedPlan(plan=plan, orders=orders, moves=(*_handed_over(orders, known), *issued))


def _newest(commands: Sequence[IssuedCommand], state: LatestState | None) -> list[IssuedMove]:
    moves: dict[tuple[str, int], IssuedMove] = {}
    for command in commands:
        part = told_step_and_wave(command.why.detail)
        if part is None or (command.bundle, part[0]) in moves:
            continue
        move_state, detail = _state(command, state)
        moves[command.bundle, part[0]] = IssuedMove(
            bundle=command.bundle,
            source=command.source,
            destination=command.destination,
            step=part[0],
            wave=part[1],
            state=move_state,
            detail=detail,
            interval=command.interval,
            started_at=command.started_at,
            finished_at=command.finished_at,
        )
    return list(moves.values())


def _state(command: IssuedCommand, state: LatestState | None) -> tuple[IssuedMoveState, str]:
    if command.status in _DONE:
        return "done", ""
    detail = f"{command.status}{f': {command.detail}' if command.detail else ''}"
    if command.status in _NEVER_STARTED:
        return "waiting", detail
    if command.status:
        return "failed", detail
    if state is None or command.interval >= state.interval or state.in_flight_total > len(state.in_flight):
        return "in_flight", ""
    return ("in_flight", "") if any(each.id == command.id for each in state.in_flight) else ("failed", NO_RESULT)


def _handed_over(orders: Orders | None, known: Collection[tuple[str, int]]) -> list[IssuedMove]:
    """The moves of *orders* of which no command is *known*."""
    if orders is None:
        return []
    return [
        IssuedMove(
            bundle=move.bundle,
            source=move.source,
            destination=move.destination,
            step=orders.step,
            wave=orders.wave,
            state="waiting",
            detail="",
            interval=None,
        )
        for move in orders.moves
        if (move.bundle, orders.step) not in known
    ]
