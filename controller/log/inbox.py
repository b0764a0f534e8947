"""The commands as an executor takes them: each one answered once, whoever dies, hangs or takes over.

What an executor has begun is stored with its claim before every act, which asks the log whether the partition is still
its own; answers are stored together with how far the commands were read (port.Claim).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller.adapters.network.deadline import Deadline
from controller.log.port import (
    Log,
    Out,
    PartitionClaim,
    PartitionTakenOverError,
    Position,
    Reader,
    Start,
    TakenOverError,
)
from controller.model.errors import AccessDeniedError, SettingsError, StateError, TrimtabError, WireError
from controller.model.leadership import newer_epoch
from controller.wire.base import Count, Items, Record, validate
from controller.wire.commands import own_event
from controller.wire.results import answered_command

#: Of each partition: at the default budgets the commands of 16 hours at least, 4 MB.
MOST_ANSWERED: Final = 20_000
#: The end of a partition is looked at so often.
_LOOK_AGAIN_SECONDS: Final = 1.0


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


class _State(Record):
    """What is stored with a claim."""

    epoch: Count = 0
    begun: Items[str] = ()


@dataclass(slots=True)
class _Partition:
    """A partition of the commands while this executor has it."""

    claim: PartitionClaim
    memory: PartitionMemory
    #: Reads on to the end, for the newest epoch.
    ahead: Reader
    next_look: Deadline
    newest_epoch: int = 0
    #: The last record that was taken and is not finished.
    taken: Position | None = None


class Inbox:
    """The commands in *log*, read so that every command is answered once; used by one thread at a time.

    Every method may raise TakenOverError; after that the inbox must not be used any more, unless it is a
    PartitionTakenOverError, which is about one partition alone.
    """

    def __init__(self, log: Log, *, group: str, cluster: str) -> None:
        self._log, self._cluster = log, cluster
        found = log.partitions("commands", "results")
        if found["commands"] > found["results"]:
            raise SettingsError(
                f"{log.name('commands')} has {found['commands']} partitions and {log.name('results')}"
                f" {found['results']}: the result topic needs at least as many, since a result goes to the partition"
                " with the number of its command's"
            )
        self._claims = log.claims(group)
        self._partitions: dict[int, _Partition] = {}

    @property
    def assigned(self) -> int | None:
        """How many partitions this executor has; None until the group has assigned them, be it none."""
        return self._claims.assigned

    def take(self, most: int, timeout_seconds: float) -> list[Delivery]:
        """Up to *most* events after the last answered ones; empty if none came within *timeout_seconds*."""
        taken = []
        for record in self._claims.take(most, timeout_seconds):
            try:
                partition = self._claimed(record.partition, record.position)
            except PartitionTakenOverError:
                continue  # another one was faster, and gets what was taken
            partition.taken = record.position
            taken.append(Delivery(record.partition, record.value))
        return taken

    def memory(self, partition: int) -> PartitionMemory:
        """What is remembered of *partition*; the caller reads it and updates it."""
        return self._owned(partition).memory

    def newest_epoch(self, partition: int) -> int:
        """The newest epoch in *partition*, also beyond the events taken; called before every act."""
        owned = self._owned(partition)
        if owned.next_look.passed:
            with self._attempt(partition):
                for record in owned.ahead.rest():
                    known = owned.newest_epoch or owned.memory.epoch
                    owned.newest_epoch = newer_epoch(known, self._epoch_in(record.value))
            owned.next_look = Deadline.after(_LOOK_AGAIN_SECONDS)
        return owned.newest_epoch

    def begin(self, partition: int, command: str) -> None:
        """Store durably that *command* (an id) is about to be executed; raises TakenOverError if we were replaced."""
        owned = self._owned(partition)
        owned.memory.begun.add(command)
        with self._attempt(partition):
            owned.claim.store(self._encoded(owned.memory))

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """Publish *answers* and commit all events taken, in one transaction for each partition at least.

        PartitionTakenOverError: answers of partitions that others have now are not published, all others are.
        """
        gone = {answer.partition for answer in answers} - self._partitions.keys()
        for number, owned in sorted(self._partitions.items()):
            if owned.taken is None:
                continue
            owned.memory.settle()
            results = [
                Out("results", answer.value, key=answer.key.encode(), partition=number)
                for answer in answers
                if answer.partition == number
            ]
            try:
                with self._attempt(number):
                    owned.claim.finish(self._encoded(owned.memory), results, owned.taken)
            except PartitionTakenOverError:
                gone.add(number)
            owned.taken = None
        if gone:
            raise PartitionTakenOverError(
                f"{self._log.name('commands')}: another executor has partitions {sorted(gone)} now"
            )

    def close(self) -> None:
        """Leave the group; another executor gets the events that were taken and not answered."""
        for partition in list(self._partitions):
            self._drop(partition)
        self._claims.close()
        self._log.close()

    def _owned(self, partition: int) -> _Partition:
        if partition not in self._partitions:
            raise PartitionTakenOverError(
                f"{self._log.name('commands')}, partition {partition}: another executor has it now"
            )
        return self._partitions[partition]

    def _claimed(self, number: int, first: Position) -> _Partition:
        """The partition *number*; where it was taken over anew, with what its last executor left.

        *first*: the first record that this executor gets of it then.
        """
        with self._attempt(number):
            claim = self._claims.claim(number)
            known = self._partitions.get(number)
            if known is not None and known.claim is claim:
                return known
            self._drop(number)
            state = self._state(number, claim.state)
            memory = PartitionMemory(epoch=state.epoch, answered=self._answered(number), begun=set(state.begun))
            ahead = self._log.read("commands", Start(position=first), partition=number)
            self._partitions[number] = _Partition(claim, memory, ahead, Deadline(0.0))
            return self._partitions[number]

    def _answered(self, partition: int) -> AnsweredIds:
        """The ids of the commands that have a result in *partition*."""
        with closing(self._log.read("results", partition=partition)) as reader:
            return AnsweredIds(found for record in reader.rest() if (found := answered_command(record.value)))

    def _drop(self, partition: int) -> None:
        known = self._partitions.pop(partition, None)
        if known is not None:
            known.ahead.close()

    def _encoded(self, memory: PartitionMemory) -> bytes:
        state = {"epoch": memory.epoch, "begun": sorted(memory.begun)}
        encoded = json.dumps(state, separators=(",", ":")).encode()
        if len(encoded) > self._claims.largest_state:
            raise TakenOverError(
                f"the {len(memory.begun)} commands that were begun take {len(encoded)} bytes, and"
                f" {self._claims.largest_state} can be stored: set a smaller batch in [executor]"
            )
        return encoded

    def _state(self, partition: int, stored: bytes) -> _State:
        try:
            return validate(_State, stored) if stored else _State()
        except WireError as error:
            raise StateError(
                f"{self._log.name('commands')}, partition {partition}: what is stored with it is no state of an"
                f" executor ({error}): who else writes there? {self._claims.remedy}"
            ) from error

    def _epoch_in(self, value: bytes) -> int:
        try:
            event = own_event(value, self._cluster)
        except WireError:
            return 0
        return 0 if event is None else event.epoch

    @contextmanager
    def _attempt(self, partition: int) -> Iterator[None]:
        """Give *partition* up where another executor has it; TakenOverError where anything else fails."""
        try:
            yield
        except PartitionTakenOverError:
            self._drop(partition)
            raise
        except (TakenOverError, AccessDeniedError, StateError):
            raise
        except TrimtabError as error:
            raise TakenOverError(f"{self._log.name('commands')}, partition {partition}: {error}") from error
