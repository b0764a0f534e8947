"""Files of very many tiny records are read without a list of them: 80 MB of lines took 1.7 GB."""

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from controller.adapters.folder.backwards import lines_backwards
from controller.adapters.folder.disk_errors import lines_in
from controller.adapters.folder.records import FolderRecords
from controller.adapters.folder.tail import FolderTail
from controller.model.errors import SettingsError
from controller.offline.recorded_load import read_load
from controller.offline.recording import RecordedFiles

LINES = 20_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "a.jsonl").write_bytes(b"{}\n" * LINES)
    return tmp_path


def replayed(folder: Path) -> Iterator[object]:
    records = FolderRecords(folder)
    return records.read("metrics", records.extents("metrics"))


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: FolderTail(folder).backwards("metrics", (b"{",)),
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
    assert peak < 2 * 3 * LINES


def test_of_many_records_that_cannot_be_used_some_are_told_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n" * 250)
    with pytest.raises(SettingsError, match=r"; the first of 250 that cannot be used is .*/a\.jsonl, line 1: "):
        read_load([tmp_path], cluster="lab", period_ms=60_000)


@pytest.mark.parametrize("wanted", [(b"",), (b"a",), (b"a", b"bc"), (b"zz",), ()])
def test_lines_come_backwards_as_they_lie_there(wanted: tuple[bytes, ...]) -> None:
    chance = Random(1)
    for _ in range(300):
        content = b"".join(chance.choice((b"a", b"b", b"c", b"\n", b"\n\n", b"\r\n")) for _ in range(12))
        lines = [line.removesuffix(b"\r") for line in content.split(b"\n")]
        expected = [line for line in reversed(lines) if line and any(text in line for text in wanted)]
        assert [*lines_backwards(content, wanted)] == expected, content


def test_what_is_not_there_is_looked_for_once_and_not_for_each_line() -> None:
    class Content(bytes):
        looked = 0

        def rfind(self, *args: object) -> int:
            self.looked += args[0] == b"not there"
            return super().rfind(*args)  # type: ignore[arg-type]

    content = Content(b"a line\n" * 50)
    assert [*islice(lines_backwards(content, (b"not there", b"line")), 60)] == [b"a line"] * 50
    assert content.looked == 1
