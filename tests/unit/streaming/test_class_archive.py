from pathlib import Path

import pytest

from streaming.spark import class_archive


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark.jar").write_bytes(b"PK")
    return tmp_path


def test_the_jvm_gets_the_archive_once_it_is_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    archive = class_archive.path(home, home)
    assert class_archive.option_to_read(archive) == ""
    archive.parent.mkdir()
    archive.touch()
    assert f'"-XX:SharedArchiveFile={archive}"' in class_archive.option_to_read(archive)


def test_the_jvm_that_writes_an_archive_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", class_archive.option_to_write(tmp_path / "new.jsa"))
    archive = tmp_path / "there.jsa"
    archive.touch()
    assert class_archive.option_to_read(archive) == ""


def test_another_pyspark_has_another_archive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = class_archive.path(home)
    monkeypatch.setattr(class_archive, "version", lambda _: "9.9.9")
    assert class_archive.path(home) != ours


def test_other_jars_have_another_archive(home: Path) -> None:
    ours = class_archive.path(home)
    (home / "jars" / "spark.jar").write_bytes(b"PK, and more")
    changed = class_archive.path(home)
    (home / "jars" / "added.jar").touch()
    assert len({ours, changed, class_archive.path(home)}) == 3


def test_another_java_has_another_archive(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = class_archive.path(home)
    for name in ("bin/java", "lib/modules"):
        (tmp_path / "java" / name).parent.mkdir(parents=True)
        (tmp_path / "java" / name).touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    assert class_archive.path(home) != ours


def test_memory_is_what_the_machine_has_and_the_container_may_use(tmp_path: Path) -> None:
    machine, limit, used = tmp_path / "meminfo", tmp_path / "memory.max", tmp_path / "memory.current"
    assert class_archive.free_memory(machine, limit, used) == 0
    machine.write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert class_archive.free_memory(machine, limit, used) == 4000 << 10
    limit.write_text("max\n")
    used.write_text("1024\n")
    assert class_archive.free_memory(machine, limit, used) == 4000 << 10
    limit.write_text("3072\n")
    assert class_archive.free_memory(machine, limit, used) == 2048
