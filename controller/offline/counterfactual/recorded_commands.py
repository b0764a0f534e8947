"""What the recorded controller issued: so that a replay knows which recorded moves were its own."""

from collections.abc import Iterable

from controller.audit.owner_changes import may_lead_to
from controller.model.decision import Command


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
        found = self._by_id.get(command.id)
        return found if found is not None and same_move(found, command) else None

    def behind(self, action: str, bundle: str, source: str, interval: int) -> Command | None:
        """The last command that may have led to what happened to *bundle* by *interval*, epoch ms."""
        for command in reversed(self._of.get((action, bundle), [])):
            if may_lead_to(command, source, interval, self._period_ms):
                return command
        return None
