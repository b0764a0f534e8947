"""Starting and ending Spark's JVM: what cannot be started leaves nothing behind, what has ended is not used again."""

import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from controller.model.errors import SettingsError, TrimtabError
from streaming.spark import gateway, spark_log
from streaming.spark.session import start_session


def test_without_java_it_says_how_to_get_it_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match=r"gone' holds no bin/java\. .*apt-get install"):
        gateway.start_jvm({})
    assert not list(scratch.iterdir())


def test_as_a_user_without_a_name_it_is_not_started_and_the_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(SettingsError, match="runs as user 12345, who has no user name on this system"):
        gateway.start_jvm({})


@pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="only Linux tells it")
def test_where_nothing_in_the_folder_of_temporary_files_may_be_executed_it_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(SettingsError, match=r"mounted with noexec, .*: set the environment variable TMPDIR"):
        gateway.start_jvm({"spark.master": "local[2]"})
    assert not list(tmp_path.iterdir())
    for conf in (
        {"spark.master": "spark://elsewhere:7077"},
        {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/var/tmp"},
    ):
        with pytest.raises(SettingsError, match="holds no bin/java"):
            gateway.start_jvm(conf)


@pytest.mark.parametrize(
    ("codeset", "python", "told"),
    [
        ("ANSI_X3.4-1968", "utf-8", "C.UTF-8"),
        ("UTF-8", "utf-8", "de_DE.UTF-8"),
        ("ISO-8859-1", "iso8859-1", "de_DE.UTF-8"),
    ],
)
def test_java_writes_names_of_files_as_python_does_whatever_the_locale(
    codeset: str, python: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With LC_ALL=C Python took UTF-8 and Java ASCII: a checkpoint with an ä in its path lay in two places."""

    class Started(Exception):  # noqa: N818  # no error
        pass

    def start(*_: object, env: dict[str, str], **__: object) -> None:
        raise Started(env["LC_ALL"])

    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setattr("locale.nl_langinfo", lambda _: codeset)
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: python)
    monkeypatch.setattr("subprocess.Popen", start)
    with pytest.raises(Started, match=f"^{told}$"):
        gateway.start_jvm({})


def jvm_that_runs(monkeypatch: pytest.MonkeyPatch, *command: str, log: Path) -> None:
    """This process has a JVM; *command* runs in its place."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output = spark_log.OutputReader(process.stdout or (), log)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process, jvm=None, output=output))
    monkeypatch.setattr(SparkContext, "_jvm", "its classes")


def test_a_jvm_that_has_ended_in_order_is_not_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm_that_runs(monkeypatch, "cat", log=tmp_path / "log")
    assert gateway.end_in_order() == 0
    assert SparkContext._gateway is None
    assert SparkContext._jvm is None


@pytest.mark.slow
def test_where_the_jvm_dies_while_spark_starts_its_last_words_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm_that_runs(monkeypatch, "sh", "-c", "echo There is insufficient memory; exit 1", log=tmp_path / "log")
    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", lambda _: refused())
    with pytest.raises(TrimtabError, match=r"(?s)ended with exit code 1 while it started.*insufficient memory"):
        start_session("local[1]", 1, {})


def refused() -> None:
    raise ConnectionRefusedError("Connection refused")
