"""Reads Kafka's topics: committed records, in order within a partition, up to the current end or without end."""

import logging
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import confluent_kafka as ck

from controller.adapters.kafka.client import (
    BOUNDED,
    LARGEST_RECORD,
    LIBRDKAFKA_LOG,
    NO_CLIENT,
    PATIENCE_SECONDS,
    Client,
    Headers,
    connection_options,
)
from controller.adapters.kafka.offsets import ends_of, offset_since
from controller.adapters.kafka.skipping import BatchSkipper, is_unreadable
from controller.adapters.kafka.topics import topics_there
from controller.adapters.kafka.words import failure, silence
from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: How often a reader of a whole topic looks whether it has new partitions, and how long it waits for the answer.
_LOOK_SECONDS: Final = 2.0
_LOOK_ANSWER_SECONDS: Final = 1.0
_READING: Final[Client] = {
    **BOUNDED,
    # librdkafka requires a group; the reader never joins it and commits nothing in it.
    "group.id": "trimtab-reader",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
}
#: Errors that do not go away by reading on.
_GONE: Final = frozenset(
    {
        ck.KafkaError._UNKNOWN_TOPIC,
        ck.KafkaError._UNKNOWN_PARTITION,
        ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ck.KafkaError._AUTHENTICATION,
    }
)


class KafkaRecord(NamedTuple):
    """One record as it lies in a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes
    #: Epoch ms; the broker's append time in the topics that trimtab creates.
    timestamp_ms: int
    headers: Headers


class Reader:
    """Reads what is committed, in order within a partition: all partitions of a topic, or *partition* alone.

    *offset* is where to start, None for the present end; with *since_ms* it is what was appended then or later.
    Partitions that a topic gets later are read, too, from their beginning.  Batches that cannot be unpacked are skipped
    and logged, and so are records longer than LARGEST_RECORD.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = ck.OFFSET_BEGINNING,
        since_ms: int | None = None,
        client: Client = NO_CLIENT,
        end_known_ms: int = 100,
    ) -> None:
        """*end_known_ms*: after so long without a record Kafka says that there is none; a record comes at once."""
        self._name, self._topic, self._client = f"Kafka at {bootstrap}, topic {topic!r}", topic, client
        self._bootstrap = bootstrap
        options = connection_options(bootstrap, client, **_READING, **{"fetch.wait.max.ms": end_known_ms})
        self._consumer = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
        self._skipper = BatchSkipper(bootstrap, topic, client)
        try:
            there = topics_there(self._consumer, bootstrap, client, topic).get(topic)
            if there is None:
                raise TrimtabError(f"{self._name} does not exist")
            wanted = range(there.partitions) if partition is None else (partition,)
            self._consumer.assign([self._start(topic, each, offset, since_ms) for each in wanted])
        except ck.KafkaException as error:
            self._consumer.close()
            raise self._meaning(error) from error
        except BaseException:
            self._consumer.close()
            raise
        #: How many are read; None: one alone.
        self._partitions = there.partitions if partition is None else None
        self._next_look = Deadline.after(_LOOK_SECONDS)
        self._unfinished = set(wanted)
        self._heard = time.monotonic()

    def _start(self, topic: str, partition: int, offset: int | None, since_ms: int | None) -> ck.TopicPartition:
        if since_ms is not None:
            offset = offset_since(self._consumer, topic, partition, since_ms, PATIENCE_SECONDS)
        if offset is None:
            # Looked up now: librdkafka resolves "end" later, and would skip the records appended until then.
            _, offset = ends_of(self._consumer, topic, partition, PATIENCE_SECONDS)
        return ck.TopicPartition(topic, partition, offset)

    def poll(self, timeout_seconds: float) -> KafkaRecord | None:
        """The next record, or None when none came within *timeout_seconds* or a partition's end was reached."""
        self._look()
        message: Any = self._consumer.poll(timeout_seconds)
        if message is None:
            if self._unfinished and time.monotonic() - self._heard > PATIENCE_SECONDS:
                raise silence(self._bootstrap, self._client, f"{self._name}: silent for {PATIENCE_SECONDS:g} s")
            return None
        error = message.error()
        if error is None:
            self._heard = time.monotonic()
            self._unfinished.add(message.partition())
            return None if is_too_long(message, self._name) else _record(message)
        if error.code() == ck.KafkaError._PARTITION_EOF:
            self._heard = time.monotonic()
            # Offsets tell nothing about the end: the markers of transactions have some, too.
            self._unfinished.discard(message.partition())
        elif is_unreadable(error):
            self._consumer.seek(self._skipper.skip(message))
            self._heard = time.monotonic()
            self._unfinished.add(message.partition())
        elif error.fatal() or error.code() in _GONE:
            raise self._meaning(error)
        else:
            log.warning("%s", self._meaning(error))
        return None

    def _look(self) -> None:
        """Read new partitions, too."""
        if self._partitions is None or not self._next_look.passed:
            return
        try:
            there = topics_there(self._consumer, self._bootstrap, self._client, self._topic, _LOOK_ANSWER_SECONDS).get(
                self._topic
            )
        except TrimtabError:  # if it lasts, reading reports it
            there = None
        self._next_look = Deadline.after(_LOOK_SECONDS)
        if there is None or there.partitions <= self._partitions:
            return
        log.info("%s has %d partitions now, %d before", self._name, there.partitions, self._partitions)
        new = range(self._partitions, there.partitions)
        self._consumer.incremental_assign([ck.TopicPartition(self._topic, each, ck.OFFSET_BEGINNING) for each in new])
        self._unfinished.update(new)
        self._partitions, self._heard = there.partitions, time.monotonic()

    def _meaning(self, error: BaseException | ck.KafkaError) -> TrimtabError:
        group = str(_READING["group.id"])
        return failure(self._name, error, self._client, operation="Read", topics=[self._topic], group=group)

    def at_end(self) -> bool:
        """True when everything has been read that was committed when its partition's end was last reached."""
        return not self._unfinished

    def close(self) -> None:
        """End the connection."""
        self._skipper.close()
        self._consumer.close()


def read_all(
    bootstrap: str, topic: str, partition: int, from_offset: int = ck.OFFSET_BEGINNING, client: Client = NO_CLIENT
) -> Iterator[KafkaRecord]:
    """Every committed record of a partition from *from_offset* on, up to its present end.

    Starts at the oldest record where that offset is gone.  Raises TrimtabError where Kafka stays silent.
    """
    return _records(Reader(bootstrap, topic, partition=partition, offset=from_offset, client=client))


def _records(reader: Reader) -> Iterator[KafkaRecord]:
    try:
        while not reader.at_end():
            record = reader.poll(0.2)
            if record is not None:
                yield record
    finally:
        reader.close()


def is_too_long(message: Any, where: str) -> bool:
    """Whether *message*, which lies *where*, is longer than any record that trimtab reads; then the log says so."""
    size = len(message.value() or b"")
    if size > LARGEST_RECORD:
        place = (where, message.partition(), message.offset())
        log.error("%s, partition %d: the record at offset %d is skipped: it has %d bytes", *place, size)
    return size > LARGEST_RECORD


def _record(message: Any) -> KafkaRecord:
    return KafkaRecord(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value() or b"",
        timestamp_ms=message.timestamp()[1],
        headers=dict(message.headers() or ()),
    )
