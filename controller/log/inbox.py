"""An executor's input: each command is answered once, even if executors die, hang or take over from each other.

Before every act the started commands are stored with the claim, which also checks that the partition still belongs to
this executor.  Answers are stored together with the position up to which commands were read (port.PartitionClaim).
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

#: For each partition: at least 16 hours of commands at the default budgets, 4 MB.
MOST_ANSWERED: Final = 20_000
#: How often the end of a partition is checked.
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

    Repeats come soon, with the unfinished batch of an executor that ended; later ones have expired.
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
    """State of one partition of commands, carried from one executor to the next."""

    #: The highest epoch seen in the partition.
    epoch: int = 0
    #: Ids of commands that have a result.
    answered: AnsweredIds = field(default_factory=AnsweredIds)
    #: Ids of commands that were started and not answered: whether they were carried out is unknown.
    started: set[str] = field(default_factory=set)

    def forget_answered(self) -> None:
        """Remove started commands that have a result now."""
        self.started = {command for command in self.started if command not in self.answered}


class _State(Record):
    """The state stored with a claim, as JSON."""

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
    #: The last record polled that is not finished; None: all are.
    last_polled: Position | None = None


class Inbox:
    """The commands in *log*, read so that every command is answered once; used by one thread at a time.

    Every method may raise TakenOverError; after that the inbox must not be used any more, unless it is a
    PartitionTakenOverError, which is about one partition alone.
    """

    def __init__(self, log: Log, *, group: str, cluster: str) -> None:
        self._log, self._cluster = log, cluster
        counts = log.partitions("commands", "results")
        if counts["commands"] > counts["results"]:
            raise SettingsError(
                f"{log.name('commands')} has {counts['commands']} partitions and {log.name('results')}"
                f" {counts['results']}: the result topic needs at least as many, since a result goes to the partition"
                " with the same number as its command's"
            )
        self._claims = log.claims(group)
        self._partitions: dict[int, _Partition] = {}

    @property
    def assigned(self) -> int | None:
        """Number of partitions assigned to this executor; None until the group has assigned any or none."""
        return self._claims.assigned

    def poll(self, limit: int, timeout_seconds: float) -> list[Delivery]:
        """Up to *limit* events after the last answered one; empty if none came within *timeout_seconds*."""
        deliveries = []
        for record in self._claims.poll(limit, timeout_seconds):
            try:
                partition = self._claimed(record.partition, record.position)
            except PartitionTakenOverError:
                continue  # another executor took it over, and gets these events
            partition.last_polled = record.position
            deliveries.append(Delivery(record.partition, record.value))
        return deliveries

    def memory(self, partition: int) -> PartitionMemory:
        """The state of *partition*; the caller reads and updates it."""
        return self._owned(partition).memory

    def newest_epoch(self, partition: int) -> int:
        """The newest epoch in *partition*, also in events not polled yet; called before every act."""
        owned = self._owned(partition)
        if owned.next_look.passed:
            with self._attempt(partition):
                for record in owned.ahead.read_to_end():
                    known = owned.newest_epoch or owned.memory.epoch
                    owned.newest_epoch = newer_epoch(known, self._epoch_in(record.value))
            owned.next_look = Deadline.after(_LOOK_AGAIN_SECONDS)
        return owned.newest_epoch

    def begin(self, partition: int, command: str) -> None:
        """Store durably that *command* (an id) is about to be executed.  TakenOverError: another executor has it."""
        owned = self._owned(partition)
        owned.memory.started.add(command)
        with self._attempt(partition):
            owned.claim.store(self._encoded(owned.memory))

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """Publish *answers* and commit all polled events, in at least one transaction for each partition.

        PartitionTakenOverError: the answers of partitions that other executors took over are not published.
        """
        lost = {answer.partition for answer in answers} - self._partitions.keys()
        for number, owned in sorted(self._partitions.items()):
            if owned.last_polled is None:
                continue
            owned.memory.forget_answered()
            results = [
                Out("results", answer.value, key=answer.key.encode(), partition=number)
                for answer in answers
                if answer.partition == number
            ]
            try:
                with self._attempt(number):
                    owned.claim.finish(self._encoded(owned.memory), results, owned.last_polled)
            except PartitionTakenOverError:
                lost.add(number)
            owned.last_polled = None
        if lost:
            raise PartitionTakenOverError(
                f"{self._log.name('commands')}: another executor has partitions {sorted(lost)} now"
            )

    def close(self) -> None:
        """Leave the group; another executor gets the events that were polled and not answered."""
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
        """The partition *number*; after a takeover with the state of its last executor.

        *first*: the first record of it that this executor has polled.
        """
        with self._attempt(number):
            claim = self._claims.claim(number)
            known = self._partitions.get(number)
            if known is not None and known.claim is claim:
                return known
            self._drop(number)
            state = self._state(number, claim.state)
            memory = PartitionMemory(epoch=state.epoch, answered=self._answered(number), started=set(state.begun))
            ahead = self._log.read("commands", Start(position=first), partition=number)
            self._partitions[number] = _Partition(claim, memory, ahead, Deadline(0.0))
            return self._partitions[number]

    def _answered(self, partition: int) -> AnsweredIds:
        """The ids of the commands that have a result in *partition*."""
        with closing(self._log.read("results", partition=partition)) as reader:
            return AnsweredIds(
                command for record in reader.read_to_end() if (command := answered_command(record.value))
            )

    def _drop(self, partition: int) -> None:
        known = self._partitions.pop(partition, None)
        if known is not None:
            known.ahead.close()

    def _encoded(self, memory: PartitionMemory) -> bytes:
        state = {"epoch": memory.epoch, "begun": sorted(memory.started)}
        encoded = json.dumps(state, separators=(",", ":")).encode()
        if len(encoded) > self._claims.largest_state:
            raise TakenOverError(
                f"the state with {len(memory.started)} started commands takes {len(encoded)} bytes, at most"
                f" {self._claims.largest_state} can be stored: set a smaller batch in [executor]"
            )
        return encoded

    def _state(self, partition: int, stored: bytes) -> _State:
        try:
            return validate(_State, stored) if stored else _State()
        except WireError as error:
            raise StateError(
                f"{self._log.name('commands')}, partition {partition}: its stored state is not an executor's state"
                f" ({error}): check who writes there. {self._claims.remedy}"
            ) from error

    def _epoch_in(self, value: bytes) -> int:
        try:
            event = own_event(value, self._cluster)
        except WireError:
            return 0
        return 0 if event is None else event.epoch

    @contextmanager
    def _attempt(self, partition: int) -> Iterator[None]:
        """Release *partition* if another executor has it.  TakenOverError for any other failure."""
        try:
            yield
        except PartitionTakenOverError:
            self._drop(partition)
            raise
        except (TakenOverError, AccessDeniedError, StateError):
            raise
        except TrimtabError as error:
            raise TakenOverError(f"{self._log.name('commands')}, partition {partition}: {error}") from error
