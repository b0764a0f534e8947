"""Reads the log's topics: records in order within a partition, up to the present end or continuously.

A reader creates no durable subscription.  Times are the publish times of producers, since the client library does not
expose those of the brokers.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import LogExtents
from controller.adapters.pulsar.log.errors import failure
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, key_of, properties_of, published_ms
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, before, entry_of, number_of
from controller.adapters.pulsar.log.ranges import Ledgers
from controller.log.port import OLDEST, LogRecord, Position, Start
from controller.model.errors import TrimtabError

#: Properties whose names begin so are no headers of the record.
OWN: Final = "trimtab."
#: On messages that are no records.  A writer finds the end of what came before it by one.
MARK: Final = OWN + "mark"
#: On records and marks of a partition that is pruned: the position of its oldest record.
FIRST: Final = OWN + "first"
#: Producers give the times.  One that is farther ahead of our clock than this counts as this far ahead, ms.
_SKEW_MS: Final = 60_000
#: How often a reader of a whole topic looks whether it has new partitions.
_LOOK_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 0.02
#: For a message that is there.
_READ_SECONDS: Final = 10.0
_QUEUE: Final = 500
_DIGITS: Final = 19
#: Entries of a window have so many bytes at most, as they are stored; one entry may have more.
_WINDOW_BYTES: Final = 8 << 20
#: A window that holds only marks grows by this factor.
_WIDER: Final = 8


class PartitionReader:
    """Reader of one partition of the topic *name* (short name)."""

    def __init__(
        self,
        connection: LogConnection,
        name: str,
        partition: int,
        start: Start = OLDEST,
        *,
        first: Position = 0,
        queue: int = _QUEUE,
    ) -> None:
        """*first*: what lies before was pruned, and may not be deleted yet."""
        self._connection, self._name, self._partition = connection, name, partition
        self._where = f"{where(connection.log, name)}, partition {partition}"
        self._first = max(start.position or 0, first)
        full = partition_name(topic_name(connection.log, name), partition)
        at, is_inclusive = _message_id(start)
        self._reader: Any = connection.patiently(
            lambda: connection.client.create_reader(
                full, at, start_message_id_inclusive=is_inclusive, receiver_queue_size=queue, **AS_THEY_ARE
            ),
            name,
            "consume",
        )
        since = start.since_ms
        if since is not None and start.position is None:
            connection.patiently(lambda: self._reader.seek(since), name, "consume")

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        deadline = Deadline.after(timeout_seconds)
        while (message := self._message(deadline.remaining)) is not None:
            record = self.record(message)
            if record is not None:
                return record
        return None

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        return (record for record in map(self.record, self.messages()) if record is not None)

    def messages(self) -> Iterator[Any]:
        """The messages up to the present end, marks too."""
        while self._connection.patiently(self._reader.has_message_available, self._name, "consume"):
            message = self._message(_READ_SECONDS)
            if message is None:
                raise TrimtabError(f"{self._where}: an existing record was not received within {_READ_SECONDS:g} s")
            yield message

    def record(self, message: Any) -> LogRecord | None:
        """*message* as a record; None for a mark, and for what lies before the first record that is wanted."""
        properties = properties_of(message)
        position = position_of(message)
        return None if position < self._first else record_of(self._partition, position, message, properties)

    def close(self) -> None:
        """See Reader."""
        try:
            self._reader.close()
        except pulsar.PulsarException:
            return  # it is closed, or the broker is unavailable

    def _message(self, seconds: float) -> Any:
        try:
            return self._reader.read_next(max(1, round(seconds * 1000)))
        except pulsar.Timeout:
            return None
        except pulsar.PulsarException as error:
            raise failure(self._where, error, operation="consume") from error


class TopicReader:
    """Reader of all partitions of a topic."""

    def __init__(self, count: Callable[[], int], read: Callable[[int, Start], PartitionReader], start: Start) -> None:
        """*count*: how many partitions it has now.  *read*: a reader of one of them, from a start on."""
        self._count, self._read = count, read
        self._readers: list[PartitionReader] = []
        self._turn = 0
        self._add_readers(start)

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        deadline = Deadline.after(timeout_seconds)
        while True:
            self._look()
            for _ in self._readers:
                record = self._readers[self._turn].next(0.0)
                if record is not None:
                    return record  # the same partition again the next time: its records are at hand
                self._turn = (self._turn + 1) % len(self._readers)
            if deadline.passed:
                return None
            time.sleep(min(_IDLE_SECONDS, deadline.remaining))

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        self._look()
        for reader in self._readers:
            yield from reader.read_to_end()

    def close(self) -> None:
        """See Reader."""
        for reader in self._readers:
            reader.close()

    def _look(self) -> None:
        """Read partitions that were added, too."""
        if self._next_look.passed:
            self._add_readers(OLDEST)

    def _add_readers(self, start: Start) -> None:
        self._next_look = Deadline.after(_LOOK_SECONDS)
        try:
            for partition in range(len(self._readers), self._count()):
                self._readers.append(self._read(partition, start))
        except BaseException:
            self.close()
            raise


class Window(NamedTuple):
    """Records that lie right before a position."""

    records: Sequence[LogRecord]
    #: Whether they were read up to that position; else something that lay there did not come.
    reached: bool


class ReadWindows:
    """Stretches of partitions that are given by numbers of entries, which the admin API *http* counts."""

    def __init__(self, connection: LogConnection, http: LogExtents) -> None:
        self._connection, self._http = connection, http
        #: Records in an entry of a partition, as far as it was read: entries may be batches.
        self._per_entry: dict[tuple[str, int], float] = {}

    def extent(self, name: str, partition: int) -> Ledgers:
        """What a partition of the topic *name* (short name) holds."""
        return self._http.extent(topic_name(self._connection.log, name), partition)

    def last_before(self, name: str, partition: int, position: Position) -> Entry:
        """The last entry before *position*."""
        return self.extent(name, partition).up_to(_last_before(position)).end

    def read_backwards(self, name: str, partition: int, stop: Position | None, about: int, oldest: Start) -> Window:
        """About *about* records right before *stop* (None: the end), none before *oldest*; see Log.back."""
        extent = self.extent(name, partition)
        end = extent.end if stop is None else _last_before(stop)
        size = extent.bytes // max(1, extent.entries)
        entries = min(round(about / self._per_entry.get((name, partition), 1.0)), _WINDOW_BYTES // max(1, size))
        while True:
            entries = max(1, entries)
            begin = extent.before(end, entries)
            start = oldest if begin == BEGINNING else _later(oldest, Start(position=number_of(*begin.next, -1)))
            window = self._read(name, partition, start, stop, queue=min(_QUEUE, about))
            if window.records or start is oldest:
                self._per_entry[name, partition] = max(1.0, len(window.records) / entries)
                return window
            entries *= _WIDER

    def _read(self, name: str, partition: int, start: Start, stop: Position | None, *, queue: int) -> Window:
        records = list[LogRecord]()
        with closing(PartitionReader(self._connection, name, partition, start, queue=queue)) as reader:
            for message in reader.messages():
                if stop is not None and position_of(message) >= stop:
                    return Window(records, reached=True)
                record = reader.record(message)
                if record is not None:
                    records.append(record)
        return Window(records, reached=stop is None)


def newest_properties(connection: LogConnection, name: str, partition: int) -> Mapping[str, str]:
    """The properties of the newest record, or mark, of a partition; none where there is no such."""
    with closing(PartitionReader(connection, name, partition, Start(last=True), queue=1)) as reader:
        return next((properties_of(message) for message in reader.messages()), {})


def first_in(properties: Mapping[str, str]) -> Start:
    """Where a partition begins, as the *properties* of one of its messages say."""
    text = properties.get(FIRST, "")
    return Start(position=int(text)) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else OLDEST


def position_of(message: Any) -> Position:
    """The position of *message*."""
    at = message.message_id()
    return number_of(at.ledger_id(), at.entry_id(), at.batch_index())


def record_of(partition: int, position: Position, message: Any, properties: Mapping[str, str]) -> LogRecord | None:
    """*message*, which has these *properties*, as a record; None for a mark."""
    if MARK in properties:
        return None
    return LogRecord(
        partition=partition,
        position=position,
        key=key_of(message).encode(),
        value=message.data(),
        timestamp_ms=min(published_ms(message), time.time_ns() // 1_000_000 + _SKEW_MS),
        headers={name: _header(text) for name, text in properties.items() if not name.startswith(OWN)},
    )


def _later(one: Start, other: Start) -> Start:
    """The later of two starts that are positions, or OLDEST."""
    return one if (one.position or 0) >= (other.position or 0) else other


def _header(text: str) -> bytes:
    """The bytes of a property: of our own, or of a stranger's text."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _last_before(position: Position) -> Entry:
    """The last entry that may hold records before *position*."""
    entry = entry_of(position)
    return before(entry) if position == number_of(*entry, -1) else entry


def _message_id(start: Start) -> tuple[pulsar.MessageId, bool]:
    """Where a reader of the client library begins, and whether that message itself is read."""
    if start.position is not None:
        return pulsar.MessageId(-1, *entry_of(start.position), -1), True
    if start.since_ms is None and (start.last or start.end):
        return pulsar.MessageId.latest, start.last
    return pulsar.MessageId.earliest, False
