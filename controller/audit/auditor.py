"""Follows every move from its decision on, interval by interval, until its outcome is final.

    two intervals later   where the bundle is, and how full its two brokers are
    an hour later         whether the bundle was back on its source, and whether fewer moves would have done

Predictions are worked out when a move is decided, of what is known then; nothing that comes later changes them.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.aggregate.snapshot import Snapshot
from controller.audit.followed import (
    FollowedMove,
    as_promised,
    clients_of,
    has_its_producers,
    outcome_of,
    side_of,
    with_actual,
)
from controller.audit.moves import AuditedMove, MoveOutcome, Undoer
from controller.audit.owner_changes import OwnerChange, OwnerWatch
from controller.audit.seen_load import SeenLoad, Shift, drift
from controller.model.decision import Command, Decision
from controller.model.memory import InFlight, Memory
from controller.model.names import namespace_of
from controller.model.resource_usage import ResourceWeights

#: A move is checked this many intervals after its decision.
LOOKED_AT: Final = 2
#: Within this time a move is undone, or part of a sequence.
HOUR_MS: Final = 3_600_000
#: Maximum number of moves that are followed at once; further ones are only counted.
MAX_FOLLOWED: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStep:
    """New outcomes after an interval."""

    #: Moves that were checked two intervals after their decision, or later if that interval is missing.
    looked_at: tuple[AuditedMove, ...] = ()
    #: Moves whose outcome is final, in the order of their decisions.
    settled: tuple[AuditedMove, ...] = ()
    #: Bundles that moved to other brokers without a command.
    changes: tuple[OwnerChange, ...] = ()


class MoveAuditor:
    """See the module docstring.  What it keeps grows with the moves of two hours, and with the names of bundles."""

    def __init__(self, *, period_ms: int, weights: ResourceWeights) -> None:
        """*weights*: of the resources that usage is the largest of; the shedder's, if it has any."""
        self._period_ms, self._weights = period_ms, weights
        self._owners = OwnerWatch(period_ms)
        #: In the order of their decisions, those that are not settled; and by id.
        self._open: list[FollowedMove] = []
        self._by_id: dict[str, FollowedMove] = {}
        #: Bundle -> its moves of the last two hours, also settled ones, oldest first; and all that are settled.
        self._of_bundle: dict[str, list[FollowedMove]] = {}
        self._settled: deque[FollowedMove] = deque()
        self._last: int | None = None
        self._too_many = list[AuditedMove]()

    def take(
        self, snapshots: Sequence[Snapshot], decision: Decision | None = None, memory: Memory | None = None
    ) -> AuditStep:
        """Go on with the next interval: *snapshots* of all shards, what was decided on it, and the memory after that.

        StateError where a shard is missing.
        """
        seen_load = SeenLoad.of(snapshots, self._weights)
        for snapshot in snapshots:
            for result in snapshot.results:
                move = self._by_id.get(result.id)
                if move is not None:
                    move.result = move.result or result.status  # the first one counts
        changes = self._owners.take(seen_load)
        later = self._brokers_since(seen_load.interval - LOOKED_AT * self._period_ms)
        looked_at = [self._audited(move) for move in self._open if self._follow(move, seen_load, later)]
        self._last = seen_load.interval
        settled = self._settle(seen_load.interval)
        if decision is not None:
            self._begin(decision, seen_load, memory)
        return AuditStep(looked_at=tuple(looked_at), settled=tuple(settled), changes=tuple(changes))

    def remember(self, memory: Memory) -> None:
        """The commands in flight in *memory* may still move bundles; they are not reported."""
        for flight in memory.in_flight.values():
            self._owners.issued(flight)

    def decided_unseen(self, decision: Decision) -> None:
        """Follow the moves of a *decision* on an interval whose load is missing."""
        self._begin(decision, None, None)

    def ended(self) -> tuple[AuditedMove, ...]:
        """All moves that are still followed, as far as their outcome is known, at the end of the log."""
        audited = [*self._evicted(), *(self._audited(move) for move in self._open)]
        self._open, self._by_id = [], {}
        return tuple(sorted(audited, key=lambda move: move.interval))

    @property
    def moves_in_memory(self) -> int:
        """How many moves are in memory, also those that are settled."""
        return sum(map(len, self._of_bundle.values()))

    # ---- decisions ----

    def _begin(self, decision: Decision, seen_load: SeenLoad | None, memory: Memory | None) -> None:
        for command in decision.commands:
            self._owners.issued(InFlight.of(command), parts_leave=command.unload_after_split)
        commands = [each for each in decision.commands if each.action == "unload" and each.mode == "active"]
        if not commands:
            return
        before = None if seen_load is None else seen_load.brokers
        after = None if seen_load is None else seen_load.after(self._shifts(commands, seen_load, memory))
        for command in commands:
            move = FollowedMove(
                command=command,
                interval=decision.interval,
                carried=None if seen_load is None else seen_load.carried(command.bundle),
                source=side_of(command.source, before, after),
                destination=side_of(command.destination, before, after),
                before=before,
            )
            move.destination = as_promised(move.destination, command, memory)
            if len(self._open) >= MAX_FOLLOWED:
                move.outcome = MoveOutcome.TOO_MANY
                self._too_many.append(self._audited(move))
                continue
            self._open.append(move)
            self._by_id[command.id] = move
            self._of_bundle.setdefault(command.bundle, []).append(move)

    def _shifts(self, commands: Sequence[Command], seen_load: SeenLoad, memory: Memory | None) -> list[Shift]:
        """All bundles that are to change brokers as the decision knew: *commands*, and those on their way by then."""
        sent = {each.command.bundle: (each.command.source, each.command.destination) for each in self._on_the_way()}
        for flight in () if memory is None else memory.in_flight.values():
            if flight.action == "unload" and not flight.dry_run:
                sent[flight.bundle] = flight.source, flight.destination
        sent |= {command.bundle: (command.source, command.destination) for command in commands}
        shifts = list[Shift]()
        for bundle, (source, destination) in sorted(sent.items()):
            load = seen_load.load_of(bundle)
            if load is not None and seen_load.owner(bundle) == source:
                shifts.append(Shift(load, source, destination))
        return shifts

    def _on_the_way(self) -> list[FollowedMove]:
        """Earlier moves that may still be seen on their source, although they were done."""
        return [each for each in self._open if each.result == "done" and not each.came_to and each.outcome is None]

    # ---- outcomes ----

    def _brokers_since(self, interval: int) -> Counter[str]:
        """Broker -> the moves from it and to it that were decided after *interval*."""
        counts = Counter[str]()
        for move in reversed(self._open):
            if move.interval <= interval:
                break
            counts.update((move.command.source, move.command.destination))
        return counts

    def _follow(self, move: FollowedMove, seen_load: SeenLoad, later: Counter[str]) -> bool:
        """Look where the bundle of *move* is now; returns whether it was looked at now."""
        now, command = seen_load.interval, move.command
        owner = seen_load.owner(command.bundle)
        if owner is not None and owner != command.source and not move.came_to:
            move.came_to, move.came_at = owner, now
        elif owner == command.source and move.came_to and move.undone_at is None and now <= move.interval + HOUR_MS:
            move.undone_at, move.undone_by = now, self._undoer(move, seen_load)
        if owner and owner == move.came_to and move.producers_back_at is None and now <= move.interval + HOUR_MS:
            move.producers_back_at = now if has_its_producers(move, seen_load) else None
        move.owner = owner or move.owner
        # Late, as after a restart of the controller; without that result another command may have moved it.
        move.has_left = True if move.has_left is False and move.came_to and move.result == "done" else move.has_left
        due = move.interval + LOOKED_AT * self._period_ms
        if move.outcome is not None or now < due:
            return False
        if now > due:
            move.outcome = MoveOutcome.NOT_RECORDED
        else:
            self._look(move, owner, seen_load)
            move.later = later[move.command.source] + later[move.command.destination]
        move.has_left = bool(move.came_to) or (owner is None and move.result == "done")
        move.before = None
        return True

    def _look(self, move: FollowedMove, owner: str | None, seen_load: SeenLoad) -> None:
        command = move.command
        move.outcome = outcome_of(command, owner, seen_load)
        brokers = seen_load.brokers
        move.source, move.destination = (
            with_actual(side, seen_load, brokers) for side in (move.source, move.destination)
        )
        move.drift = None if move.before is None else drift(move.before, brokers)

    def _undoer(self, move: FollowedMove, seen_load: SeenLoad) -> Undoer:
        """Who brought the bundle of *move* back to its source."""
        later = (each.command for each in self._of_bundle[move.command.bundle] if each.interval > move.interval)
        if any(each.destination in ("", move.command.source) and each.source == move.owner for each in later):
            return "trimtab"
        return "others" if move.owner in seen_load.roster else "broker_left"

    def _settle(self, now: int) -> list[AuditedMove]:
        """The moves whose outcome is final *now*; they are no longer followed."""
        last = now - HOUR_MS - LOOKED_AT * self._period_ms
        done = [move for move in self._open if move.interval <= last]
        audited = [*self._evicted(), *(self._audited(move) for move in done)]
        self._open = self._open[len(done) :]
        for move in done:
            self._by_id.pop(move.command.id, None)
            self._settled.append(move)
        # Moves of an hour before may be the beginning of a circle.
        while self._settled and self._settled[0].interval < last - HOUR_MS:
            old = self._settled.popleft()
            of_bundle = self._of_bundle[old.command.bundle]
            of_bundle.remove(old)
            if not of_bundle:
                del self._of_bundle[old.command.bundle]
        return audited

    def _evicted(self) -> list[AuditedMove]:
        evicted, self._too_many = self._too_many, []
        return evicted

    # ---- results ----

    def _audited(self, move: FollowedMove) -> AuditedMove:
        command, why = move.command, move.command.why
        undone = True if move.undone_at is not None else None if self._is_open(move, 0) else False
        return AuditedMove(
            id=command.id,
            interval=move.interval,
            bundle=command.bundle,
            namespace=namespace_of(command.bundle),
            strategy=why.by,
            reason=str(why.reason),
            source=move.source,
            destination=move.destination,
            result=move.result,
            outcome=move.outcome or MoveOutcome.NOT_YET,
            came_to=move.came_to,
            came_at=move.came_at,
            carried=move.carried,
            clients=clients_of(move),
            producers_back_at=move.producers_back_at,
            drift=move.drift,
            later=move.later,
            undone=undone if move.outcome is not MoveOutcome.TOO_MANY else None,
            undone_at=move.undone_at,
            undone_by=move.undone_by,
            shorter=self._shorter(move),
        )

    def _is_open(self, move: FollowedMove, intervals: int) -> bool:
        """Whether an hour and so many *intervals* after *move* have not passed yet."""
        return self._last is None or self._last < move.interval + HOUR_MS + intervals * self._period_ms

    def _shorter(self, move: FollowedMove) -> bool | None:
        """Whether fewer moves of the bundle, of an hour before *move* and after it, would have led to the same end.

        If it was moved again within the hour, one move, or none, had been enough.  If *move* was the last one and took
        it back to where it was at first, no move had been needed.  So of a sequence within an hour as many moves are
        counted as ``not_needed`` tells.
        """
        if move.has_left is None:
            return None
        if not move.has_left:
            return False
        moves = [each for each in self._of_bundle[move.command.bundle] if each.has_left]
        if any(move.interval < each.interval <= move.interval + HOUR_MS for each in moves):
            return True
        before = [each for each in moves if move.interval - HOUR_MS <= each.interval < move.interval]
        if before and before[0].command.source == move.came_to:
            return True
        return None if self._is_open(move, LOOKED_AT) else False
