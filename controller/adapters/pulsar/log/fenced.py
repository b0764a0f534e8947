"""One writer at a time: whoever takes a partition over fences whoever wrote it before.

The brokers keep the fence: a producer with ExclusiveWithFencing ends the one before it, also one whose process hangs
and comes back.  A message of the earlier writer may still be on its way to the bookies then.  So the new writer first
writes a mark, and reads up to it: all that an earlier writer wrote lies before it, and nothing of it comes after.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Final
from uuid import uuid4

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.log.client import LARGEST_RECORD, PATIENCE_SECONDS, partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.reader import MARK, OLDEST, LogRecord, MessagePlace, PartitionReader, Start
from controller.adapters.pulsar.log.words import failure
from controller.adapters.pulsar.log.writer import Sending, close_quietly
from controller.model.errors import AccessDeniedError, JournalError, LeadershipLostError, TrimtabError

NO_PROPERTIES: Final[Mapping[str, str]] = {}
#: From the mark backwards: so many entries, then what is not older than this, then everything.
_NEAR_ENTRIES: Final = 200
#: Marks that are written at most, until the brokers say of one where it lies.
_MARKS: Final = 5
_DAY_MS: Final = 86_400_000


class FencedPartition:
    """A partition of the topic *name* (short name) that one process writes, under *writer*.

    LeadershipLostError where another process has taken it over; every other failure is a JournalError, or an
    AccessDeniedError.  After any of them only ``take_over`` is allowed: what was being written may be there, or not.
    """

    def __init__(self, connection: LogConnection, name: str, partition: int, *, writer: str) -> None:
        self._connection, self.name, self.partition, self._writer = connection, name, partition, writer
        self._producer: pulsar.Producer | None = None
        #: Why there is no producer.
        self._closed = "take_over() was not called"
        self._mark: MessagePlace = (-1, -1, 0)

    def take_over(self, mark: bytes | None = b"", properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        """Fence earlier writers, and find the end of what they wrote: *mark*, with *properties*, comes after it.

        None: write no mark; then ``before`` is not to be asked for.
        """
        self.close()
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
                ),
                self.name,
                "produce",
            )
        except TrimtabError as error:
            raise self._meaning(error) from error
        if mark is not None:
            self._mark = self._marked(mark, properties)

    def _marked(self, mark: bytes, properties: Mapping[str, str]) -> MessagePlace:
        """Write *mark*; returns its place."""
        for _ in range(_MARKS):
            place = self.append(mark, {MARK: str(uuid4()), **properties})
            # Brokers do not say where a message lies that the client had to send twice: its connection broke before the
            # answer came.  Another mark comes after it, and so after all that earlier writers wrote.
            if place[0] >= 0:
                return place
        raise self._meaning(
            JournalError(f"{self._place}: the brokers did not say where {_MARKS} records lie that they stored")
        )

    def append(self, value: bytes, properties: Mapping[str, str] = NO_PROPERTIES) -> MessagePlace:
        """Write one record; returns its place once it is stored: (-1, -1, 0) where the brokers do not say it."""
        if self._producer is None:
            raise JournalError(f"{self._place}: {self._closed}")
        if len(value) > LARGEST_RECORD:
            raise JournalError(f"{self._place}: a record has {len(value)} bytes, allowed: {LARGEST_RECORD}")
        try:
            at = self._producer.send(value, properties=dict(properties))
        except pulsar.PulsarException as error:
            raise self._meaning(error) from error
        return (at.ledger_id(), at.entry_id(), 0)

    def append_all(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Write records, (key, value) each, in their order; returns once all are stored."""
        if self._producer is None:
            raise JournalError(f"{self._place}: {self._closed}")
        sending = Sending(Deadline.after(PATIENCE_SECONDS))
        try:
            for key, value in records:
                self._producer.send_async(value, sending.begin(len(value)), partition_key=key or None)
            sending.wait()
        except pulsar.PulsarException as error:
            raise self._meaning(error) from error

    def before(self, start: Start = OLDEST) -> Iterator[LogRecord]:
        """What earlier writers wrote, from *start* on: the records up to our mark.

        JournalError where the mark does not come: what is missing before it may have been decided.
        """
        read = False
        try:
            with closing(PartitionReader(self._connection, self.name, self.partition, start)) as reader:
                for record in reader.rest():
                    read = True
                    if record.place >= self._mark:
                        return
                    if MARK not in record.properties:
                        yield record
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error
        # A time may lie behind the mark, where clocks differ: then nothing is read, and the caller looks farther back.
        if read or start.since_ms is None:
            raise JournalError(
                f"{self._place}: it was not read up to {self._mark[0]}:{self._mark[1]}, its end; try again"
            )

    def windows(self, now_ms: int) -> Iterator[Start]:
        """Where to begin to read ``before``: near our mark first, then farther back, at last the oldest record."""
        ledger, entry, _ = self._mark
        if entry > 0:
            yield Start(entry=(ledger, max(0, entry - _NEAR_ENTRIES)))
        yield Start(since_ms=max(0, now_ms - _DAY_MS))
        yield OLDEST

    def close(self) -> None:
        """Write no more."""
        producer, self._producer = self._producer, None
        if producer is not None:
            close_quietly(producer)

    @property
    def _place(self) -> str:
        return f"{where(self._connection.log, self.name)}, partition {self.partition}"

    def leave(self, properties: Mapping[str, str]) -> None:
        """Write a last mark with *properties*, unless the brokers cannot be asked now; then write no more."""
        if self._producer is not None and self._producer.is_connected():
            with suppress(TrimtabError):
                self.append(b"", properties)
        self.close()

    def _meaning(self, error: BaseException) -> TrimtabError:
        self.close()
        cause = error.__cause__ if isinstance(error, TrimtabError) else error
        told: TrimtabError
        if isinstance(cause, pulsar.ProducerFenced):
            told = LeadershipLostError(f"{self._place}: another process writes it now")
        else:
            told = failure(self._place, error, operation="produce")
            told = told if isinstance(told, AccessDeniedError) else JournalError(str(told))
        self._closed = f"nothing is written there after an error: {told}"
        return told
