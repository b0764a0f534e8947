from pathlib import Path

import pytest

from streaming import class_archive


def test_the_jvm_gets_the_archive_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    archive = class_archive.path(tmp_path)
    assert class_archive.option_to_read(archive) == ""
    archive.parent.mkdir()
    archive.touch()
    assert f'"-XX:SharedArchiveFile={archive}"' in class_archive.option_to_read(archive)


def test_the_jvm_that_writes_an_archive_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", class_archive.option_to_write(tmp_path / "new.jsa"))
    archive = tmp_path / "there.jsa"
    archive.touch()
    assert class_archive.option_to_read(archive) == ""


def test_another_pyspark_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = class_archive.path(tmp_path)
    monkeypatch.setattr(class_archive, "version", lambda _: "9.9.9")
    assert class_archive.path(tmp_path) != ours
