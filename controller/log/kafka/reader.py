"""Reads a topic of Kafka: committed records, in order within a partition, up to a known end or without end.

Where reading has to be complete it goes on to the high watermark that the leaders gave when it began.  The end of a
partition as a fetch reports it proves nothing: a new leader may not know yet what its predecessor had acknowledged,
and an open transaction hides every record behind its first one.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import (
    BOUNDED,
    LARGEST_RECORD,
    LIBRDKAFKA_LOG,
    PATIENCE_SECONDS,
    Client,
    connection_options,
)
from controller.adapters.kafka.errors import failure, silence
from controller.adapters.kafka.offsets import ends_of
from controller.adapters.kafka.skipping import BatchSkipper, is_unreadable
from controller.adapters.network.deadline import Deadline
from controller.log.kafka.offsets import READER_GROUP, PartitionOffsets
from controller.log.port import LogRecord
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: The header of a record that only marks where a holder of a scope took over.
MARK: Final = "mark"
#: How often a reader of a whole topic looks for new partitions, and how long it waits for the answer.
_LOOK_SECONDS: Final = 2.0
_LOOK_ANSWER_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.2
_READING: Final[Client] = {
    **BOUNDED,
    "group.id": READER_GROUP,
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    # A broker that comes back may answer for a moment as the leader that it was, and know less than has been read:
    # with "earliest" everything would come once more.
    "auto.offset.reset": "error",
}
#: A caller that reads all partitions of a topic in parallel has a reader for each.
_ONE_OF_MANY: Final[Client] = {"queued.max.messages.kbytes": 4 << 10}
#: Errors that do not go away by polling again.
_PERMANENT_ERRORS: Final = frozenset(
    {
        ck.KafkaError._UNKNOWN_TOPIC,
        ck.KafkaError._UNKNOWN_PARTITION,
        ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ck.KafkaError._AUTHENTICATION,
    }
)


class KafkaReader:
    """Reader of a topic from an offset in each partition on.

    Batches that cannot be unpacked are skipped and logged, and so are records longer than LARGEST_RECORD.
    """

    def __init__(
        self,
        bootstrap: str,
        client: Client,
        topic: str,
        starts: Mapping[int, int],
        *,
        is_whole: bool,
        offsets: PartitionOffsets,
        end_known_ms: int = 100,
        seconds: float = PATIENCE_SECONDS,
        pauses: bool = True,
    ) -> None:
        """*starts*: by partition.  *is_whole*: also partitions that the topic gets later are read.

        *end_known_ms*: after so long without a record Kafka reports the end of a partition; a record comes at once.
        *seconds*: how long nothing may come where something has to.  *pauses*: nothing is fetched between two calls of
        ``read_to_end``; the second one then takes a second longer, after which librdkafka wakes up.
        """
        self._pauses = pauses
        self._seconds = seconds
        self._where, self._topic, self._client = f"Kafka at {bootstrap}, topic {topic!r}", topic, client
        self._bootstrap, self._offsets, self._is_whole = bootstrap, offsets, is_whole
        #: Partition -> the offset before which everything has been read.
        self._read = dict(starts)
        #: Partition -> the offset behind the last record that came.  A start may lie behind the end, a record cannot.
        self._received = dict[int, int]()
        #: Partition -> the offset up to which it has to be read; 0: its leader has to answer.
        self._unfinished = dict.fromkeys(starts, 0)
        #: Partitions of which everything has been read that is visible now.
        self._at_end = set[int]()
        #: Partition whose leader has no record at the place -> until when that may last.
        self._without_place = dict[int, Deadline]()
        self._next_look = Deadline.after(_LOOK_SECONDS)
        self._last_progress = time.monotonic()
        self._skipper = BatchSkipper(bootstrap, topic, client)
        ours = {**_READING, **({} if is_whole else _ONE_OF_MANY), "fetch.wait.max.ms": end_known_ms}
        options = connection_options(bootstrap, client, **ours)
        self._consumer = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
        self._is_paused = False
        try:
            self._consumer.assign([ck.TopicPartition(topic, *each) for each in starts.items()])
        except ck.KafkaException as error:
            self.close()
            raise self._translate(error) from error

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        self._pause(False)
        deadline = Deadline.after(timeout_seconds)
        while True:
            record = self._poll(deadline.remaining)
            if record is not None or deadline.passed:
                return record

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader.  Waits for transactions that are open now; TrimtabError where one stays open."""
        self._look(self._seconds / 4)
        ends = {each: self._offsets.ends(self._topic, each)[1] for each in self._read}
        if any(self._received.get(each, 0) > end for each, end in ends.items()):
            raise self._is_shorter()
        yield from self.until(ends)

    def until(self, ends: Mapping[int, int]) -> Iterator[LogRecord]:
        """The records before *ends*, by partition, and perhaps some after them: complete, or TrimtabError."""
        self._unfinished = {each: end for each, end in ends.items() if self._read[each] < end}
        self._last_progress = time.monotonic()
        self._pause(not self._unfinished)
        while self._unfinished:
            record = self._poll(_POLL_SECONDS)
            if record is not None:
                yield record
        # The caller may not read any further, and an unpaused consumer fetches all the time.
        self._pause(True)

    def close(self) -> None:
        """End the connection."""
        self._skipper.close()
        self._consumer.close()

    def _pause(self, paused: bool) -> None:
        if self._pauses and self._is_paused != paused:
            partitions = [ck.TopicPartition(self._topic, each) for each in self._read]
            (self._consumer.pause if paused else self._consumer.resume)(partitions)
            self._is_paused = paused

    def _poll(self, timeout_seconds: float) -> LogRecord | None:
        """The next record; None when none came, or a partition's end was reached, or a record is passed over."""
        if self._next_look.passed:
            self._look(_LOOK_ANSWER_SECONDS)
        message: Any = self._consumer.poll(timeout_seconds)
        if message is None:
            if self._unfinished and time.monotonic() - self._last_progress > self._seconds:
                raise self._silence()
            return None
        error, partition = message.error(), message.partition()
        if error is None:
            self._reached(partition, message.offset() + 1)
            self._received[partition] = message.offset() + 1
            return record_of(message, self._where)
        if error.code() == ck.KafkaError._PARTITION_EOF:
            self._reached(partition, message.offset())
            self._at_end.add(partition)
        elif error.code() == ck.KafkaError._AUTO_OFFSET_RESET:
            self._find_place(partition, timeout_seconds)
        elif is_unreadable(error):
            behind = self._skipper.skip(message)
            self._consumer.seek(behind)
            self._reached(partition, behind.offset)
        elif error.fatal() or error.code() in _PERMANENT_ERRORS:
            raise self._translate(error)
        else:
            log.warning("%s", self._translate(error))
        return None

    def _find_place(self, partition: int, timeout_seconds: float) -> None:
        """Go on where the leader has no record at the place: at its first one, if those before it are deleted."""
        patience = self._without_place.setdefault(partition, Deadline.after(self._seconds))
        try:
            first, end = ends_of(self._consumer, self._topic, partition, _LOOK_ANSWER_SECONDS)
        except ck.KafkaException as error:
            log.warning("%s", self._translate(error))
            first = end = self._read[partition]
        if first > self._read[partition]:
            self._reached(partition, first)
        elif end < self._read[partition] and patience.passed:
            raise self._is_shorter()
        time.sleep(min(timeout_seconds, _POLL_SECONDS))
        place = ck.TopicPartition(self._topic, partition, self._read[partition])
        self._consumer.incremental_unassign([place])
        self._consumer.incremental_assign([place])

    def _is_shorter(self) -> TrimtabError:
        return TrimtabError(f"{self._where} is shorter than what was read: it was deleted and created again")

    def _reached(self, partition: int, offset: int) -> None:
        self._last_progress, self._read[partition] = time.monotonic(), offset
        self._at_end.discard(partition)
        self._without_place.pop(partition, None)
        if offset >= self._unfinished.get(partition, offset + 1):
            del self._unfinished[partition]

    def _look(self, answer_seconds: float) -> None:
        """Find new partitions and read them, too."""
        self._next_look = Deadline.after(_LOOK_SECONDS)
        if not self._is_whole:
            return
        try:
            count = self._offsets.partitions(self._topic, answer_seconds)
        except TrimtabError:
            if answer_seconds > _LOOK_ANSWER_SECONDS:
                raise
            return  # if it lasts, reading reports it
        if count > len(self._read):
            log.info("%s has %d partitions now, %d before", self._where, count, len(self._read))
            new = range(len(self._read), count)
            self._consumer.incremental_assign([ck.TopicPartition(self._topic, each, 0) for each in new])
            self._read.update(dict.fromkeys(new, 0))

    def _silence(self) -> TrimtabError:
        hidden = [each for each in self._unfinished if each in self._at_end]
        if not hidden:
            return silence(self._bootstrap, self._client, f"{self._where}: silent for {self._seconds:g} s")
        return TrimtabError(
            f"{self._where}, partition {hidden[0]}: for {self._seconds:g} s a transaction has been open since offset"
            f" {self._read[hidden[0]]} and hides the records behind it: end the process that writes there, or abort it"
            " with `kafka-transactions.sh abort`"
        )

    def _translate(self, error: BaseException | ck.KafkaError) -> TrimtabError:
        return failure(self._where, error, self._client, operation="Read", topics=[self._topic], group=READER_GROUP)


def record_of(message: Any, where: str) -> LogRecord | None:
    """*message*, which was read from *where*, as a record; None if it is a mark, or too long."""
    value, headers = message.value() or b"", dict(message.headers() or ())
    if len(value) > LARGEST_RECORD:
        place = (where, message.partition(), message.offset())
        log.error("%s, partition %d: skipping the record at offset %d: it has %d bytes", *place, len(value))
        return None
    if MARK in headers:
        return None
    return LogRecord(
        partition=message.partition(),
        position=message.offset(),
        key=message.key() or b"",
        value=value,
        timestamp_ms=message.timestamp()[1],
        headers=headers,
    )
