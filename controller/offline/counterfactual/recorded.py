"""A recording, interval by interval: the load of all bundles, what was decided, and what came of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from controller.aggregate.snapshot import Snapshot
from controller.audit.owner_changes import may_lead_to
from controller.model.controls import Controls
from controller.model.decision import Command
from controller.model.journal import JournalEntry
from controller.model.memory import Memory


def same_move(one: Command, other: Command) -> bool:
    """Whether both do the same to the same bundle; their reasons may differ in numbers."""
    return _move(one) == _move(other)


def _move(command: Command) -> tuple[object, ...]:
    return (
        command.id,
        command.action,
        command.mode,
        command.source,
        command.destination,
        command.algorithm,
        command.boundaries,
        command.unload_after_split,
    )


class RecordedCommands:
    """The commands of the recorded journal."""

    def __init__(self, commands: Iterable[Command], period_ms: int, *, known: bool) -> None:
        """*known*: the recording has a journal, so a move without a command was made by somebody else."""
        self.known = known
        self._period_ms = period_ms
        self._by_id: dict[str, Command] = {}
        self._of: dict[tuple[str, str], list[Command]] = {}
        for command in commands:
            self._by_id[command.id] = command
            if command.mode == "active":
                self._of.setdefault((command.action, command.bundle), []).append(command)

    def same(self, command: Command) -> Command | None:
        """The recorded command that does what *command* does, in the same interval; None where there is none."""
        command_recorded = self._by_id.get(command.id)
        return command_recorded if command_recorded is not None and same_move(command_recorded, command) else None

    def behind(self, action: str, bundle: str, source: str, interval: int) -> Command | None:
        """The last command that may have led to what happened to *bundle* by *interval*, epoch ms."""
        for command in reversed(self._of.get((action, bundle), [])):
            if may_lead_to(command, source, interval, self._period_ms):
                return command
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedInterval:
    """One closed interval."""

    #: All bundles in one shard, with all topics that the recording has.
    snapshot: Snapshot
    #: What the controller decided; None where the recording has no decision of this interval.
    entry: JournalEntry | None = None
    #: The memory of the last decision before this interval; None where it is not known.
    memory: Memory | None = None
    #: The controls of an interval that the controller took in too late to act on: it is not in the journal, and the
    #: next decision goes on from the memory after it.  None: it was decided, or nobody took it in.
    passed: Controls | None = None

    @property
    def interval(self) -> int:
        """T, epoch ms."""
        return self.snapshot.interval


class ReplayableRecording(Protocol):
    """A recording that can be read several times."""

    @property
    def cluster(self) -> str:
        """Whose load it is."""
        ...

    @property
    def period_ms(self) -> int:
        """Length of an interval."""
        ...

    def intervals(self) -> Iterator[RecordedInterval]:
        """Every closed interval, the oldest first.  TrimtabError where it cannot be read."""
        ...
