"""Counts the recorded moves and splits that a replay with the recorded settings repeats, and explains the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.model.decision import Action, Command
from controller.offline.counterfactual.replay import ReplayedDecision, ReplayedRun, moved
from controller.offline.scenarios.simulate import SimulatedRun
from controller.simulator.carrying_out import SimulatedMove
from controller.wire.readable import utc

#: Without a journal, a move counts as reproduced if it came up to this many intervals earlier or later.
_NEAR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReproduced:
    """A recorded move or split that the replay does not have, or the other way round."""

    #: T, epoch ms.
    interval: int
    action: Action
    bundle: str
    source: str
    destination: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """See the module docstring."""

    #: Recorded moves and splits, and how many of them the replay has, too.
    recorded: int
    reproduced: int
    missing: tuple[NotReproduced, ...]
    #: What the replay does and the recording does not have.
    added: tuple[NotReproduced, ...]

    @property
    def share(self) -> float | None:
        """Of the recorded moves, as a fraction; None where nothing was moved."""
        return self.reproduced / self.recorded if self.recorded else None


def reproduction_of_journal(recorded: Sequence[Command], replayed: ReplayedRun) -> Reproduction:
    """Compare *recorded* commands, those of the journal, with those of the replay, interval by interval."""
    decisions = {each.interval: each for each in replayed.decisions}
    mine = {(each.interval, *moved(command)): command for each in replayed.decisions for command in each.commands}
    theirs = {(command.interval, *moved(command)): command for command in recorded if command.interval in decisions}
    first = min((key[0] for key in mine.keys() ^ theirs.keys()), default=0)
    missing = [
        _not_reproduced(command, _why(command, decisions[command.interval], first))
        for key, command in theirs.items()
        if key not in mine
    ]
    added = [_not_reproduced(command, "") for key, command in mine.items() if key not in theirs]
    return Reproduction(
        recorded=len(theirs),
        reproduced=len(theirs.keys() & mine.keys()),
        missing=tuple(missing),
        added=tuple(added),
    )


def reproduction_of_moves(happened: SimulatedRun, replayed: SimulatedRun, intervals: Sequence[int]) -> Reproduction:
    """Compare the moves that were recorded with those of the replay: a recording without a journal."""
    unmatched: dict[tuple[str, int, int], list[int]] = {}
    for move in replayed.moves:
        unmatched.setdefault((move.bundle, move.source, move.destination), []).append(move.turn)
    missing = list[NotReproduced]()
    for move in happened.moves:
        at = unmatched.get((move.bundle, move.source, move.destination), [])
        near = [each for each in at if abs(each - move.turn) <= _NEAR]
        if near:
            at.remove(min(near, key=lambda each: abs(each - move.turn)))
        else:
            why = f"the replay does not move it within {_NEAR} intervals"
            missing.append(_of_move(move, happened.brokers, intervals, why))
    added = [
        _of_move(move, happened.brokers, intervals, "")
        for move in replayed.moves
        if move.turn in unmatched.get((move.bundle, move.source, move.destination), [])
    ]
    n = len(happened.moves)
    return Reproduction(recorded=n, reproduced=n - len(missing), missing=tuple(missing), added=tuple(added))


def _why(command: Command, decision: ReplayedDecision, first: int) -> str:
    """Why the replayed *decision* does not have the recorded *command*; *first*: since when both differ."""
    for other in decision.commands:
        if (other.action, other.bundle) == (command.action, command.bundle):
            return f"the replay takes it from {other.source} to {other.destination or other.boundaries}"
    reasons = [
        str(verdict)
        for subject in (command.bundle, command.source)
        for verdict in decision.verdicts
        if verdict.subject == subject
    ]
    reason = reasons[0] if reasons else decision.summary
    earlier = f"the replay differs since {utc(first)}; " if first < command.interval else ""
    return f"{earlier}{reason}"


def _not_reproduced(command: Command, why: str) -> NotReproduced:
    return NotReproduced(
        interval=command.interval,
        action=command.action,
        bundle=command.bundle,
        source=command.source,
        destination=command.destination,
        why=why,
    )


def _of_move(move: SimulatedMove, brokers: Sequence[str], intervals: Sequence[int], why: str) -> NotReproduced:
    return NotReproduced(
        interval=intervals[move.turn],
        action="unload",
        bundle=move.bundle,
        source=brokers[move.source],
        destination=brokers[move.destination],
        why=why,
    )
