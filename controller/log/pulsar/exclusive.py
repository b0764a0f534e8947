"""A partition with one writer at a time: taking it over fences the earlier writer.

The brokers enforce the fence: a producer with ExclusiveWithFencing ends the one before it, even if that process hangs
and comes back.  A message of the earlier writer may still be on its way to the bookies then.  So the new writer first
writes a mark, and reads up to it: all records of earlier writers lie before the mark.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final
from uuid import uuid4

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import LARGEST_RECORD, PATIENCE_SECONDS, partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.errors import failure
from controller.adapters.pulsar.log.positions import Entry, entry_of, number_of
from controller.adapters.pulsar.log.topics import RETENTION_SUBSCRIPTION
from controller.log.port import LogRecord, Out, Position
from controller.log.pulsar.reading import (
    FIRST,
    MARK,
    PartitionReader,
    ReadWindows,
    first_in,
    newest_properties,
    position_of,
)
from controller.log.pulsar.writing import Sending, close_quietly, content
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    TrimtabError,
)

#: Marks that are written at most, until the brokers say of one where it lies.
_MARKS: Final = 5


class ExclusivePartition:
    """Exclusive: a partition of the topic *name* (short name), written under *writer* by this process alone.

    After an error only a new object may be used: it is unknown whether the last write was stored.
    """

    def __init__(
        self, connection: LogConnection, windows: ReadWindows, name: str, partition: int, *, writer: str
    ) -> None:
        self._connection, self._windows, self.name, self.partition = connection, windows, name, partition
        self._writer = writer
        self._producer: pulsar.Producer | None = None
        #: Why there is no producer.
        self._closed = ""
        self._mark: Position | None = None
        #: On all that is written.
        self._properties: dict[str, str] = {}

    def take_over(self, mark: bytes | None) -> None:
        """Fence earlier writers, and find the end of what they wrote by *mark*; None: write no mark."""
        connection = self._connection
        full = partition_name(topic_name(connection.log, self.name), self.partition)
        try:
            self._producer = connection.patiently(
                lambda: connection.client.create_producer(
                    full,
                    producer_name=self._writer,
                    access_mode=pulsar.ProducerAccessMode.ExclusiveWithFencing,
                    send_timeout_millis=round(PATIENCE_SECONDS * 1000),
                    compression_type=pulsar.CompressionType.LZ4,
                    batching_enabled=False,  # each record has a position of its own
                ),
                self.name,
                "produce",
            )
        except TrimtabError as error:
            raise self._fail(error) from error
        if mark is not None:
            self._mark = self._marked(mark)

    def _marked(self, mark: bytes) -> Position:
        """Write *mark*; returns its position."""
        for _ in range(_MARKS):
            at = self._send(mark, {MARK: str(uuid4())})
            # Brokers do not return the position of a message that the client had to send twice because its connection
            # broke before the answer arrived.  Another mark comes after it, and so after all that earlier writers
            # wrote.
            if at.ledger_id() >= 0:
                return number_of(at.ledger_id(), at.entry_id(), -1)
        raise self._fail(
            JournalError(f"{self._place}: the brokers stored {_MARKS} records but did not return their positions")
        )

    def append(self, outs: Sequence[Out]) -> None:
        """See Exclusive."""
        for out in outs:
            if len(out.value) > LARGEST_RECORD:
                raise JournalError(f"{self._place}: a record has {len(out.value)} bytes, allowed: {LARGEST_RECORD}")
        producer = self._connected()
        sending = Sending(self._connection, Deadline.after(PATIENCE_SECONDS))
        try:
            for out in outs:
                sending.send(producer, self.name, content(out, self._properties))
            sending.wait()
        except TrimtabError as error:
            raise self._fail(error) from error

    def before(self, about: int | None) -> Iterator[LogRecord]:
        """See Exclusive."""
        try:
            yield from self._before(about)
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error

    def _before(self, about: int | None) -> Iterator[LogRecord]:
        mark = self._mark
        if mark is None:
            raise JournalError(f"{self._place}: it was taken over without a mark")
        oldest = first_in(self._properties)
        if about is not None:
            window = self._windows.read_backwards(self.name, self.partition, mark, about, oldest)
            if not window.reached:
                raise JournalError(self._too_short(mark))
            yield from window.records
            return
        with closing(PartitionReader(self._connection, self.name, self.partition, oldest)) as reader:
            for message in reader.messages():
                if position_of(message) >= mark:
                    return
                record = reader.record(message)
                if record is not None:
                    yield record
        raise JournalError(self._too_short(mark))

    def _too_short(self, mark: Position) -> str:
        return f"{self._place}: reading did not reach its end, {entry_of(mark)}; try again"

    def prune_before(self, first: Position) -> None:
        """See Exclusive.  Retention deletes what is here."""

    def leave(self) -> None:
        """Write a last mark, unless the brokers do not answer; then stop writing."""
        if self._producer is not None and self._producer.is_connected():
            with suppress(TrimtabError):
                self._send(b"", {MARK: "left"})
        self.close()

    def close(self) -> None:
        """See Exclusive."""
        producer, self._producer = self._producer, None
        if producer is not None:
            close_quietly(producer)

    def _connected(self) -> pulsar.Producer:
        if self._producer is None:
            raise JournalError(f"{self._place}: nothing is written there after an error: {self._closed}")
        return self._producer

    def _send(self, value: bytes, properties: Mapping[str, str]) -> pulsar.MessageId:
        try:
            return self._connected().send(value, properties={**self._properties, **properties})
        except pulsar.PulsarException as error:
            raise self._fail(error) from error

    @property
    def _place(self) -> str:
        return f"{where(self._connection.log, self.name)}, partition {self.partition}"

    def _fail(self, error: BaseException) -> TrimtabError:
        self.close()
        cause = error.__cause__ if isinstance(error, TrimtabError) else error
        failed: TrimtabError
        if isinstance(cause, pulsar.ProducerFenced):
            failed = LeadershipLostError(f"{self._place}: another process writes it now")
        else:
            failed = failure(self._place, error, operation="produce")
            failed = failed if isinstance(failed, AccessDeniedError) else JournalError(str(failed))
        self._closed = str(failed)
        return failed


class PrunedPartition(ExclusivePartition):
    """One whose records Pulsar keeps until the holder needs them no more."""

    def take_over(self, mark: bytes | None) -> None:
        """Take over, and keep the pruning position of the earlier holder."""
        try:
            self._subscribe()
            newest = newest_properties(self._connection, self.name, self.partition)
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error
        self._properties = {name: text for name, text in newest.items() if name == FIRST}
        super().take_over(mark)

    def prune_before(self, first: Position) -> None:
        """See Exclusive."""
        if self._properties.get(FIRST) == str(first):
            return
        self._properties[FIRST] = str(first)
        self._send(b"", {MARK: "pruned"})
        self._subscribe(self._windows.last_before(self.name, self.partition, first))

    def _subscribe(self, done: Entry | None = None) -> None:
        retain_after(self._connection, self.name, self.partition, done)


def retain_after(connection: LogConnection, name: str, partition: int, done: Entry | None = None) -> None:
    """Have Pulsar retain everything after *done* in the topic *name* (short name); None: after the previous position,
    or all."""
    full = partition_name(topic_name(connection.log, name), partition)
    consumer = connection.patiently(
        lambda: connection.client.subscribe(
            full,
            RETENTION_SUBSCRIPTION,
            consumer_type=pulsar.ConsumerType.Failover,
            initial_position=pulsar.InitialPosition.Earliest,
            receiver_queue_size=1,
        ),
        name,
        "consume",
    )
    with closing(consumer):
        if done is not None:
            try:
                consumer.acknowledge_cumulative(pulsar.MessageId(-1, done.ledger, done.entry, -1))
            except pulsar.PulsarException as error:
                raise failure(where(connection.log, name), error, operation="consume") from error
