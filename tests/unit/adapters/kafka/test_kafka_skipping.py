"""Steps over unreadable batches, whatever the leader says of the partition's end."""

from unittest.mock import Mock

import confluent_kafka as ck
import pytest

from controller.adapters.kafka.client import NO_CLIENT
from controller.adapters.kafka.skipping import BatchSkipper


def unreadable(offset: int) -> Mock:
    error = ck.KafkaError(ck.KafkaError._BAD_COMPRESSION)
    return Mock(**{"partition.return_value": 0, "offset.return_value": offset, "error.return_value": error})


@pytest.mark.parametrize("end", [0, 7, 10])
def test_reading_does_not_go_back_where_a_leader_that_lags_ends_before_the_batch(
    monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    answering = Mock(**{"get_watermark_offsets.return_value": (0, end)})
    monkeypatch.setattr("controller.adapters.kafka.skipping.ck.Consumer", Mock(return_value=answering))
    assert BatchSkipper("localhost:1", "metrics", NO_CLIENT).skip(unreadable(10)).offset == 11
