"""A producer that appends records to Kafka: acknowledged by all replicas, in order, none twice."""

import time
from collections.abc import Callable, Container
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import (
    ANSWER_MS,
    LARGEST_RECORD,
    LIBRDKAFKA_LOG,
    NO_CLIENT,
    NO_HEADERS,
    PATIENCE_SECONDS,
    Client,
    Headers,
    connection_options,
)
from controller.adapters.kafka.errors import failure, silence
from controller.adapters.kafka.topics import ExistingTopic, offline_text, topics_there
from controller.adapters.network.deadline import Deadline
from controller.model.errors import LogOfflineError, TrimtabError

#: For an answer about partitions before something is written to all of them: by then a lost broker is given up.
_ANSWER_SECONDS: Final = 1.5 * ANSWER_MS / 1000
#: How long a partition may have no leader before it counts as offline.  Kafka takes the leadership from a broker that
#: stood still for 9 s (broker.session.timeout.ms), and gives it back a fraction of a second after the broker goes on.
_LEADER_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.05
WRITING: Final[Client] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    "compression.type": "zstd",  # as in the topics, so that brokers need not convert it
    "message.max.bytes": LARGEST_RECORD,
}


class Writer:
    """What both producers can ask about the topics that they write to."""

    _bootstrap: str
    _client: Client
    _producer: ck.Producer

    def partitions(self, *topics: str, online: bool = True) -> dict[str, int]:
        """The number of partitions of each of *topics* now; from here on this producer knows the new ones, too.

        TrimtabError where a topic is gone; LogOfflineError where all have to be *online* and one cannot be written to.
        """
        find = self.online if online else self.existing
        return {topic: find(topic).partitions for topic in topics}

    def existing(self, topic: str) -> ExistingTopic:
        """*topic* as it is now; TrimtabError where it is gone."""
        there = topics_there(self._producer, self._bootstrap, self._client, topic, _ANSWER_SECONDS).get(topic)
        if there is None:
            raise TrimtabError(
                f"Kafka at {self._bootstrap}: topic {topic!r} does not exist or is not visible to this user"
            )
        return there

    def online(self, topic: str, partitions: Container[int | None] | None = None) -> ExistingTopic:
        """*topic* as it is now, with a leader of each of *partitions*, or of all.

        Waits a second for leaders; LogOfflineError where one is still missing.
        """
        patience = Deadline.after(_LEADER_SECONDS)
        while True:
            there = self.existing(topic)
            if not any(partitions is None or each in partitions for each in there.offline):
                return there
            if patience.passed:
                raise LogOfflineError(f"Kafka at {self._bootstrap}: {offline_text(topic, there)}")
            time.sleep(_LOOK_SECONDS)


class Producer(Writer):
    """Appends records: acknowledged by all replicas, in order, none twice."""

    def __init__(self, bootstrap: str, client: Client = NO_CLIENT) -> None:
        self._bootstrap, self._client = bootstrap, client
        self._producer = ck.Producer(connection_options(bootstrap, client, **WRITING), logger=LIBRDKAFKA_LOG)
        self._sent = self._delivered = 0
        self._failure: TrimtabError | None = None

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = NO_HEADERS,
        within_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Hand over one record; *partition* None lets the key decide.  Safe only after ``flush``.

        Waits *within_seconds* while the queue is full.  Raises TrimtabError for this record or an earlier one that
        could not be written.
        """
        self._raise_failure()
        try:
            produce(self._producer, topic, value, key, partition, headers, self._on_delivery, within_seconds)
        except (ck.KafkaException, BufferError) as error:
            raise self._meaning(topic, error) from error
        self._sent += 1
        self._producer.poll(0)

    def flush(self, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Return when every record is safely in its topic; TrimtabError when one is not."""
        self._producer.flush(timeout_seconds)
        self._raise_failure()
        if self._delivered != self._sent:
            undelivered = self._sent - self._delivered
            why = f"{undelivered} records not written after {timeout_seconds:g} s"
            raise silence(self._bootstrap, self._client, why)

    def drop(self) -> None:
        """Drop all unwritten records; the producer cannot be used afterwards."""
        self._producer.purge(in_queue=True, in_flight=True)

    def _on_delivery(self, error: ck.KafkaError | None, record: ck.Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failure = self._failure or self._meaning(record.topic() or "", error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _meaning(self, topic: str, error: BaseException | ck.KafkaError) -> TrimtabError:
        where = f"Kafka at {self._bootstrap}, topic {topic!r}"
        return failure(where, error, self._client, operation="Write", topics=[topic])


def produce(
    producer: ck.Producer,
    topic: str,
    value: bytes,
    key: bytes | None,
    partition: int | None,
    headers: Headers,
    on_delivery: Callable[[ck.KafkaError | None, ck.Message], None] | None,
    within_seconds: float = PATIENCE_SECONDS,
) -> None:
    """Queue a record; waits *within_seconds* while the queue is full, BufferError when it does not empty."""
    arguments: dict[str, Any] = {"key": key, "headers": dict(headers)}
    if partition is not None:
        arguments["partition"] = partition
    if on_delivery is not None:
        arguments["on_delivery"] = on_delivery
    deadline = Deadline.after(within_seconds)
    while True:
        try:
            return producer.produce(topic, value, **arguments)
        except BufferError:
            if deadline.passed:
                raise
            producer.poll(0.1)
