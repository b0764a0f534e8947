"""Small recordings, and a log in memory to make them of."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from controller.adapters.recordings.manifest import Manifest, RecordedSettings, recorded_settings
from controller.adapters.recordings.record_log import Extent, Extents, RecordedTopic, StoredRecord, offsets_in
from controller.adapters.recordings.writing import RecordingWriter
from controller.log.factory import records_in
from controller.offline.record import RecordRequest, record
from controller.settings.guardrails import GuardrailSettings
from controller.settings.trimtab_toml import DecisionSettings, IntervalSettings, read_settings
from tests.records import CLUSTER, T

SETTINGS = RecordedSettings(
    intervals=IntervalSettings(),
    decisions=DecisionSettings(mode="active", seed=3),
    guardrails=GuardrailSettings(brokers_balance_unknown="ignore"),
    whole_every_intervals=60,
    broker_conf={"loadBalancerLoadSheddingStrategy": "OverloadShedder"},
)


class MemoryRecordLog:
    """RecordLog in memory."""

    where = "memory"

    def __init__(self, topics: Mapping[RecordedTopic, Sequence[StoredRecord]]) -> None:
        self.topics = topics
        self.oldest: dict[RecordedTopic, str] = {}

    def extents(self, topic: RecordedTopic) -> Extents:
        found: dict[int, Extent] = {}
        for each in self.topics.get(topic, ()):
            at = found.get(each.partition, Extent(each.offset, 0))
            found[each.partition] = Extent(min(at.first, each.offset), max(at.end, each.offset + 1))
        return found

    def counted_from(self, topic: RecordedTopic) -> str:
        return self.oldest.get(topic, "")

    def since(self, topic: RecordedTopic, time_ms: int) -> Mapping[int, int]:
        found = {partition: extent.end for partition, extent in self.extents(topic).items()}
        for each in self.topics.get(topic, ()):
            if each.timestamp_ms >= time_ms:
                found[each.partition] = min(found[each.partition], each.offset)
        return found

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        return offsets_in(extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        for each in self.topics.get(topic, ()):
            wanted = extents.get(each.partition, Extent(0, 0))
            if wanted.first <= each.offset < wanted.end:
                yield each


def stored(
    offset: int, value: bytes = b"{}", *, partition: int = 0, at: int | None = None, **more: object
) -> StoredRecord:
    time_ms = T + offset if at is None else at
    key: bytes | None = b"key"
    return StoredRecord(partition, offset, time_ms, key, value)._replace(**more)  # type: ignore[arg-type]


def some_log(records: int = 20) -> MemoryRecordLog:
    """Three partitions with gaps between offsets, in the order of time; and a journal."""
    metrics = [
        stored(3 * i, b"%d" % i * 7, partition=i % 3, at=T + i, key=b"broker-%d" % (i % 2), headers=(("a", b"\xff"),))
        for i in range(records)
    ]
    return MemoryRecordLog({"metrics": metrics, "journal": [stored(0, b"\x00\n\r", key=None), stored(1, b"")]})


def made(folder: Path, log: MemoryRecordLog, wanted: RecordRequest | None = None, *, file_records: int = 6) -> Manifest:
    writer = RecordingWriter(folder, file_records=file_records)
    return record(log, folder, wanted or RecordRequest(), SETTINGS, CLUSTER, writer=writer)


def recording_of(conf: Path) -> Path:
    """A recording, beside the settings in *conf*, of the log in the folder ``log`` there."""
    settings, folder = read_settings(conf), conf.parent / "recording"
    log = records_in(conf.parent / "log")
    record(log, folder, RecordRequest(), recorded_settings(settings), CLUSTER, writer=RecordingWriter(folder))
    return folder
