"""`trimtab record` of a log in a real Pulsar."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.log import PulsarMetricsLog
from controller.adapters.pulsar.log.positions import number_of
from controller.adapters.pulsar.log.reader import read_rest
from controller.adapters.pulsar.log.records import PulsarRecordLog
from controller.adapters.pulsar.log.topics import create_topics
from controller.adapters.pulsar.log.writer import Outgoing, TopicWriter
from controller.adapters.recordings.reading import Recording
from controller.lab.pulsar_server import PulsarCluster
from controller.offline.record import Wanted, record
from controller.ports.records import Extent
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.recordings import SETTINGS
from tests.records import CLUSTER

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(pulsar: PulsarCluster) -> Iterator[LogConnection]:
    with closing(LogConnection(own_topics(pulsar))) as opened:
        create_topics(opened)
        yield opened


def test_a_recording_holds_the_messages_byte_for_byte_batches_and_all(
    connection: LogConnection, tmp_path: Path
) -> None:
    settings = connection.log
    with closing(TopicWriter(connection, settings.commands_topic)) as writer:
        for batch in range(3):  # a batch is one entry of a ledger
            writer.append(
                [Outgoing("tenant/ns", b"%d/%d" % (batch, number) + b"\x00\r\n") for number in range(20)],
                partitions=PARTITIONS,
            )
    log = PulsarRecordLog(settings)
    record(log, tmp_path / "rec", Wanted(), SETTINGS, CLUSTER)
    recording = Recording(tmp_path / "rec")
    held = [*recording.read("commands", recording.extents("commands"))]
    live = [
        (partition, number_of(*each.place), each.key.encode(), each.value)
        for partition in range(PARTITIONS)
        for each in read_rest(connection, settings.commands_topic, partition)
    ]
    assert len(live) == 60
    assert sorted((each.partition, each.offset, each.key or b"", each.value) for each in held) == sorted(live)
    middle = held[30]
    assert log.since("commands", middle.timestamp_ms)[middle.partition] <= middle.offset
    part = {middle.partition: Extent(held[10].offset, middle.offset)}
    assert [*log.read("commands", part)] == [*recording.read("commands", part)]
    # Places in Pulsar are no count, so it does not tell how much is left; a recording does.
    assert log.size("commands", log.extents("commands")) is None
    assert recording.size("commands", recording.extents("commands")) == 60


def test_from_the_midst_of_a_run_it_knows_what_was_known_and_begins_behind_the_ticks(
    connection: LogConnection, tmp_path: Path
) -> None:
    with closing(PulsarMetricsLog(connection.log, cluster=CLUSTER)) as log:
        write_intervals(log)
    knows_what_was_known_and_begins_behind_the_ticks(PulsarRecordLog(connection.log), tmp_path / "rec")
