"""The wheel, installed in a new environment and called from an empty folder: nothing of the checkout is needed.

What trimtab depends on comes from the environment of the tests, so that no network is needed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
from packaging.metadata import Metadata

_ROOT: Final = Path(__file__).parents[2]
_BUILT_FROM: Final = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "conf", "controller", "streaming")
#: The one of pyproject.toml, which pip fetches where it may use a network.
_SETUPTOOLS: Final = 77
#: As `git archive` writes it.
_COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
_LARGEST_WHEEL: Final = 5_000_000
_DECIDE: Final = ("decide", "--strategy", "ThresholdShedder", "--load", "recording")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        int(version("setuptools").partition(".")[0]) < _SETUPTOOLS, reason="needs the setuptools of requirements.lock"
    ),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout: a build leaves files in its folder."""
    source = tmp_path_factory.mktemp("source")
    for name in _BUILT_FROM:
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(_ROOT / name, source)
    (source / "controller" / "commit.txt").write_text(f"{_COMMIT}\n", encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(made), str(source)]
    subprocess.run(command, check=True, capture_output=True, env=_environment(TRIMTAB_CACHE=str(_ROOT / ".jars")))
    (found,) = made.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(source: Path) -> Path:
    program = "from streaming.jvm import backend; backend.build_sdist('dist')"
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True, env=_environment())
    (found,) = (source / "dist").glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def trimtab(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program ``trimtab`` of a new environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, env=_environment())
    (packages,) = folder.glob("lib/python*/site-packages")
    # Behind its own; and the .pth files in it, one of which leads to the checkout, are not read.
    others = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in others))
    return folder / "bin" / "trimtab"


def _environment(**more: str) -> dict[str, str]:
    """That of the tests without what leads to the checkout; Python itself writes nothing beside modules."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TRIMTAB_CACHE")}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def _run(program: Path, *words: str, folder: Path, **more: str) -> str:
    """What *program* prints in *folder*, in which the user's cache lies, too."""
    environment = _environment(XDG_CACHE_HOME=str(folder / "cache"), **more)
    run = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_it_has_all_files_but_those_of_bench_and_lab_and_the_compiled_query_and_nothing_twice(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    conf = {f"controller/{path.relative_to(_ROOT)}" for path in (_ROOT / "conf").rglob("*") if path.is_file()}
    packages = {path for package in ("controller", "streaming") for path in (_ROOT / package).rglob("*")}
    left_out = tuple(_ROOT / "controller" / name for name in ("bench", "lab"))
    files = {
        path
        for path in packages
        if path.is_file()
        and path.suffix not in (".pyc", ".jar")
        and not path.is_relative_to(left_out[0])
        and not path.is_relative_to(left_out[1])
    }
    assert conf | {str(path.relative_to(_ROOT)) for path in files} <= set(names)
    assert len(names) == len(set(names))
    assert sum(name.startswith("streaming/jvm/query-") for name in names) == 1
    own = ("controller/", "streaming/", f"trimtab-{version('trimtab')}.dist-info/")
    not_for_users = ("controller/bench/", "controller/lab/")
    assert [name for name in names if not name.startswith(own) or "__pycache__" in name] == []
    assert [name for name in names if name.startswith(not_for_users)] == []


def test_the_licence_and_the_notice_are_in_the_wheel_and_in_the_sdist(wheel: Path, sdist: Path) -> None:
    texts = {name: (_ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE")}
    release = f"trimtab-{version('trimtab')}"
    with zipfile.ZipFile(wheel) as archive:
        assert {name: archive.read(f"{release}.dist-info/licenses/{name}") for name in texts} == texts
    with tarfile.open(sdist) as archive:
        found = {name: archive.extractfile(f"{release}/{name}") for name in texts}
        assert {name: file.read() for name, file in found.items() if file} == texts


def test_the_metadata_of_the_wheel_is_valid_and_names_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(f"trimtab-{version('trimtab')}.dist-info/METADATA")
    metadata = Metadata.from_email(raw, validate=True)
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.license_files == ["LICENSE", "NOTICE"]
    # Packaging tools refuse the old classifiers beside an expression.
    assert [each for each in metadata.classifiers or [] if each.startswith("License ::")] == []


def test_the_wheel_and_the_sdist_are_small_and_name_their_commit(wheel: Path, sdist: Path) -> None:
    assert wheel.stat().st_size <= _LARGEST_WHEEL
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("controller/commit.txt").decode().strip() == _COMMIT[:12]
    with tarfile.open(sdist) as archive:
        file = archive.extractfile(f"trimtab-{version('trimtab')}/controller/commit.txt")
        assert file is not None
        assert file.read().decode().strip() == _COMMIT[:12]


def test_commands_work_away_from_the_checkout(trimtab: Path, tmp_path: Path) -> None:
    told = _run(trimtab, "--version", folder=tmp_path)
    assert told == f"trimtab {version('trimtab')} (commit {_COMMIT[:12]}, Spark {version('pyspark')})\n"
    assert "loadBalancerLoadSheddingStrategy" in _run(trimtab, "options", folder=tmp_path)
    assert "idle-broker" in _run(trimtab, "simulate", "--list", folder=tmp_path)
    (tmp_path / "recording").mkdir()
    shutil.copy(_ROOT / "tests" / "samples" / "load_report_1.json", tmp_path / "recording")
    assert "brokers" in _run(trimtab, *_DECIDE, folder=tmp_path)


@pytest.mark.parametrize("words", [("bench", "decisions"), ("demo", "--pulsar")])
def test_what_needs_a_checkout_says_so(trimtab: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    run = subprocess.run(
        [trimtab, *words], cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "is not part of the installed package: run it in a checkout" in run.stderr


def test_what_is_made_once_lies_in_the_users_cache(trimtab: Path, tmp_path: Path) -> None:
    program = "from streaming.spark.spark_home import spark_home; print(spark_home())"
    home = Path(_run(trimtab.with_name("python"), "-c", program, folder=tmp_path).strip())
    assert home.is_relative_to(tmp_path / "cache" / "trimtab")
    assert home.is_dir()


def test_the_demo_runs_in_an_empty_folder_and_writes_nothing_beside_the_modules(trimtab: Path, tmp_path: Path) -> None:
    environment = trimtab.parents[1]
    before = sorted(environment.rglob("*"))
    # The checkout's cache has the archive of Spark's classes: without it, a start takes twice as long.
    told = _run(trimtab, "demo", "--intervals", "1", folder=tmp_path, TRIMTAB_CACHE=str(_ROOT / ".jars"))
    assert "Done: 1 interval" in told
    assert [path.name for path in tmp_path.iterdir()] == [".trimtab"]
    assert sorted(environment.rglob("*")) == before
