"""Messages on a real Pulsar that no client library would write: all are read, and none keeps a reader waiting."""

import time
from contextlib import closing

import pytest

from controller.adapters.pulsar.log.client import log_client, partition_name, topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import all_extents, log_extents
from controller.adapters.pulsar.log.fetch import blocks
from controller.adapters.pulsar.log.planner import ranges
from controller.adapters.pulsar.log.positions import BEGINNING
from controller.adapters.pulsar.log.topics import create_topics
from controller.lab.pulsar_server import PulsarCluster
from controller.log.pulsar.log import PulsarLog
from controller.settings.pulsar_log import PulsarLogSettings
from tests.integration.pulsar_log import own_topics
from tests.raw_pulsar import Field, fields, raw_producer

pytestmark = pytest.mark.integration

LATEST_MS = (1 << 63) - 1
NO_TEXT = b"\xff\xfe"
#: By their fields of Pulsar's MessageMetadata.
HOSTILE: dict[bytes, tuple[Field, ...]] = {
    b"key that is no text": ((6, NO_TEXT),),
    b"property that is no text": ((4, fields((1, NO_TEXT), (2, NO_TEXT))),),
    b"null": ((25, 1),),
    b"replicated from another cluster": ((5, "elsewhere"),),
    b"to be delivered in a million years": ((19, 1 << 60),),
    b"of a schema that nobody knows": ((16, b"\0" * 8),),
    b"encrypted": ((13, fields((1, "key"), (2, b"x"))), (14, "AES"), (15, b"0" * 12)),
}


@pytest.fixture
def log(pulsar: PulsarCluster) -> PulsarLogSettings:
    settings = own_topics(pulsar, partitions=1)
    with closing(LogConnection(settings)) as connection:
        create_topics(connection, settings.metrics_topic)
    return settings


def in_python(log: PulsarLogSettings) -> list[tuple[bytes, int]]:
    with closing(PulsarLog(log, cluster="lab")) as opened:
        return [(record.value, record.timestamp_ms) for record in opened.read("metrics").read_to_end()]


def in_spark(log: PulsarLogSettings) -> list[tuple[bytes, int]]:
    """As one of Spark's tasks reads it."""
    topic = topic_name(log, log.metrics_topic)
    with closing(log_extents(log)) as http:
        extents = all_extents(http, [topic])
    [wanted] = ranges([((topic, 0), BEGINNING, extents[topic, 0].end)], extents)
    with closing(log_client(log)) as client:
        return [pair for block in blocks(client, wanted) for pair in zip(block.values, block.publish_ms, strict=True)]


def test_hostile_messages_are_read_and_keep_no_reader_waiting(log: PulsarLogSettings) -> None:
    full = partition_name(topic_name(log, log.metrics_topic), 0)
    with raw_producer(log.admin_url[0], full) as producer:
        assert producer.send(b"of the far past", time_ms=0)
        assert producer.send(b"of the far future", time_ms=(1 << 64) - 1)
        stored = [value for value, metadata in HOSTILE.items() if producer.send(value, *metadata, time_ms=5)]
        assert producer.send(b"a mark of the brokers", (20, 10), time_ms=5)  # which they keep to themselves
        # The last one: nothing comes behind it that would help a reader on.
        assert producer.send(b"encrypted", *HOSTILE[b"encrypted"], time_ms=5)
    assert stored == [*HOSTILE]
    expected = [(b"of the far past", 0), (b"of the far future", LATEST_MS), *((value, 5) for value in stored)]
    begun, now_ms = time.monotonic(), time.time_ns() // 1_000_000
    for read in (in_python, in_spark):
        found = [(value or b"null", at) for value, at in read(log)]
        assert found[1][1] >= now_ms  # as late as a clock of the reader's allows
        assert [found[0], (found[1][0], LATEST_MS), *found[2:]] == [*expected, (b"encrypted", 5)]
    assert time.monotonic() - begun < 25
