"""Files of very many tiny records are read without a list of them: 80 MB of lines took 1.7 GB."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from controller.adapters.folder.disk_errors import lines_in
from controller.log.factory import recording, records_in
from controller.log.files.log import FolderLog
from controller.model.errors import SettingsError, WireError
from controller.offline.recorded_load import read_load
from controller.offline.recording import Recorded, RecordedFiles, RefusedRecords, cluster_of, write_ticks
from tests.contracts.bytes_log import backwards

LINES = 20_000
#: Bytes of the records that are read at once from the end: some thousands.
LARGEST_WINDOW = 2_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "a.jsonl").write_bytes(b"{}\n" * LINES)
    return tmp_path


def replayed(folder: Path) -> Iterator[object]:
    records = records_in(folder)
    return records.read("metrics", records.extents("metrics"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [
        lambda folder: recording(folder).backwards("metrics", (b"{",)),
        replayed,
        lambda folder: lines_in(folder / "metrics" / "a.jsonl"),
        lambda folder: RecordedFiles([folder / "metrics" / "a.jsonl"]),
    ],
)
def test_what_reads_records_holds_the_file_alone(folder: Path, read: Callable[[Path], Iterator[object]]) -> None:
    records = iter(read(folder))
    tracemalloc.start()
    try:
        assert sum(1 for _ in records) == LINES
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 3 * LINES + LARGEST_WINDOW


def read_plain(folder: Path) -> object:
    return read_load([folder], cluster=None, period_ms=60_000)


def read_ticked(folder: Path) -> object:
    return write_ticks(folder, folder / "ticked", cluster="lab", period_ms=60_000)


def test_of_many_records_that_cannot_be_used_some_are_told_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n" * 250)
    with pytest.raises(SettingsError, match=r"; the first of 250 that cannot be used is .*/a\.jsonl, line 1: "):
        read_load([tmp_path], cluster="lab", period_ms=60_000)


def test_records_that_cannot_be_used_are_passed_over_up_to_a_limit_and_then_refused_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.offline.recording.MAX_REFUSED", 2)
    records = RefusedRecords(max_lines=1)
    why = WireError("not_json", "a reason")
    for number in (1, 2):
        records.add(Recorded(tmp_path / "a", number, b"{}"), why)
    assert (records.number, records.lines) == (2, [f"{tmp_path}/a, line 1: not_json: a reason"])
    with pytest.raises(SettingsError, match=r"more than 2 records cannot be used, the first is .*/a, line 1: not_json"):
        records.add(Recorded(tmp_path / "a", 3, b"{}"), why)


@pytest.mark.parametrize("read", [read_ticked, read_plain])
def test_a_file_of_very_many_tiny_records_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n" * 250)
    read_lines = list[int]()
    lines = RecordedFiles.__iter__

    def counted(files: RecordedFiles) -> Iterator[Recorded]:
        for record in lines(files):
            read_lines.append(record.line)
            yield record

    monkeypatch.setattr("controller.offline.recording.MAX_REFUSED", 100)
    monkeypatch.setattr(RecordedFiles, "__iter__", counted)
    with pytest.raises(SettingsError, match="more than 100 records cannot be used"):
        read(tmp_path)
    assert max(read_lines) == 101


def test_the_cluster_is_that_of_the_first_record_that_names_one_behind_records_that_name_none(tmp_path: Path) -> None:
    tick = b'{"v":1,"type":"tick","cluster":"%s","interval":60000,"partitions":{"metrics":1,"results":1}}\n'
    (tmp_path / "a.jsonl").write_bytes(b"{}\n" + tick % b"east" + tick % b"west")
    with pytest.raises(SettingsError, match="of cluster 'east'; it holds records of 'west'"):
        read_load([tmp_path], cluster=None, period_ms=60_000)


def test_a_document_that_is_no_record_even_without_blanks_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = list[int]()
    monkeypatch.setattr("controller.offline.recording.json.loads", lambda text: parsed.append(len(text)))
    (tmp_path / "a.json").write_bytes(b"[" + b"{},\n" * 2_800_000 + b"{}]")
    with pytest.raises(SettingsError, match="too_large: 8400004 bytes, allowed: 8388608"):
        read_load([tmp_path], cluster=None, period_ms=60_000)
    assert parsed == []


def test_a_line_that_is_no_record_for_its_length_is_not_parsed_for_its_cluster(tmp_path: Path) -> None:
    assert cluster_of(Recorded(tmp_path, 1, b'{"cluster":"lab"}')) == "lab"
    assert cluster_of(Recorded(tmp_path, 1, b'{"cluster":"lab"}'.ljust(9_000_000))) is None


@pytest.mark.parametrize("about", [1, 3, 100])
def test_lines_come_backwards_as_they_lie_there(tmp_path: Path, about: int) -> None:
    chance = Random(1)
    for nth in range(100):
        content = b"".join(chance.choice((b"a", b"b", b"c", b"\n", b"\n\n")) for _ in range(12))
        folder = tmp_path / str(nth)
        (folder / "metrics").mkdir(parents=True)
        (folder / "metrics" / "a.jsonl").write_bytes(content)
        log = FolderLog(folder, cluster=None)
        assert backwards(log, "metrics", 0, about) == [line for line in content.split(b"\n") if line], content
