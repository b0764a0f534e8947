"""The Java beside the query is compiled where that has not been done, and says which file it was where it fails."""

import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from controller.model.errors import TrimtabError
from streaming import jvm

pytestmark = pytest.mark.integration

SOURCES = Path(jvm.__file__).parent


def test_it_is_compiled_once_and_found_again(tmp_path: Path) -> None:
    first = jvm.jar(tmp_path)
    made = first.stat().st_mtime_ns
    assert first.is_relative_to(tmp_path)
    assert {"trimtab/RecordRows.class", "trimtab/BundleSums.class"} <= set(zipfile.ZipFile(first).namelist())
    assert jvm.jar(tmp_path) == first
    assert first.stat().st_mtime_ns == made
    assert list(first.parent.iterdir()) == [first]


def test_a_changed_source_is_compiled_anew_beside_the_old_one(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__*"))
    first = jvm.jar(tmp_path, sources)
    with (sources / "BundleSums.java").open("a") as file:
        file.write("// changed\n")
    second = jvm.jar(tmp_path, sources)
    assert first != second
    assert first.exists()
    assert second.exists()


def test_a_broken_source_is_an_error_that_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "Broken.java").write_text("package trimtab; public class Broken { int x = ; }")
    with pytest.raises(TrimtabError, match=r"Broken\.java"):
        jvm.jar(tmp_path / "jars", tmp_path)
    assert list((tmp_path / "jars" / "trimtab").iterdir()) == []


def test_the_sources_are_shipped_with_the_package() -> None:
    project = tomllib.loads((SOURCES.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["streaming.jvm"] == ["*.java"]
