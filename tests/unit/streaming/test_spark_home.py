import os
from pathlib import Path

import pytest

from controller.adapters.disk import jars
from streaming.spark.spark_home import for_yarn, spark_home


@pytest.fixture(autouse=True)
def no_spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)


@pytest.mark.slow
def test_spark_starts_from_pysparks_own_files(tmp_path: Path) -> None:
    home, shipped = spark_home(tmp_path), jars.pyspark_jars()
    assert home.is_relative_to(tmp_path)
    assert (home / "bin" / "spark-submit").samefile(shipped.parent / "bin" / "spark-submit")
    linked = {jar.name for jar in (home / "jars").iterdir()}
    left_out = {jar.name for jar in shipped.glob("*.jar")} - linked
    assert len(linked) > 200
    assert [name.rpartition("_")[0] for name in left_out] == ["spark-mllib"]


@pytest.mark.slow
def test_it_is_made_once(tmp_path: Path) -> None:
    (spark_home(tmp_path) / "kept").touch()
    assert (spark_home(tmp_path) / "kept").exists()


def test_python_workers_load_pyspark_from_the_environment(tmp_path: Path) -> None:
    assert not (spark_home(tmp_path) / "python").exists()


def test_a_spark_of_the_users_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "theirs"))
    assert spark_home(tmp_path) == tmp_path / "theirs"
    assert os.listdir(tmp_path) == []


def test_pysparks_own_folder_is_used_where_none_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "trimtab").write_text("no folder")
    assert spark_home(tmp_path) == jars.pyspark_jars().parent


def test_yarn_gets_pysparks_zips_for_its_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_ARCHIVES_PATH", raising=False)
    files = [Path(each) for each in for_yarn("yarn")["PYSPARK_ARCHIVES_PATH"].split(",")]
    assert [file.name.partition("-")[0] for file in files] == ["py4j", "pyspark.zip"]
    assert all(file.is_file() for file in files)
    assert for_yarn("spark://spark-1:7077") == {}


def test_zips_that_the_user_names_for_yarn_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_ARCHIVES_PATH", "hdfs:/theirs.zip")
    assert for_yarn("yarn") == {}
