"""Which archive of classes a server starts with, and when one is written."""

import os
from pathlib import Path

import pytest

from controller.lab import class_archives


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are kept."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(class_archives, "FOLDER", folder)
    return folder


@pytest.fixture
def classpath(tmp_path: Path) -> str:
    """Of two jars in one folder, and one in another."""
    for name in ("a/one.jar", "a/two.jar", "b/three.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return os.pathsep.join([str(tmp_path / "a" / "*"), str(tmp_path / "b" / "three.jar")])


def written(classpath: str, folder: Path) -> Path:
    """The file that a server without an archive is to write; this test writes it."""
    [file] = [
        Path(option.partition("=")[2])
        for option in class_archives.options("kafka", classpath, folder)
        if option.startswith("-XX:ArchiveClassesAtExit=")
    ]
    folder.mkdir(exist_ok=True)
    file.write_text("classes")
    return file


def test_what_one_server_has_written_the_next_one_reads(kept: Path, classpath: str, tmp_path: Path) -> None:
    file = written(classpath, tmp_path / "server")
    class_archives.store_archive(tmp_path / "server")
    assert f"-XX:SharedArchiveFile={kept / file.name}" in class_archives.options("kafka", classpath, tmp_path)
    assert not file.exists()
    assert [path.name for path in kept.iterdir()] == [file.name]


def test_a_folder_that_cannot_be_written_to_is_no_error(kept: Path, classpath: str, tmp_path: Path) -> None:
    kept.write_text("no folder")
    written(classpath, tmp_path / "server")
    class_archives.store_archive(tmp_path / "server")
