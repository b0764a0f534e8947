"""Reads the log's topics: records in order within a partition, up to the present end or without end.

A reader leaves no subscription behind.  Times are the publish times that producers give, which may be wrong: the
client library does not show the brokers' own.  Callers that depend on them set bounds.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final, NamedTuple, TypeAlias

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, key_of, properties_of, published_ms
from controller.adapters.pulsar.log.words import failure
from controller.model.errors import TrimtabError

#: Ledger, entry, and index in the entry's batch: places of one partition compare in the order of writing.
MessagePlace: TypeAlias = tuple[int, int, int]

#: On messages that are no records: a writer finds the end of what came before it by one.
MARK: Final = "trimtab.mark"
#: How often a reader of a whole topic looks whether it has new partitions.
_LOOK_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 0.02
_READ_MS: Final = 10_000
_QUEUE: Final = 500


class LogRecord(NamedTuple):
    """One record as it lies in a topic."""

    partition: int
    place: MessagePlace
    key: str
    value: bytes
    #: When its producer says that it sent it, epoch ms; any number of 63 bits.
    timestamp_ms: int
    properties: Mapping[str, str]


class Start(NamedTuple):
    """Where to begin in a partition: the first of these that is given, else the oldest record."""

    #: The entry with this ledger and number, itself included.
    entry: tuple[int, int] | None = None
    #: What was appended then or later, epoch ms.
    since_ms: int | None = None
    #: The last record, itself included; or what comes after it.
    last: bool = False
    end: bool = False


OLDEST: Final = Start()
LAST: Final = Start(last=True)
END: Final = Start(end=True)


class PartitionReader:
    """Reads one partition of the topic *name* (short name)."""

    def __init__(self, connection: LogConnection, name: str, partition: int, start: Start = OLDEST) -> None:
        self._connection, self._name, self.partition = connection, name, partition
        self._where = f"{where(connection.log, name)}, partition {partition}"
        full = partition_name(topic_name(connection.log, name), partition)
        at, since = _message_id(start), start.since_ms
        reader = connection.patiently(
            lambda: connection.client.create_reader(
                full,
                at,
                start_message_id_inclusive=start.entry is not None or start.last,
                receiver_queue_size=_QUEUE,
                **AS_THEY_ARE,
            ),
            name,
            "consume",
        )
        self._reader = reader
        if since is not None and start.entry is None:
            connection.patiently(lambda: reader.seek(since), name, "consume")

    def has_more(self) -> bool:
        """Whether there is a record now that was not read."""
        return bool(self._connection.patiently(self._reader.has_message_available, self._name, "consume"))

    def next(self, timeout_ms: int = 1) -> LogRecord | None:
        """The next record, None where none comes within *timeout_ms*.  Marks come, too."""
        try:
            return _record(self.partition, self._reader.read_next(timeout_ms))
        except pulsar.Timeout:
            return None
        except pulsar.PulsarException as error:
            raise failure(self._where, error, operation="consume") from error

    def rest(self) -> Iterator[LogRecord]:
        """The records up to the present end."""
        while self.has_more():
            record = self.next(_READ_MS)
            if record is None:
                raise TrimtabError(f"{self._where}: a record that is there did not come within {_READ_MS // 1000} s")
            yield record

    def close(self) -> None:
        """End it."""
        try:
            self._reader.close()
        except pulsar.PulsarException:
            return  # it is closed, or the broker is away


class TopicReader:
    """Reads all partitions of the topic *name*; those that it gets later from their beginning."""

    def __init__(self, connection: LogConnection, name: str, start: Start = OLDEST) -> None:
        self._connection, self._name = connection, name
        self._readers: list[PartitionReader] = []
        self._next_look = Deadline.after(_LOOK_SECONDS)
        self._turn = 0
        try:
            for partition in range(connection.existing(name)):
                self._readers.append(PartitionReader(connection, name, partition, start))
        except BaseException:
            self.close()
            raise

    def poll(self, timeout_seconds: float = 0.0) -> LogRecord | None:
        """The next record of any partition; None where none came within *timeout_seconds*."""
        deadline = Deadline.after(timeout_seconds)
        while True:
            self._look()
            for _ in self._readers:
                self._turn = (self._turn + 1) % len(self._readers)
                record = self._readers[self._turn].next()
                if record is not None:
                    self._turn -= 1  # the same partition again: its records are at hand
                    return record
            if deadline.passed:
                return None
            time.sleep(min(_IDLE_SECONDS, deadline.left))

    def rest(self) -> Iterator[LogRecord]:
        """The records up to the present end, one partition after the other."""
        self._look()
        for reader in self._readers:
            yield from reader.rest()

    def close(self) -> None:
        """End it."""
        for reader in self._readers:
            reader.close()

    def _look(self) -> None:
        if not self._next_look.passed:
            return
        self._next_look = Deadline.after(_LOOK_SECONDS)
        for partition in range(len(self._readers), self._connection.existing(self._name)):
            self._readers.append(PartitionReader(self._connection, self._name, partition))


def read_rest(connection: LogConnection, name: str, partition: int, start: Start = OLDEST) -> Iterator[LogRecord]:
    """The records of a partition from *start* to its present end, without marks."""
    with closing(PartitionReader(connection, name, partition, start)) as reader:
        for record in reader.rest():
            if MARK not in record.properties:
                yield record


def one_record(connection: LogConnection, name: str, partition: int, start: Start) -> LogRecord | None:
    """The first record of a partition from *start* on, a mark too; None where there is none."""
    with closing(PartitionReader(connection, name, partition, start)) as reader:
        return reader.next(_READ_MS) if reader.has_more() else None


def place_of(at: pulsar.MessageId) -> MessagePlace:
    """The place of the message *at*."""
    return (at.ledger_id(), at.entry_id(), max(at.batch_index(), 0))


def _message_id(start: Start) -> pulsar.MessageId:
    if start.entry is not None:
        return pulsar.MessageId(-1, *start.entry, -1)
    return pulsar.MessageId.latest if start.last or start.end else pulsar.MessageId.earliest


def _record(partition: int, message: pulsar.Message) -> LogRecord:
    return LogRecord(
        partition=partition,
        place=place_of(message.message_id()),
        key=key_of(message),
        value=message.data(),
        timestamp_ms=published_ms(message),
        properties=properties_of(message),
    )
