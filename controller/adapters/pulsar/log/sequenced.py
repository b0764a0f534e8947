"""Records that follow from a record in a fenced partition: written by whoever holds the fence, and by no one twice.

They go to partitions that others write to as well, so the fence is not there.  The writer has a fixed name and numbers
its messages.  The brokers let one process at a time connect under a name, and drop a number that is not higher than
the last one under that name.  So whoever takes over may write all of them again: those that are there are dropped, and
so is what a writer that hung sends later.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import pulsar

from controller.adapters.network.calls import FinishedCall, side_by_side
from controller.adapters.network.waiting import retry
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection, is_passing
from controller.adapters.pulsar.log.words import failure, offline
from controller.adapters.pulsar.log.writer import close_quietly
from controller.model.errors import TrimtabError

#: The brokers need five seconds to see that a process which has the name does not answer.
_NAME_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 0.2

#: Topic (short name) and partition.
WriteTarget: TypeAlias = tuple[str, int]


class Numbered(NamedTuple):
    """A record with its number; numbers of one partition and writer grow."""

    number: int
    key: str
    value: bytes


class SequencedWriter:
    """Writes to partitions under the name *writer*; connected between ``connect`` and ``close`` alone."""

    def __init__(self, connection: LogConnection, *, writer: str) -> None:
        self._connection, self._writer = connection, writer
        self._producers: dict[WriteTarget, pulsar.Producer] = {}
        #: Grows with ``close``.  A connection that comes later than that is closed, or it would keep the name.
        self._turn = 0
        self._lock = threading.Lock()

    def connect(self, targets: Sequence[WriteTarget]) -> None:
        """Connect to all *targets*; LogOfflineError where one cannot be written to now."""
        missing = [target for target in targets if target not in self._producers]
        calls = {target: partial(self._connect, target, self._turn) for target in missing}
        self._raise(side_by_side(calls, 2 * _NAME_SECONDS), before=True)

    def write(self, records: Sequence[tuple[WriteTarget, Sequence[Numbered]]]) -> None:
        """Write the records of each target in their order, the targets side by side; TrimtabError."""
        calls = side_by_side({target: partial(self._write, target, each) for target, each in records}, PATIENCE_SECONDS)
        self._raise(calls, before=False)

    def close(self) -> None:
        """Let another process have the name."""
        with self._lock:
            producers, self._producers = self._producers, {}
            self._turn += 1
        for producer in producers.values():
            close_quietly(producer)

    def _connect(self, target: WriteTarget, turn: int) -> None:
        full = partition_name(topic_name(self._connection.log, target[0]), target[1])
        producer = retry(
            lambda: self._connection.client.create_producer(
                full, producer_name=self._writer, send_timeout_millis=round(PATIENCE_SECONDS * 1000)
            ),
            _NAME_SECONDS,
            # Busy: whoever had the name before has not let go of it yet.
            again_after=lambda error: is_passing(error) or isinstance(error, pulsar.ProducerBusy),
            every=_RETRY_SECONDS,
        )
        with self._lock:
            in_time = turn == self._turn
            if in_time:
                self._producers[target] = producer
        if not in_time:
            close_quietly(producer)

    def _write(self, target: WriteTarget, records: Sequence[Numbered]) -> None:
        producer = self._producers[target]
        for record in records:
            producer.send(record.value, partition_key=record.key or None, sequence_id=record.number)

    def _raise(self, calls: "dict[WriteTarget, FinishedCall]", *, before: bool) -> None:
        failed = [(target, call.error) for target, call in calls.items() if call.error is not None]
        if not failed:
            return
        self.close()
        (name, partition), error = failed[0]
        place = f"{where(self._connection.log, name)}, partition {partition}"
        if not isinstance(error, pulsar.PulsarException | TrimtabError | TimeoutError):
            raise error
        raise (offline(place, error) if before else failure(place, error, operation="produce")) from error


def connected(writer: SequencedWriter, targets: Sequence[WriteTarget]) -> "closing[SequencedWriter]":
    """*writer*, connected to *targets* for the length of a block."""
    writer.connect(targets)
    return closing(writer)
