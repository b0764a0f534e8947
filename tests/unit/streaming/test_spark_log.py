"""Spark's log: a file of each process, and what comes through in trimtab's."""

import logging
import os
from pathlib import Path

import pytest

from streaming.spark import spark_log


def _read(lines: list[str], file: Path) -> str:
    return spark_log.OutputReader([f"{line}\n".encode() for line in lines], file).last_lines()


def test_errors_come_through_with_the_place_where_their_traces_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "spark.log"
    _read(["trimtab|WARN|KafkaOffsetReader|offsets are gone", "trimtab|ERROR|Executor|Task 1 | failed"], file)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"KafkaOffsetReader: offsets are gone; see {file}"),
        ("ERROR", f"Executor: Task 1 | failed; see {file}"),
    ]
    assert not file.exists()


def test_a_line_that_follows_itself_is_told_once_in_ten_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that stood still gets a dozen of the same error when it goes on."""
    ignored, other = "trimtab|ERROR|Inbox|Ignoring error", "trimtab|ERROR|Executor|failed"
    clock = iter([0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 21.0, 21.5])
    output = [f"{line}\n".encode() for line in [*[ignored] * 6, other, ignored]]
    spark_log.OutputReader(output, tmp_path / "spark.log", now=lambda: next(clock)).last_lines()
    told = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert told == ["Inbox", "Inbox", "Executor", "Inbox"]


def test_what_the_jvm_prints_by_itself_goes_to_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "spark.log"
    said = "WARNING: Using incubator modules: jdk.incubator.vector"
    assert _read([said], file) == said
    assert file.read_text() == f"{said}\n"
    assert not caplog.records


def test_of_an_error_with_a_long_trace_the_error_is_told_last_and_the_trace_is_in_the_file(tmp_path: Path) -> None:
    error, cause = "java.io.IOException: Invalid UID", "Caused by: java.lang.NullPointerException: name"
    trace = [f"\tat org.apache.hadoop.UserGroupInformation.login{number}" for number in range(30)]
    lines = [error, *trace, cause, *trace, "\t... 20 more"]
    assert _read(lines, tmp_path / "spark.log") == f"{error}\n{cause}"
    assert (tmp_path / "spark.log").read_text().splitlines() == lines


def test_what_ends_a_jvm_goes_to_the_file_and_comes_through(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "spark.log"
    _read(["java.lang.OutOfMemoryError: Java heap space"], file)
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
    assert "OutOfMemoryError" in file.read_text()


def test_a_line_that_is_cut_off_and_a_file_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    lines = ["trimtab|", "something", "\xff" * 3, "the last"]
    assert _read(lines, tmp_path / "none" / "spark.log").splitlines() == lines


def test_each_process_has_a_file_and_only_those_of_the_last_processes_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    first = spark_log.new_file(folder, tmp_path)
    assert first.parent == folder
    assert str(os.getpid()) in first.name
    old = [first.with_name(first.name.replace(str(os.getpid()), f"old-{number}")) for number in range(9)]
    for age, path in enumerate(old):
        path.touch()
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    other = folder / "notes.txt"
    other.touch()
    assert spark_log.new_file(folder, tmp_path) == first
    assert {*folder.iterdir()} == {first, other, *old[:5]}


def test_of_other_machines_as_pods_are_the_last_twenty_files_are_kept(tmp_path: Path) -> None:
    pods = [tmp_path / f"spark-trimtab-controller-{number}-7.log" for number in range(30)]
    for age, path in enumerate(pods):
        path.touch()
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    ours = spark_log.new_file(tmp_path, tmp_path)
    assert {*tmp_path.iterdir()} == {ours, *pods[:20]}


def test_where_no_file_can_be_made_the_log_goes_elsewhere_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").touch()
    file = spark_log.new_file(tmp_path / "taken" / "logs", tmp_path)
    assert file.parent == tmp_path
    assert "set spark.log_path" in caplog.text
    assert spark_log.new_file(None, tmp_path) == file


def test_the_options_name_the_configuration_and_the_file() -> None:
    options = spark_log.java_options(Path("/a folder/spark.log"))
    assert '"-Dtrimtab.spark.log=/a folder/spark.log"' in options
    configuration = Path(spark_log.__file__).with_name("log4j2.properties")
    assert configuration.as_uri() in options
    assert "${sys:trimtab.spark.log}" in configuration.read_text()


def test_a_query_that_failed_is_left_to_who_runs_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _read(
        ["trimtab|ERROR|MicroBatchExecution|Query d [id = 1, runId = 2] terminated with error"], tmp_path / "spark.log"
    )
    assert not caplog.records
