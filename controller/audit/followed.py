"""One move that is being followed: the observations so far, and the outcome that follows from them."""

from dataclasses import dataclass, replace
from typing import Final

from controller.audit.moves import AuditedSide, MoveOutcome, Presence, Undoer
from controller.audit.seen_load import BrokerColumns, CarriedLoad, SeenLoad
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.memory import Memory

#: With one of these results nothing was unloaded.
_NEVER_DONE: Final = frozenset({"obsolete", "skipped", "expired", "fenced", "dry_run", "refused"})


@dataclass(slots=True, kw_only=True, eq=False)
class FollowedMove:
    """A move that is being followed; an auditor fills it in."""

    command: Command
    #: T of the decision, epoch ms.
    interval: int
    carried: CarriedLoad | None = None
    source: AuditedSide
    destination: AuditedSide
    #: The brokers when it was decided; None once it was looked at.
    before: BrokerColumns | None = None
    result: str = ""
    outcome: MoveOutcome | None = None
    drift: float | None = None
    #: Moves from or to its brokers that were decided before it was looked at, and after it.
    later: int = 0
    came_to: str = ""
    came_at: int | None = None
    producers_back_at: int | None = None
    #: Its bundle had left its source when it was looked at, or left it later; None: nobody has looked.
    has_left: bool | None = None
    #: The broker that listed it last.
    owner: str = ""
    undone_at: int | None = None
    undone_by: Undoer = ""


def side_of(broker: str, before: BrokerColumns | None, after: BrokerColumns | None) -> AuditedSide:
    """The side of *broker*, with the brokers *before* a decision and *after* all that was decided by then."""
    predicted = None if after is None else after.of(broker)
    return AuditedSide(
        broker=broker,
        before=None if before is None else before.of(broker),
        predicted=predicted,
        predicted_by="" if predicted is None or predicted.usage is None else "computed",
    )


def as_promised(side: AuditedSide, command: Command, memory: Memory | None) -> AuditedSide:
    """*side*, the destination of *command*, with the usage that the decision promised, if it did."""
    if memory is None or side.predicted is None:
        return side
    usage = memory.shedder.predicted_usage(command.bundle, command.source, command.destination)
    if usage is None:
        return side
    return replace(side, predicted=replace(side.predicted, usage=usage), predicted_by="promise")


def with_actual(side: AuditedSide, seen_load: SeenLoad, brokers: BrokerColumns) -> AuditedSide:
    """*side* with how full its broker is two intervals later."""
    if not side.broker:
        return side
    actual = brokers.of(side.broker)
    presence: Presence = "there" if actual is not None else "no_data" if side.broker in seen_load.roster else "left"
    return replace(side, actual=actual, presence=presence)


def outcome_of(command: Command, owner: str | None, seen_load: SeenLoad) -> MoveOutcome:
    """Where *owner*, the broker that lists the bundle of *command* now, makes it be."""
    if owner is None:
        try:
            return MoveOutcome(seen_load.became(command.bundle))
        except TrimtabError:  # the command names no bundle
            return MoveOutcome.UNLISTED
    if owner == command.source:
        return MoveOutcome.STAYED
    return MoveOutcome.ARRIVED if command.destination in ("", owner) else MoveOutcome.ELSEWHERE


def clients_of(move: FollowedMove) -> int | None:
    """How many clients had to reconnect; None where nobody knows."""
    if move.result in _NEVER_DONE:
        return 0
    if move.result == "done" or move.came_to:
        return None if move.carried is None else move.carried.clients
    return 0 if move.result == "already_done" else None


def has_its_producers(move: FollowedMove, seen_load: SeenLoad) -> bool:
    """Whether the bundle of *move* has as many producers as when it was decided; False where it had none."""
    before, now = move.carried, seen_load.carried(move.command.bundle)
    return before is not None and now is not None and 0 < before.producers <= now.producers
