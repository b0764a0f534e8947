"""Steps over record batches that librdkafka does not unpack, because they are damaged or would become too large.

librdkafka reports the first offset of such a batch, but not the last one, and fetches the batch again and again.  A
fetch from any offset in a batch returns the whole batch, so the same error: a search over offsets finds where it ends.
"""

import logging
from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.kafka.client import BOUNDED, LIBRDKAFKA_LOG, PATIENCE_SECONDS, Client, connection_options
from controller.adapters.kafka.errors import failure
from controller.adapters.kafka.offsets import ends_of
from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

_GROUP: Final = "trimtab-reader"
_POLL_SECONDS: Final = 0.2


def is_unreadable(error: ck.KafkaError) -> bool:
    """Whether *error* is that of a batch which librdkafka does not unpack."""
    return bool(error.code() == ck.KafkaError._BAD_COMPRESSION)


class BatchSkipper:
    """Finds where unreadable batches of a topic end.  Connects when the first one comes."""

    def __init__(self, bootstrap: str, topic: str, client: Client) -> None:
        self._bootstrap, self._topic, self._client = bootstrap, topic, client
        self._where = f"Kafka at {bootstrap}, topic {topic!r}"
        self._consumer: Any = None

    def skip(self, message: Any) -> ck.TopicPartition:
        """The offset to continue at after *message*, the error of an unreadable batch, which is logged.

        TrimtabError where Kafka does not answer.
        """
        partition, first = message.partition(), message.offset()
        end = self._end_of(partition, first)
        log.error(
            "%s, partition %d: skipping the batch of offsets %d to %d and all of its records: %s",
            self._where, partition, first, end - 1, message.error().str(),
        )  # fmt: skip
        return ck.TopicPartition(self._topic, partition, end)

    def close(self) -> None:
        """End the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _end_of(self, partition: int, first: int) -> int:
        """The offset behind the batch at *first*.  O(log of its records) fetches; none larger than the batch."""
        if self._consumer is None:
            # Uncommitted records end a batch as well as others.
            ours = {"group.id": _GROUP, "enable.partition.eof": True, "isolation.level": "read_uncommitted"}
            options = connection_options(self._bootstrap, self._client, **BOUNDED, **ours)
            self._consumer = ck.Consumer(options, logger=LIBRDKAFKA_LOG)
        try:
            end = ends_of(self._consumer, self._topic, partition, PATIENCE_SECONDS)[1]
            inside, outside = first, max(end, first + 1)  # a leader that lags may know of an end before the batch
            step = 1
            while outside - inside > 1:
                probe = inside + max(1, min(step, (outside - inside) // 2))
                if self._is_in_batch(partition, first, probe):
                    inside, step = probe, 2 * step
                else:
                    outside = probe
        except ck.KafkaException as error:
            raise failure(self._where, error, self._client, operation="Read", topics=[self._topic]) from error
        return outside

    def _is_in_batch(self, partition: int, first: int, probe: int) -> bool:
        self._consumer.assign([ck.TopicPartition(self._topic, partition, probe)])
        deadline = Deadline.after(PATIENCE_SECONDS)
        while not deadline.passed:
            message = self._consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is None or error.code() == ck.KafkaError._PARTITION_EOF:
                return False
            if is_unreadable(error):
                return bool(message.offset() == first)
            if error.fatal():
                break
        raise TrimtabError(f"{self._where}, partition {partition}: no answer at offset {probe}")
