"""Jars by the lock: fetched with the real Ivy, from a Maven repository that lies in a folder."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controller.adapters.disk import jars
from controller.adapters.disk.places import CACHE
from controller.model.errors import SettingsError, TrimtabError

needs_ivy = pytest.mark.integration

ONE, TWO = "org.example.first:one:1.0", "org.example:two_2.13:2.5-3"
CONTENT = {ONE: b"the first jar", TWO: b"the second jar"}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository with the jars of CONTENT, used instead of the real ones."""
    root = tmp_path / "repository"
    for coordinates, content in CONTENT.items():
        path = in_repository(root, coordinates)
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    monkeypatch.setenv(jars.MIRROR, root.as_uri())
    return root


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return write_lock(tmp_path / "jars.lock", CONTENT)


def write_lock(path: Path, content: Mapping[str, bytes]) -> Path:
    lines = [f'"{name}" = "{hashlib.sha256(jar).hexdigest()}"' for name, jar in content.items()]
    path.write_text("\n".join(["[some]", *lines, "[other]"]), encoding="utf-8")
    return path


def in_repository(root: Path, coordinates: str) -> Path:
    organisation, name, revision = coordinates.split(":")
    return root / organisation.replace(".", "/") / name / revision / f"{name}-{revision}.jar"


def whole(paths: list[Path]) -> bool:
    return [path.read_bytes() for path in paths] == list(CONTENT.values())


@needs_ivy
@pytest.mark.usefixtures("repository")
def test_a_set_is_fetched_whole_and_nothing_else_is_left(lock: Path, tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    paths = jars.fetch("some", folder, lock)
    assert paths == [folder / "some" / "one-1.0.jar", folder / "some" / "two_2.13-2.5-3.jar"]
    assert whole(paths)
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == paths
    assert list(folder.iterdir()) == [folder / "some"]


@needs_ivy
@pytest.mark.usefixtures("repository")
def test_what_is_there_is_not_fetched_again(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch("some", tmp_path, lock)
    # Neither a repository nor Java is needed then.
    monkeypatch.setenv(jars.MIRROR, (tmp_path / "nowhere").as_uri())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert whole(jars.fetch("some", tmp_path, lock))


def test_what_a_package_brings_is_used_where_it_lies(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no Java: nothing can be fetched
    monkeypatch.delenv("JAVA_HOME", raising=False)
    packaged, folder = tmp_path / "share", tmp_path / "cache"
    for place, name in ((packaged, ONE), (folder, TWO)):
        file = place / "some" / in_repository(place, name).name
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[name])
    assert whole(jars.fetch("some", folder, lock, packaged))
    (packaged / "some" / "one-1.0.jar").write_bytes(b"damaged")
    with pytest.raises(TrimtabError):
        jars.fetch("some", folder, lock, packaged)


@needs_ivy
@pytest.mark.usefixtures("repository")
def test_a_damaged_jar_and_a_missing_one_are_fetched_again(lock: Path, tmp_path: Path) -> None:
    damaged, missing = jars.fetch("some", tmp_path, lock)
    damaged.write_bytes(CONTENT[ONE][:-1])
    missing.unlink()
    assert whole(jars.fetch("some", tmp_path, lock))


@needs_ivy
def test_a_jar_other_than_the_locks_is_refused_and_not_put_in_place(
    repository: Path, lock: Path, tmp_path: Path
) -> None:
    in_repository(repository, TWO).write_bytes(b"something else")
    with pytest.raises(TrimtabError, match=r"two_2\.13-2\.5-3\.jar as fetched is not the jar"):
        jars.fetch("some", tmp_path, lock)
    assert not (tmp_path / "some" / "two_2.13-2.5-3.jar").exists()


def test_a_place_where_no_jar_can_be_written_is_a_setting_to_change(lock: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=rf"cannot be written to .*Set {CACHE} to a folder"):
        jars.fetch("some", tmp_path / "file", lock)


@needs_ivy
def test_a_jar_that_cannot_be_had_is_named_with_what_to_do(repository: Path, lock: Path, tmp_path: Path) -> None:
    in_repository(repository, TWO).unlink()
    with pytest.raises(TrimtabError, match=rf"'some' could not be fetched.*{jars.MIRROR}") as raised:
        jars.fetch("some", tmp_path, lock)
    assert "org.example#two_2.13;2.5-3: not found" in str(raised.value)
    assert list((tmp_path / "some").iterdir()) == []


@needs_ivy
@pytest.mark.usefixtures("repository")
def test_two_at_once_both_end_with_the_whole_set(lock: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(jars.fetch, "some", tmp_path / "jars", lock) for _ in range(2)]
        assert all(whole(run.result()) for run in runs)


@needs_ivy
@pytest.mark.parametrize("name", ["connector", "kafka", "pulsar-broker", "zookeeper"])
def test_the_real_sets_are_what_the_lock_says(name: str) -> None:
    paths = jars.fetch(name)
    locked = jars.read_lock(name)
    assert [path.name for path in paths] == [jar.file_name for jar in locked]
    assert all(jar.is_at(path) for jar, path in zip(locked, paths, strict=True))


def test_no_jar_lies_in_a_set_twice() -> None:
    for name in ("connector", "kafka", "pulsar-broker", "zookeeper"):
        names = [(jar.organisation, jar.name) for jar in jars.read_lock(name)]
        assert names
        assert len(set(names)) == len(names)


def test_an_unknown_set_is_refused_with_those_there_are(lock: Path) -> None:
    with pytest.raises(SettingsError, match=r"'third'; known: some, other"):
        jars.read_lock("third", lock)


def fake_java(home: Path, banner: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17", "17.0.12", "21.0.4", "25-ea"])
def test_java_home_comes_first(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, f'openjdk version "{version}" 2024-07-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert jars.java() == str(java)


def test_java_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, 'openjdk version "17.0.12" 2024-07-16')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    assert jars.java() == str(java)


@pytest.mark.parametrize(
    ("banner", "said"),
    [
        ('java version "1.8.0_402"', "is Java 8; trimtab needs 17"),
        ('openjdk version "11.0.23" 2024-04-16', "is Java 11; trimtab needs 17"),
        ("no such runtime", "not a Java that reports its version"),
    ],
)
def test_an_old_java_is_refused_with_the_way_to_a_newer_one(
    banner: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, banner)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SettingsError, match=f"{said}.*apt-get install openjdk-17-jre-headless"):
        jars.java()


def test_no_java_is_said_with_the_way_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match=r"not installed.*apt-get install openjdk-17-jre-headless"):
        jars.java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match=r"gone' holds no bin/java.*apt-get install openjdk-17-jre-headless"):
        jars.java()
