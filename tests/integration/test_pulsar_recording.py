"""`trimtab record` of a log in a real Pulsar."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import Extent
from controller.lab.pulsar_server import PulsarCluster
from controller.log.port import Out
from controller.log.pulsar.log import PulsarLog
from controller.log.records import LogRecords
from controller.offline.record import RecordRequest, record
from tests.integration.pulsar_log import own_topics
from tests.recordings import SETTINGS
from tests.records import CLUSTER

pytestmark = pytest.mark.integration


@pytest.fixture
def log(pulsar: PulsarCluster) -> Iterator[PulsarLog]:
    with closing(PulsarLog(own_topics(pulsar), cluster=CLUSTER)) as opened:
        yield opened


def test_a_recording_holds_the_messages_byte_for_byte_batches_and_all(log: PulsarLog, tmp_path: Path) -> None:
    for batch in range(3):  # a batch is one entry of a ledger
        values = [b"%d/%d" % (batch, number) + b"\x00\r\n" for number in range(20)]
        log.append([Out("commands", value, key=b"tenant/ns") for value in values], within_seconds=30.0)
    records = LogRecords(log, where="Pulsar")
    record(records, tmp_path / "rec", RecordRequest(), SETTINGS, CLUSTER)
    recording = Recording(tmp_path / "rec")
    held = [*recording.read("commands", recording.extents("commands"))]
    live = [(each.partition, each.position, each.key, each.value) for each in log.read("commands").read_to_end()]
    assert len(live) == 60
    assert sorted((each.partition, each.offset, each.key or b"", each.value) for each in held) == sorted(live)
    middle = held[30]
    assert records.since("commands", middle.timestamp_ms)[middle.partition] <= middle.offset
    part = {middle.partition: Extent(held[10].offset, middle.offset)}
    assert [*records.read("commands", part)] == [*recording.read("commands", part)]
    # Places in Pulsar are no count, so it does not tell how much is left; a recording does.
    assert records.size("commands", records.extents("commands")) is None
    assert recording.size("commands", recording.extents("commands")) == 60
