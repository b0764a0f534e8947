"""Copying a log into a recording, and reading it back."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS, Extent, Extents, RecordedTopic, StoredRecord
from controller.log.factory import records_in
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.record import NothingToRecordError, RecordRequest, record
from controller.strategies.shedding.overload_shedder import OverloadShedder
from tests.recordings import SETTINGS, MemoryRecordLog, made, some_log, stored
from tests.records import CLUSTER, T


def held(folder: Path) -> dict[str, list[StoredRecord]]:
    recording = Recording(folder)
    return {topic: [*recording.read(topic, recording.extents(topic))] for topic in RECORDED_TOPICS}


def test_a_recording_holds_the_records_byte_for_byte_in_their_order(tmp_path: Path) -> None:
    log = some_log()
    manifest = made(tmp_path / "new", log)
    assert held(tmp_path / "new") == {
        "metrics": [*log.topics["metrics"]], "results": [], "commands": [], "journal": [*log.topics["journal"]],
    }  # fmt: skip
    assert [file.path for file in manifest.of_topic("metrics")] == [f"metrics/00000{i}.parquet" for i in range(4)]
    assert sum(each.records for each in manifest.topics["metrics"]) == 20


def test_the_manifest_carries_the_settings_that_decisions_depend_on(tmp_path: Path) -> None:
    made(tmp_path / "new", some_log())
    manifest = Recording(tmp_path / "new").manifest
    assert (manifest.cluster, manifest.settings) == (CLUSTER, SETTINGS)
    assert isinstance(manifest.settings.policy(CLUSTER).shedder, OverloadShedder)


def test_a_recording_names_no_class_that_would_be_imported() -> None:
    hostile = SETTINGS.model_copy(update={"broker_conf": {"loadBalancerLoadSheddingStrategy": "my.own.Shedder"}})
    with pytest.raises(SettingsError, match="is not part of trimtab"):
        hostile.policy(CLUSTER)


@pytest.mark.parametrize("records", [0, 1])
def test_no_record_or_one(tmp_path: Path, records: int) -> None:
    log = MemoryRecordLog({"metrics": [stored(7, b"x" * records)][:records]})
    if not records:
        with pytest.raises(TrimtabError, match="memory holds no record of metrics, results, commands, nor of another"):
            made(tmp_path / "new", log)
        assert not (tmp_path / "new").exists()
    else:
        made(tmp_path / "new", log)
        assert held(tmp_path / "new")["metrics"] == [stored(7, b"x")]


def test_a_span_of_time_is_copied_with_the_journal_from_an_entry_with_the_whole_memory_on(tmp_path: Path) -> None:
    minute = 60_000
    metrics = [stored(i, at=T + i * minute) for i in range(200)]
    log = MemoryRecordLog({"metrics": metrics, "journal": metrics})
    made(tmp_path / "new", log, RecordRequest(from_ms=T + 100 * minute, to_ms=T + 120 * minute), file_records=100)
    found = held(tmp_path / "new")
    assert [each.offset for each in found["metrics"]] == [*range(100, 120)]
    assert [each.offset for each in found["journal"]] == [*range(39, 120)]


def minutes(*numbers: int) -> MemoryRecordLog:
    """A log whose metrics and journal have a record in each of these minutes from T on."""
    written = [stored(i, at=T + minute * 60_000) for i, minute in enumerate(numbers)]
    return MemoryRecordLog({"metrics": written, "journal": written})


def spanning(since: int | None, until: int | None) -> RecordRequest:
    from_ms, to_ms = (None if minute is None else T + minute * 60_000 for minute in (since, until))
    return RecordRequest(from_ms=from_ms, to_ms=to_ms)


@pytest.mark.parametrize(
    ("since", "until", "asked", "what"),
    [
        (40, None, "from 2025-01-01T00:40:00Z on", "give an earlier --from"),
        (40, 50, "from 2025-01-01T00:40:00Z to 2025-01-01T00:50:00Z", "give an earlier --from"),
        (None, 1, "before 2025-01-01T00:01:00Z", "give a later --to"),
        (12, 18, "from 2025-01-01T00:12:00Z to 2025-01-01T00:18:00Z", "give a longer time, --from and --to"),
    ],
)
def test_a_time_without_records_is_refused_with_what_the_log_has_and_nothing_is_left(
    tmp_path: Path, since: int | None, until: int | None, asked: str, what: str
) -> None:
    log, wanted = minutes(10, 11, 20), spanning(since, until)
    with pytest.raises(NothingToRecordError) as refused:
        record(log, tmp_path / "above" / "new", wanted, SETTINGS, CLUSTER)
    assert str(refused.value) == (
        f"memory holds no record of metrics, results, commands {asked};"
        f" it holds those from 2025-01-01T00:10:00Z to 2025-01-01T00:20:00Z: {what}"
    )
    assert [*tmp_path.iterdir()] == []


def test_the_journal_alone_is_copied_where_it_is_asked_for_alone(tmp_path: Path) -> None:
    log = MemoryRecordLog({"metrics": [], "journal": minutes(10).topics["journal"]})
    with pytest.raises(NothingToRecordError):
        made(tmp_path / "new", log, RecordRequest(from_ms=T))
    assert made(tmp_path / "new", log, RecordRequest(topics=("journal", "commands"), from_ms=T)).files


class MarksAlone(MemoryRecordLog):
    """Has offsets of which none is a record: transactions' marks."""

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        return iter(())


def test_offsets_without_a_record_make_no_recording_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with pytest.raises(NothingToRecordError, match="at the offsets of --offsets"):
        made(tmp_path / "new", MarksAlone(some_log().topics), RecordRequest(offsets={"metrics": {0: Extent(0, 9)}}))
    assert [*tmp_path.rglob("*")] == [tmp_path / "new"]


def test_offsets_are_copied_and_other_partitions_of_that_topic_are_not(tmp_path: Path) -> None:
    wanted = RecordRequest(topics=("metrics",), offsets={"metrics": {0: Extent(9, 28), 9: Extent(0, 5)}})
    made(tmp_path / "new", some_log(), wanted)
    assert [(each.partition, each.offset) for each in held(tmp_path / "new")["metrics"]] == [(0, 9), (0, 18), (0, 27)]


def test_a_recording_is_itself_a_log_that_a_part_is_copied_of(tmp_path: Path) -> None:
    made(tmp_path / "all", some_log(), file_records=4)
    part = Recording(tmp_path / "all")
    assert part.since("metrics", T + 5) == {0: 18, 1: 21, 2: 15}
    assert part.since("metrics", T + 500) == {each: extent.end for each, extent in part.extents("metrics").items()}
    assert [each.offset for each in part.read("metrics", {1: Extent(20, 40)})] == [21, 30, 39]


class KilledError(Exception):
    """In place of kill -9."""


class DyingLog(MemoryRecordLog):
    """Dies after so many records."""

    def __init__(self, log: MemoryRecordLog, after: int) -> None:
        super().__init__(log.topics)
        self.after = after

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        for each in super().read(topic, extents):
            if self.after == 0:
                raise KilledError
            self.after -= 1
            yield each


@pytest.mark.parametrize("after", range(0, 22, 3))
def test_a_recording_that_was_killed_goes_on_where_it_was_and_is_the_same_in_the_end(
    tmp_path: Path, after: int
) -> None:
    log, folder = some_log(), tmp_path / "new"
    with pytest.raises(KilledError):
        made(folder, DyingLog(log, after))
    # What a kill in the midst of a file leaves.
    (folder / "metrics" / f".000009.parquet.{uuid4().hex}").write_bytes(b"half")
    with pytest.raises(RecordingError, match="not complete"):
        Recording(folder)
    made(folder, log)
    assert held(folder) == {"results": [], "commands": [], **{topic: [*of] for topic, of in log.topics.items()}}
    assert sorted(path.name for path in folder.iterdir()) == [
        "commands",
        "journal",
        "manifest.json",
        "metrics",
        "results",
    ]
    assert not [*folder.rglob(".*")]


def test_records_that_came_meanwhile_are_not_copied_when_it_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        made(tmp_path / "new", DyingLog(some_log(), 10))
    made(tmp_path / "new", some_log(40))
    assert len(held(tmp_path / "new")["metrics"]) == 20


def test_a_recording_goes_on_only_as_it_was_begun_and_while_the_log_has_its_records(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        made(tmp_path / "new", DyingLog(some_log(), 10))
    with pytest.raises(SettingsError, match="the beginning of another recording"):
        made(tmp_path / "new", some_log(), RecordRequest(options="--topic metrics"))
    kept = MemoryRecordLog({**some_log().topics, "metrics": some_log().topics["metrics"][9:]})
    with pytest.raises(TrimtabError, match="gone since the recording was begun"):
        made(tmp_path / "new", kept)


def test_a_recording_does_not_go_on_where_offsets_count_from_another_record_by_now(tmp_path: Path) -> None:
    log = DyingLog(some_log(), 10)
    log.oldest = {"metrics": "000000000000000-000001.jsonl"}
    with pytest.raises(KilledError):
        made(tmp_path / "new", log)
    # As many records as before, for others came behind them.
    moved = some_log()
    moved.oldest = {"metrics": "001735689600000-000000.jsonl"}
    with pytest.raises(TrimtabError, match=r"from offset 1[0-9] on are gone since the recording was begun"):
        made(tmp_path / "new", moved)
    moved.oldest = log.oldest
    made(tmp_path / "new", moved)
    assert held(tmp_path / "new")["metrics"] == [*moved.topics["metrics"]]


def test_a_folder_with_something_else_or_with_a_whole_recording_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path / "new", some_log())
    with pytest.raises(SettingsError, match="a complete recording already"):
        made(tmp_path / "new", some_log())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("dear diary")
    with pytest.raises(SettingsError, match=r"not empty, it holds 'diary\.txt'"):
        made(tmp_path / "other", some_log())


def test_what_a_kill_behind_the_manifest_left_is_removed(tmp_path: Path) -> None:
    made(tmp_path / "new", some_log())
    (tmp_path / "new" / "progress.json").write_text("true names")
    with pytest.raises(SettingsError, match="a complete recording already"):
        made(tmp_path / "new", some_log())
    assert not (tmp_path / "new" / "progress.json").exists()


def test_a_folder_that_is_neither_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="neither a recording"):
        records_in(tmp_path)


def test_the_first_file_that_is_in_the_way_of_going_on_is_named(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        made(tmp_path / "new", DyingLog(some_log(), 10))
    (tmp_path / "new" / "metrics" / "000000.parquet").write_bytes(b"")
    with pytest.raises(RecordingError, match=r"000000\.parquet: was changed"):
        made(tmp_path / "new", some_log())
