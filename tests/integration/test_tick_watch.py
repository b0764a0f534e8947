"""A tick in a real Kafka is seen a moment after it was written, and nothing else is taken for one."""

import time
from collections.abc import Callable
from contextlib import closing

import pytest

from controller.adapters.kafka.writer import Producer
from controller.lab.servers import KafkaServer
from controller.log.kafka.log import KafkaLog
from controller.log.ticked import LogTickWatch
from controller.settings.log import KafkaLogSettings
from tests.kafka_log import own_topics
from tests.records import as_bytes, tick

pytestmark = pytest.mark.integration

PERIOD = 60_000


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    return own_topics(kafka.bootstrap)


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def test_a_tick_ends_the_wait_and_one_that_is_not_of_this_cluster_or_of_the_future_does_not(
    log: KafkaLogSettings,
) -> None:
    producer, now = Producer(log.bootstrap), int(time.time() * 1000) // PERIOD * PERIOD

    def write(value: bytes) -> None:
        producer.send(log.results_topic, value, partition=0)
        producer.flush()

    counts = {"metrics": 2, "results": 2}
    write(as_bytes(tick(now - PERIOD, cluster="lab", partitions=counts)))
    with closing(LogTickWatch(lambda: KafkaLog(log, cluster="lab"), cluster="lab")) as ticks:
        # What was there before is not read; where the watch begins is settled a moment after it is made.
        newest = now - 2 * PERIOD

        def writes_until_seen() -> bool:
            write(as_bytes(tick(newest, cluster="lab", partitions=counts)))
            return ticks.newest is not None

        assert within(30, writes_until_seen)
        assert ticks.newest == newest
        ticks.wait(0)
        write(b"not json")
        write(as_bytes(tick(now, cluster="another", partitions=counts)))
        write(as_bytes(tick(now + 3_650 * 86_400_000, cluster="lab", partitions=counts)))
        write(as_bytes(tick(now, cluster="lab", partitions=counts)))
        assert within(30, lambda: ticks.newest == now)
        began = time.monotonic()
        ticks.wait(30)
        assert time.monotonic() - began < 15
        assert ticks.newest == now
