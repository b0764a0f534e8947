"""Asks Kafka for offsets of a partition: its ends, and those of a time.

For a moment a new partition, or one whose leader changes, has no leader that answers: these calls ask again.
"""

from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.network.waiting import retry

_RETRY_SECONDS: Final = 0.05
#: How much earlier to ask if the broker cannot return the offset of a time: a second, a minute, an hour.
_EARLIER_MS: Final = (1_000, 60_000, 3_600_000)
_WITHOUT_LEADER: Final = frozenset(
    {
        ck.KafkaError.NOT_LEADER_FOR_PARTITION,
        ck.KafkaError.LEADER_NOT_AVAILABLE,
        ck.KafkaError.OFFSET_NOT_AVAILABLE,  # a new leader does not know yet how far its predecessor was replicated
    }
)


def ends_of(consumer: Any, topic: str, partition: int, seconds: float) -> tuple[int, int]:
    """The first offset there is, and the one after the last, within *seconds*.  Raises KafkaException."""

    def ask() -> tuple[int, int]:
        low, high = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), timeout=seconds)
        return int(low), int(high)

    return retry(ask, seconds, again_after=_is_without_leader, every=_RETRY_SECONDS)


def offset_since(consumer: Any, topic: str, partition: int, time_ms: int, seconds: float) -> int | None:
    """The first offset that was appended at *time_ms* or later; None where there is none.  Raises KafkaException.

    The broker unpacks the batch that it finds.  Where that fails, as of a batch that is larger than its memory, it is
    the first offset of an earlier time.
    """
    for earlier_ms in (0, *_EARLIER_MS):
        try:
            return _offset_since(consumer, topic, partition, max(0, time_ms - earlier_ms), seconds)
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.UNKNOWN:
                raise
    return ends_of(consumer, topic, partition, seconds)[0]


def _offset_since(consumer: Any, topic: str, partition: int, time_ms: int, seconds: float) -> int | None:
    def ask() -> int | None:
        [partition_offset] = consumer.offsets_for_times([ck.TopicPartition(topic, partition, time_ms)], timeout=seconds)
        if partition_offset.error is not None:
            raise ck.KafkaException(partition_offset.error)
        return int(partition_offset.offset) if partition_offset.offset >= 0 else None

    return retry(ask, seconds, again_after=_is_without_leader, every=_RETRY_SECONDS)


def _is_without_leader(error: BaseException) -> bool:
    return isinstance(error, ck.KafkaException) and error.args[0].code() in _WITHOUT_LEADER
