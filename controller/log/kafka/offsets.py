"""Asks Kafka for the partitions of a topic, and for their offsets."""

import threading
import time
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, PATIENCE_SECONDS, Client, connection_options
from controller.adapters.kafka.errors import failure
from controller.adapters.kafka.offsets import ends_of, offset_since
from controller.adapters.kafka.topics import topics_there
from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError

#: The consumer group that librdkafka requires of a reader, which never joins it and commits nothing in it.
READER_GROUP: Final = "trimtab-reader"
#: How long the marker that ends a transaction may come after the commit was acknowledged.
_MARKER_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.02


class PartitionOffsets:
    """Asks Kafka for the partitions of a topic and their offsets.  Safe for threads; connects when first used."""

    def __init__(self, bootstrap: str, client: Client, *, seconds: float = PATIENCE_SECONDS) -> None:
        """*seconds*: how long an answer may take."""
        self._bootstrap, self._client, self._seconds = bootstrap, client, seconds
        self._consumers: dict[str, Any] = {}
        self._opening = threading.Lock()

    def partitions(self, topic: str, seconds: float = PATIENCE_SECONDS / 4) -> int:
        """How many partitions *topic* has, 0 where it does not exist."""
        seconds = min(seconds, self._seconds)
        consumer = self._consumer("read_uncommitted")
        described = topics_there(consumer, self._bootstrap, self._client, topic, seconds).get(topic)
        return 0 if described is None else described.partitions

    def ends(self, topic: str, partition: int, since_ms: int | None = None) -> tuple[int, int]:
        """The first offset, of records appended at *since_ms* or later, and the one after the last."""
        consumer = self._consumer("read_uncommitted")
        try:
            first, end = ends_of(consumer, topic, partition, self._seconds)
            if since_ms is not None:
                since = offset_since(consumer, topic, partition, since_ms, self._seconds)
                first = end if since is None else since
        except ck.KafkaException as error:
            raise self._translate(topic, error) from error
        return first, end

    def stable_end(self, topic: str, partition: int) -> int:
        """The offset after the last record that no open transaction hides."""
        _, end = self.ends(topic, partition)
        consumer, patience = self._consumer("read_committed"), Deadline.after(_MARKER_SECONDS)
        try:
            while True:
                _, stable = ends_of(consumer, topic, partition, self._seconds)
                if stable >= end or patience.passed:
                    return stable
                time.sleep(_LOOK_SECONDS)
        except ck.KafkaException as error:
            raise self._translate(topic, error) from error

    def close(self) -> None:
        """End the connections."""
        with self._opening:
            for each in self._consumers.values():
                each.close()
            self._consumers.clear()

    def _consumer(self, isolation: str) -> Any:
        with self._opening:
            if isolation not in self._consumers:
                ours = {"group.id": READER_GROUP, "isolation.level": isolation, "log_level": 0}
                options = connection_options(self._bootstrap, self._client, **ours)
                self._consumers[isolation] = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
            return self._consumers[isolation]

    def _translate(self, topic: str, error: BaseException) -> TrimtabError:
        where = f"Kafka at {self._bootstrap}, topic {topic!r}"
        return failure(where, error, self._client, operation="Read", topics=[topic], group=READER_GROUP)
