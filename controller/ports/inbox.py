"""The executor's port: commands to execute, answers to publish, and what must survive a crash of the executor."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from controller.model.errors import TrimtabError

#: Of each partition: at the default budgets the commands of 16 hours at least, 4 MB.
MOST_ANSWERED: Final = 20_000


class TakenOverError(TrimtabError):
    """Another executor may have taken over these commands: commands that were not begun must not be begun."""

    exit_code = 75  # EX_TEMPFAIL: the service manager restarts us


class PartitionTakenOverError(TakenOverError):
    """Another executor has a partition now: it carries its commands out and answers them.

    The inbox goes on with its other partitions, and with this one once it is given to this executor again.
    """


class Delivery(NamedTuple):
    """One event of the command topic."""

    partition: int
    value: bytes


class AnswerRecord(NamedTuple):
    """A result, with the partition of the command that it answers."""

    partition: int
    key: str
    value: bytes


class AnsweredIds:
    """The ids of the commands that were answered last, MOST_ANSWERED of them.

    What comes again does so soon, with the batch that an executor which ended had taken; much later it has expired.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        """*ids*: in the order of the answers."""
        self._ids = dict[str, None]()
        for each in ids:
            self.add(each)

    def __contains__(self, command: object) -> bool:
        return command in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, command: str) -> None:
        """*command* is answered now."""
        self._ids.setdefault(command)
        if len(self._ids) > MOST_ANSWERED:
            del self._ids[next(iter(self._ids))]


@dataclass(slots=True)
class PartitionMemory:
    """What is remembered of the commands of one partition, whichever executor had them."""

    #: The highest epoch seen in the partition.
    epoch: int = 0
    #: Ids of commands that have a result.
    answered: AnsweredIds = field(default_factory=AnsweredIds)
    #: Ids of commands that an executor began and did not answer: whether they were carried out is not known.
    begun: set[str] = field(default_factory=set)

    def settle(self) -> None:
        """Remove begun commands that have a result now."""
        self.begun = {command for command in self.begun if command not in self.answered}


class Inbox(Protocol):
    """The command topic, read so that every command is answered once; used by one thread at a time.

    Every method may raise TakenOverError; after that the inbox must not be used any more, unless it is a
    PartitionTakenOverError, which is about one partition alone.
    """

    @property
    def assigned(self) -> int | None:
        """How many partitions this executor has; None until the group has assigned them, be it none."""
        ...

    def take(self, most: int, timeout_seconds: float) -> Sequence[Delivery]:
        """Up to *most* events after the last answered ones; empty if none came within *timeout_seconds*."""
        ...

    def memory(self, partition: int) -> PartitionMemory:
        """What is remembered of *partition*; the caller reads it and updates it."""
        ...

    def newest_epoch(self, partition: int) -> int:
        """The newest epoch in *partition*, also beyond the events taken; called before every act."""
        ...

    def begin(self, partition: int, command: str) -> None:
        """Store durably that *command* (an id) is about to be executed; raises TakenOverError if we were replaced."""
        ...

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """Publish *answers* and commit all events taken, in one transaction for each partition at least.

        PartitionTakenOverError: answers of partitions that others have now are not published, all others are.
        """
        ...

    def close(self) -> None:
        """Leave the group; another executor gets the events that were taken and not answered."""
        ...
