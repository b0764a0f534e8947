"""When an archive of Spark's classes is made, and what processes leave that were killed while they made one."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.model.errors import TrimtabError
from streaming import make_class_archive
from streaming.spark import class_archive

_DAY_SECONDS = 86_400


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Where it is to be made; the folder does not exist yet."""
    return tmp_path / "trimtab" / "spark-4.2.0-0123456789abcdef.jsa"


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | None, int], None]:
    """Has Spark's JVM write this content, or nothing, and end with this exit code."""

    def ends(content: bytes | None, exit_code: int) -> None:
        def end_in_order() -> int:
            target = os.environ[class_archive.OPTIONS].rpartition("ArchiveClassesAtExit=")[2].partition('"')[0]
            if content is not None:
                Path(target).write_bytes(content)
            return exit_code

        monkeypatch.setattr(make_class_archive, "end_in_order", end_in_order)

    monkeypatch.setenv(class_archive.OPTIONS, "")
    monkeypatch.setattr(make_class_archive, "_use", lambda *_: None)
    monkeypatch.setattr("controller.adapters.disk.jars.fetch", lambda *_: [])
    return ends


def names(archive: Path) -> list[str]:
    return sorted(each.name.removeprefix(archive.stem) for each in archive.parent.iterdir())


def test_it_is_made_once(archive: Path, jvm: Callable[[bytes | None, int], None]) -> None:
    assert class_archive.is_to_be_made(archive)
    jvm(b"classes", 0)
    make_class_archive.make(archive)
    assert archive.read_bytes() == b"classes"
    assert names(archive) == [".jsa", ".lock"]
    assert not class_archive.is_to_be_made(archive)


@pytest.mark.parametrize(("content", "exit_code"), [(None, 0), (b"half", 1)])
def test_where_the_jvm_writes_none_or_half_of_it_no_start_tries_again_for_a_day(
    archive: Path, jvm: Callable[[bytes | None, int], None], content: bytes | None, exit_code: int
) -> None:
    jvm(content, exit_code)
    with pytest.raises(TrimtabError, match=f"wrote no archive of its classes .exit code {exit_code}"):
        make_class_archive.make(archive)
    assert names(archive) == [".lock", ".none"]
    assert "wrote no archive" in class_archive.failure_of(archive).read_text()
    assert not class_archive.is_to_be_made(archive)
    assert class_archive.is_to_be_made(archive, time.time() + _DAY_SECONDS)
    jvm(b"classes", 0)
    make_class_archive.make(archive)
    assert names(archive) == [".jsa", ".lock"]


def test_what_a_killed_process_left_is_deleted_and_not_what_others_work_in(
    archive: Path, jvm: Callable[[bytes | None, int], None]
) -> None:
    old, ours, others = (
        archive.parent / name for name in (".archive-old", f".archive-{archive.stem}-x", ".archive-spark-9.9.9-y")
    )
    for left in (old, ours, others):
        left.mkdir(parents=True)
        (left / "half.jsa").touch()
    os.utime(old, (0, 0))
    assert class_archive.is_to_be_made(archive)
    jvm(b"classes", 0)
    make_class_archive.make(archive)
    assert [each.exists() for each in (old, ours, others)] == [False, False, True]


def test_while_one_process_makes_it_no_other_one_begins(
    archive: Path, jvm: Callable[[bytes | None, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def meanwhile(*_: object) -> None:
        asked.append(class_archive.is_to_be_made(archive))
        make_class_archive.make(archive)  # returns at once

    jvm(b"classes", 0)
    monkeypatch.setattr(make_class_archive, "_use", meanwhile)
    make_class_archive.make(archive)
    assert asked == [False]


def test_where_nothing_can_be_written_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "trimtab").touch()
    assert not class_archive.is_to_be_made(tmp_path / "trimtab" / "spark.jsa")


def test_where_nothing_can_be_kept_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    archive = tmp_path / "file" / "trimtab" / "spark.jsa"
    assert not class_archive.is_to_be_made(archive)
    with pytest.raises(TrimtabError, match="file/trimtab: Not a directory: cannot store an archive of Spark's classes"):
        make_class_archive.make(archive)
