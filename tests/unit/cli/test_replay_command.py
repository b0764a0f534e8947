"""``trimtab replay --fast``; with Spark: tests/integration/test_replay_in_spark.py."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.recordings.manifest import RecordingError, recorded_settings
from controller.cli.replay import replay_log
from controller.log.factory import records_in
from controller.offline.record import RecordRequest, record
from controller.settings.trimtab_toml import read_settings
from tests.folders import file_of
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

app = typer.Typer()
app.command()(replay_log)


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A log of four intervals, and a recording of it."""
    path = settings_in(tmp_path)
    played(path, 4)
    record(
        records_in(tmp_path / "log"), tmp_path / "rec", RecordRequest(), recorded_settings(read_settings(path)), CLUSTER
    )
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments), "--fast"])


def test_a_recording_needs_no_settings(conf: Path, tmp_path: Path) -> None:
    answer = run(tmp_path / "rec")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.splitlines()[0].startswith("4 intervals decided, ")
    assert answer.stdout.splitlines()[-1] == "4 of 4 entries equal, byte for byte"


def test_a_log_in_a_folder_is_decided_with_the_settings_of_conf(conf: Path, tmp_path: Path) -> None:
    said = json.loads(run(tmp_path / "log", "--conf", conf, "--json").stdout)
    assert (said["decided"], said["compared"], said["equal"], said.get("firstDifference")) == (4, 4, 4, None)


def test_a_difference_is_printed_and_ends_with_code_1(conf: Path, tmp_path: Path) -> None:
    path = file_of(tmp_path / "log", T + PERIOD)
    path.write_bytes(path.read_bytes().replace(b'"summary":"', b'"summary":"other '))
    answer = run(tmp_path / "log", "--conf", conf)
    assert answer.exit_code == 1
    assert "first difference: 2025-01-01 00:01:00Z: summary: live other" in answer.stdout.replace("T00", " 00")


def test_a_recording_that_was_cut_off_is_named(conf: Path, tmp_path: Path) -> None:
    path = tmp_path / "rec" / "metrics" / "000000.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    answer = run(tmp_path / "rec")
    assert isinstance(answer.exception, RecordingError)
    assert str(path) in str(answer.exception)
