"""What a standby does while it waits, on real Spark."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from streaming import rehearsal
from streaming.assembly import Assembly
from streaming.sources import source_of
from tests.integration.test_query_cuts import write_settings

pytestmark = pytest.mark.integration


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "streaming.rehearsal"]


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_rehearsal_decides_some_intervals_for_nobody_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    settings, closed = write_settings(tmp_path), set[int]()
    monkeypatch.setattr(rehearsal, "_read", lambda batch, _: closed.update(batch.toArrow()["interval"].to_pylist()))
    before = files(tmp_path)
    rehearsal.rehearse(spark, Assembly(settings).options, source_of(settings))
    assert len(closed) == 2
    assert said(caplog) == ["this controller stands by"]
    assert files(tmp_path) == before, "neither log nor journal nor checkpoint"
    assert spark.streams.active == []


@pytest.mark.usefixtures("hadoop_elsewhere")
def test_log_and_checkpoint_are_on_this_machine_where_hadoops_default_file_system_is_another(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    settings = write_settings(tmp_path)
    rehearsal.rehearse(spark, Assembly(settings).options, source_of(settings))
    assert said(caplog) == ["this controller stands by"]


def test_a_rehearsal_that_fails_is_told_and_ends_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write_settings(tmp_path)
    source = source_of(settings)
    monkeypatch.setattr(type(source), "peek", lambda _, session: session.table("not_there"))
    rehearsal.rehearse(spark, Assembly(settings).options, source)
    [warning] = said(caplog)
    assert warning.startswith("the rehearsal failed")
    assert "not_there" in warning
    assert spark.streams.active == []


def test_workers_are_forked_with_what_they_need_loaded(spark: SparkSession) -> None:
    def parent(_: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        yield pd.DataFrame({"command": [command]})

    commands = [row["command"] for row in spark.range(2).mapInPandas(parent, "command string").collect()]
    assert commands
    assert all("-m streaming.daemon" in command for command in commands)
