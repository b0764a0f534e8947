"""A tick in a real Kafka is seen a moment after it was written, and nothing else is taken for one."""

import time
from collections.abc import Callable
from contextlib import closing
from uuid import uuid4

import pytest

from controller.adapters.kafka.log import create_topics
from controller.adapters.kafka.tick_watch import KafkaTickWatch
from controller.adapters.kafka.writer import Producer
from controller.lab.servers import KafkaServer
from controller.settings.log import KafkaLogSettings
from tests.records import as_bytes, tick

pytestmark = pytest.mark.integration

PERIOD = 60_000


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    prefix = uuid4().hex
    names = ("metrics", "results", "commands", "journal", "dead_letters")
    topics = {f"{name}_topic": f"{prefix}-{name}" for name in names}
    settings = KafkaLogSettings.model_validate({"bootstrap": kafka.bootstrap, "partitions": 2, **topics})
    create_topics(settings)
    return settings


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
    with closing(KafkaTickWatch(log, cluster="lab")) as ticks:
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
