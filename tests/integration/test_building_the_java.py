"""The Java beside the query is compiled when the package is built, and only looked up when it runs."""

import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from controller.model.errors import TrimtabError
from streaming import jvm
from streaming.jvm.build import build

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sources in a folder of their own, and the jar that was compiled there."""
    folder = tmp_path_factory.mktemp("built") / "sources"
    shutil.copytree(jvm.SOURCES, folder, ignore=shutil.ignore_patterns("__*", "*.jar", ".*"))
    return folder, build(folder)


def test_it_is_compiled_once_and_found_again(built: tuple[Path, Path]) -> None:
    sources, first = built
    made = first.stat().st_mtime_ns
    assert {"trimtab/PartitionRows.class", "trimtab/BundleSums.class"} <= set(zipfile.ZipFile(first).namelist())
    assert jvm.jar(sources) == build(sources) == first
    assert first.stat().st_mtime_ns == made
    assert {path.suffix for path in sources.iterdir()} == {".java", ".jar", ".py"}


def test_what_was_made_of_other_sources_is_not_used_and_goes_when_these_are_compiled(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    sources = Path(shutil.copytree(built[0], tmp_path / "sources"))
    first = jvm.jar(sources)
    with (sources / "BundleSums.java").open("a") as file:
        file.write("// changed\n")
    with pytest.raises(TrimtabError, match=r"not compiled: .*query-.*\.jar is missing. Run `python -m streaming\.jvm"):
        jvm.jar(sources)
    second = build(sources)
    assert jvm.jar(sources) == second != first
    assert not first.exists()


@pytest.mark.parametrize(
    "body", ["int x = ;", "java.util.List list;"], ids=["what is no Java", "a type without its parameters"]
)
def test_a_broken_source_is_an_error_that_names_the_file_and_leaves_nothing(tmp_path: Path, body: str) -> None:
    (tmp_path / "Broken.java").write_text(f"package trimtab; public class Broken {{ {body} }}")
    with pytest.raises(TrimtabError, match=r"Broken\.java"):
        build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["Broken.java"]


def test_sources_and_jar_are_shipped_with_the_package() -> None:
    project = tomllib.loads((jvm.SOURCES.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["streaming.jvm"] == ["*.java", "*.jar"]
