"""Asks Kafka for offsets of a partition: its ends, and those of a time.

For a moment a new partition, or one whose leader changes, has no leader that answers: these calls ask again.
"""

from typing import Any, Final

import confluent_kafka as ck

from controller.adapters.network.waiting import retry

_RETRY_SECONDS: Final = 0.05
_WITHOUT_LEADER: Final = frozenset({ck.KafkaError.NOT_LEADER_FOR_PARTITION, ck.KafkaError.LEADER_NOT_AVAILABLE})


def ends_of(consumer: Any, topic: str, partition: int, seconds: float) -> tuple[int, int]:
    """The first offset there is, and the one after the last, within *seconds*.  Raises KafkaException."""

    def ask() -> tuple[int, int]:
        low, high = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), timeout=seconds)
        return int(low), int(high)

    return retry(ask, seconds, again_after=_is_without_leader, every=_RETRY_SECONDS)


def offset_since(consumer: Any, topic: str, partition: int, time_ms: int, seconds: float) -> int | None:
    """The first offset that was appended at *time_ms* or later; None where there is none.  Raises KafkaException."""

    def ask() -> int | None:
        [found] = consumer.offsets_for_times([ck.TopicPartition(topic, partition, time_ms)], timeout=seconds)
        if found.error is not None:
            raise ck.KafkaException(found.error)
        return int(found.offset) if found.offset >= 0 else None

    return retry(ask, seconds, again_after=_is_without_leader, every=_RETRY_SECONDS)


def _is_without_leader(error: BaseException) -> bool:
    return isinstance(error, ck.KafkaException) and error.args[0].code() in _WITHOUT_LEADER
