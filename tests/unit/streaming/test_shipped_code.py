"""trimtab's code is copied to executors that are processes of their own, and only to those."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from streaming.spark.shipped_code import with_code

pytestmark = pytest.mark.slow

FILES, PATH = "spark.files", "spark.executorEnv.PYTHONPATH"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*, 3]"])
def test_one_process_has_the_code_already(master: str, tmp_path: Path) -> None:
    assert with_code(master, {"a": "b"}, tmp_path) == {"a": "b"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://https://host:443"])
def test_executors_of_a_cluster_get_the_code_before_everything_else(master: str, tmp_path: Path) -> None:
    found = with_code(master, {}, tmp_path)
    code = Path(found[FILES])
    assert code.parent == tmp_path.resolve() / "trimtab"
    assert found[PATH] == code.name, "relative: executors have it in the folder that they work in"


def test_files_and_path_of_the_user_stay(tmp_path: Path) -> None:
    found = with_code("yarn", {FILES: "a.txt,b.txt", PATH: "/lib", "c": "d"}, tmp_path)
    first, second, code = found[FILES].split(",")
    assert (first, second, found["c"]) == ("a.txt", "b.txt", "d")
    assert found[PATH] == os.pathsep.join([Path(code).name, "/lib"])


def test_the_zip_is_made_once_and_is_all_that_a_python_worker_needs(tmp_path: Path) -> None:
    code = Path(with_code("yarn", {}, tmp_path)[FILES])
    made = code.stat()
    assert with_code("yarn", {}, tmp_path)[FILES] == str(code)
    assert code.stat().st_ino == made.st_ino
    assert [path.name for path in code.parent.iterdir()] == [code.name]
    with ZipFile(code) as content:
        assert {"controller/__init__.py", "streaming/daemon.py", "streaming/state.py"} <= set(content.namelist())
        assert all(name.endswith(".py") for name in content.namelist())
    script = "import streaming.state, controller; print(controller.__file__, streaming.state.__file__)"
    env = os.environ | {"PYTHONPATH": str(code)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count(str(code)) == 2
