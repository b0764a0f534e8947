"""A partition of the commands that this executor has: what it has begun and answered, kept in the control topic."""

import json
import time
from collections.abc import Callable, Container, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.fenced import FencedPartition
from controller.adapters.pulsar.log.reader import (
    LAST,
    MARK,
    MessagePlace,
    PartitionReader,
    Start,
    one_record,
    read_rest,
)
from controller.adapters.pulsar.log.sequenced import Numbered, SequencedWriter, connected
from controller.adapters.pulsar.log.topics import executors_control
from controller.adapters.pulsar.log.writer import now_ms
from controller.model.errors import AccessDeniedError, LeadershipLostError, StateError, TrimtabError, WireError
from controller.ports.inbox import (
    AnsweredIds,
    AnswerRecord,
    PartitionMemory,
    PartitionTakenOverError,
    TakenOverError,
)
from controller.ports.leadership import newer_epoch
from controller.wire.base import Items, Record, validate
from controller.wire.commands import own_event
from controller.wire.results import answered_command

#: The end of the partition is looked at so often.
_LOOK_AGAIN_SECONDS: Final = 1.0
#: Epochs never go down, so those of the last day are enough.
_DAY_MS: Final = 86_400_000
_WAIT_SECONDS: Final = 0.2
NOTHING_DONE: Final[MessagePlace] = (-1, -1, 0)
#: Answers of one batch are fewer: see ``batch`` in [executor].
_MOST_ANSWERS: Final = 1_000
#: With it results are numbered in 63 bits.
_HIGHEST_NUMBER: Final = (1 << 63) // _MOST_ANSWERS - 1


class OwnedPartition:
    """Partition *partition* of the commands, taken over from whoever had it.

    PartitionTakenOverError where another executor has it now; TakenOverError, or AccessDeniedError, where anything else
    fails: what was being written may be there, or not.
    """

    def __init__(self, connection: LogConnection, partition: int, *, cluster: str, patience_seconds: float) -> None:
        """Where somebody has just begun commands, wait for the answers, for *patience_seconds* since the last sign."""
        self._connection, self._partition, self._cluster = connection, partition, cluster
        self._name = executors_control(connection.log)
        self._control = FencedPartition(connection, self._name, partition, writer=f"trimtab-executor-{cluster}")
        self._results = SequencedWriter(connection, writer=f"trimtab-results-{cluster}")
        self._commands: PartitionReader | None = None
        self._next_look = Deadline(0.0)
        self._epoch = 0
        self._attempt(lambda: self._take_over(patience_seconds))

    def _take_over(self, patience_seconds: float) -> None:
        self._wait_for_answers(patience_seconds)
        self._control.take_over()
        state = self._stored()
        answered = self._answered()
        self._number = state.number
        #: The last event that needs nothing more; those up to it may come again.
        self.done = state.done
        self._send(state.answers, there=answered)
        #: What is remembered of the partition.
        self.memory = PartitionMemory(epoch=state.epoch, answered=answered, begun=set(state.begun))
        for each in state.answers:
            self.memory.answered.add(answered_command(each.value))

    def _wait_for_answers(self, seconds: float) -> None:
        """Whoever has the partition may be acting on a command: the next one could only say that it is unknown."""
        deadline = Deadline.after(seconds)  # its clock may be ahead
        while not deadline.passed:
            newest = one_record(self._connection, self._name, self._partition, LAST)
            if newest is None or MARK in newest.properties or not self._state(newest.value).begun:
                return
            if now_ms() - newest.timestamp_ms >= seconds * 1000:
                return
            time.sleep(_WAIT_SECONDS)

    def newest_epoch(self) -> int:
        """The newest epoch in the partition; asked anew once a second."""
        if self._next_look.passed:
            self._attempt(self._look)
        return self._epoch

    def store(self, answers: Sequence[AnswerRecord] = ()) -> None:
        """Store what is remembered, with *answers*, durably."""
        self._attempt(lambda: self._store(answers))

    def answer(self, answers: Sequence[AnswerRecord], done: MessagePlace) -> None:
        """Store *answers* to what was taken up to *done*, and write them to the result topic."""
        self.done = max(self.done, done)
        self.store(answers)
        self._attempt(lambda: self._send(answers))

    def close(self) -> None:
        """Let another executor have it, at once."""
        self._results.close()
        self._control.leave({MARK: "left"})
        if self._commands is not None:
            self._commands.close()

    def _store(self, answers: Sequence[AnswerRecord]) -> None:
        # The clock is in it, so that it also grows where the state was lost.
        self._number = max(self._number + 1, now_ms())
        state = {
            "number": self._number,
            "epoch": self.memory.epoch,
            "begun": sorted(self.memory.begun),
            "done": list(self.done),
            "answers": [{"key": each.key, "value": each.value.decode()} for each in answers],
        }
        self._control.append(json.dumps(state, separators=(",", ":")).encode())

    def _send(self, answers: Sequence[AnswerRecord], there: Container[str] = ()) -> None:
        """Write *answers* to the result topic; not those to the commands *there*, which have theirs."""
        numbered = [
            Numbered(self._number * _MOST_ANSWERS + nth, each.key, each.value)
            for nth, each in enumerate(answers)
            if answered_command(each.value) not in there
        ]
        if not numbered:
            return
        target = (self._connection.log.results_topic, self._partition)
        with connected(self._results, [target]) as results:
            results.write([(target, numbered)])

    def _stored(self) -> "_State":
        """The last state of whoever had the partition before."""
        for start in self._control.windows(now_ms()):
            last = None
            for record in self._control.before(start):
                last = record.value
            if last is not None:
                return self._state(last)
        return _State()

    def _state(self, value: bytes) -> "_State":
        try:
            return _state(value, self._partition)
        except WireError as error:
            topic = f"{topic_name(self._connection.log, self._name)}-partition-{self._partition}"
            raise StateError(
                f"the last record of {topic} is no state of an executor ({error}): who else writes there? Once no"
                " executor runs, `pulsar-admin topics delete` of it forgets what was begun"
            ) from error

    def _answered(self) -> AnsweredIds:
        """The ids of the commands that have a result."""
        records = read_rest(self._connection, self._connection.log.results_topic, self._partition)
        return AnsweredIds(found for record in records if (found := answered_command(record.value)))

    def _look(self) -> None:
        if self._commands is None:
            since = Start(since_ms=now_ms() - _DAY_MS)
            self._commands = PartitionReader(
                self._connection, self._connection.log.commands_topic, self._partition, since
            )
        for record in self._commands.rest():
            if record.value and MARK not in record.properties:
                self._epoch = newer_epoch(self._epoch or self.memory.epoch, self._epoch_of(record.value))
        self._next_look = Deadline.after(_LOOK_AGAIN_SECONDS)

    def _epoch_of(self, value: bytes) -> int:
        try:
            event = own_event(value, self._cluster)
        except WireError:
            return 0
        return 0 if event is None else event.epoch

    def _attempt(self, call: Callable[[], None]) -> None:
        try:
            call()
        except AccessDeniedError:
            self.close()
            raise
        except LeadershipLostError as error:
            self.close()
            raise PartitionTakenOverError(
                f"partition {self._partition} of the commands: another executor has it now"
            ) from error
        except TrimtabError as error:
            self.close()
            raise TakenOverError(f"partition {self._partition} of the commands: {error}") from error


class _State(NamedTuple):
    """What is stored with every command that is begun, and every batch that is answered."""

    #: Grows; results are numbered by it.
    number: int = 0
    epoch: int = 0
    begun: tuple[str, ...] = ()
    done: MessagePlace = NOTHING_DONE
    answers: tuple[AnswerRecord, ...] = ()


class _Answer(Record):
    key: str
    value: str


class _Stored(Record):
    """A state as it lies in the control topic."""

    number: Annotated[int, Field(ge=0, le=_HIGHEST_NUMBER)]
    epoch: Annotated[int, Field(ge=0, lt=1 << 63)]
    begun: Items[str]
    done: tuple[int, int, int]
    answers: Items[_Answer]


def _state(value: bytes, partition: int) -> _State:
    """What *value* says.  WireError where it is no state."""
    stored = validate(_Stored, value)
    return _State(
        number=stored.number,
        epoch=stored.epoch,
        begun=stored.begun,
        done=stored.done,
        answers=tuple(AnswerRecord(partition, each.key, each.value.encode()) for each in stored.answers),
    )
