"""Offsets of a partition are asked for again while it has no leader, and for no other reason."""

from typing import Any

import confluent_kafka as ck
import pytest

from controller.adapters.kafka.offsets import ends_of, offset_since

_NO_LEADER = ck.KafkaException(ck.KafkaError(ck.KafkaError.NOT_LEADER_FOR_PARTITION))
_DENIED = ck.KafkaException(ck.KafkaError(ck.KafkaError.TOPIC_AUTHORIZATION_FAILED))


class Consumer:
    """Gives the answers one after the other; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def get_watermark_offsets(self, at: ck.TopicPartition, timeout: float) -> Any:
        assert (at.topic, at.partition) == ("metrics", 3)
        return self._next()

    def offsets_for_times(self, times: list[ck.TopicPartition], timeout: float) -> Any:
        assert [(each.topic, each.partition, each.offset) for each in times] == [("metrics", 3, 1_000)]
        return [self._next()]

    def _next(self) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class At:
    def __init__(self, offset: int, error: ck.KafkaError | None = None) -> None:
        self.offset, self.error = offset, error


def test_the_ends_of_a_partition_without_a_leader_are_asked_for_again() -> None:
    assert ends_of(Consumer(_NO_LEADER, (4, 9)), "metrics", 3, 5.0) == (4, 9)


def test_the_offset_of_a_time_is_asked_for_again_where_the_partition_had_no_leader() -> None:
    without = At(-1, ck.KafkaError(ck.KafkaError.LEADER_NOT_AVAILABLE))
    assert offset_since(Consumer(_NO_LEADER, without, At(7)), "metrics", 3, 1_000, 5.0) == 7


def test_a_time_behind_the_last_record_has_no_offset() -> None:
    assert offset_since(Consumer(At(-1)), "metrics", 3, 1_000, 5.0) is None


def test_any_other_error_is_raised_at_once() -> None:
    with pytest.raises(ck.KafkaException) as raised:
        ends_of(Consumer(_DENIED), "metrics", 3, 5.0)
    assert raised.value is _DENIED


def test_a_partition_that_stays_without_a_leader_is_an_error_in_the_end() -> None:
    with pytest.raises(ck.KafkaException):
        ends_of(Consumer(*[_NO_LEADER] * 100), "metrics", 3, 0.1)
