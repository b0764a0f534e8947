"""Where commands come from and answers go to, with what must outlive the executor that works on them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from controller.model.errors import TrimtabError


class TakenOverError(TrimtabError):
    """Another executor has these commands by now, or it cannot be told: what was not begun must not be."""

    exit_code = 75  # EX_TEMPFAIL: the service manager restarts us


class Delivery(NamedTuple):
    """One event of the command log."""

    partition: int
    value: bytes


class AnswerRecord(NamedTuple):
    """A result for the partition whose command it answers."""

    partition: int
    key: str
    value: bytes


@dataclass(slots=True)
class PartitionMemory:
    """What is remembered of a partition's commands, whoever executed them."""

    #: The highest leadership seen in it.
    epoch: int = 0
    #: Commands that have their result.
    answered: set[str] = field(default_factory=set)
    #: Commands that an executor set out to act on and did not come to answer: nobody knows what became of them.
    begun: set[str] = field(default_factory=set)

    def settle(self) -> None:
        """Forget what was begun and has its result by now."""
        self.begun -= self.answered


class Inbox(Protocol):
    """The command log, read so that every command is answered once; used by one thread at a time.

    Every method may raise TakenOverError, behind which this inbox is of no use any more.
    """

    def take(self, most: int, timeout_seconds: float) -> Sequence[Delivery]:
        """Up to *most* events that follow the last ones answered; none came where it is empty."""
        ...

    def memory(self, partition: int) -> PartitionMemory:
        """What is remembered of *partition*, to be looked at and to be brought up to date."""
        ...

    def newest_epoch(self, partition: int) -> int:
        """The newest leadership that *partition* knows of, also behind what was taken; asked before every act."""
        ...

    def begin(self, partition: int, command: str) -> None:
        """Make it known, lastingly, that *command*, an id, is about to be acted on; refused to whoever was replaced."""
        ...

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """Publish *answers* and forget what was taken, together: all events taken count as dealt with."""
        ...

    def close(self) -> None:
        """Leave; what was taken and not answered comes to another executor."""
        ...
