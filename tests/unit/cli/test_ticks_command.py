"""``trimtab ticks`` on recordings in a folder."""

import json
from pathlib import Path

import pytest

from controller.cli.ticks import ticks
from controller.model.errors import SettingsError, TrimtabError
from controller.wire.readable import utc
from tests.command_runs import runner_of
from tests.records import CLUSTER, PERIOD, SAMPLES, T, as_bytes, broker_sweep, tick

run = runner_of(ticks)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two intervals of one broker, not ticked."""
    folder = tmp_path / "recording"
    folder.mkdir()
    sweeps = [as_bytes(broker_sweep(interval=T + i * PERIOD)) for i in range(2)]
    (folder / "1.jsonl").write_bytes(b"\n".join(sweeps) + b"\n")
    return folder


def conf(tmp_path: Path, log: str) -> Path:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals.period_seconds = {PERIOD // 1000}
        log = {log}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        """,
        encoding="utf-8",
    )
    return path


def ticked(folder: Path) -> list[int]:
    lines = [line for path in sorted((folder / "metrics").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    return [record["interval"] for record in map(json.loads, lines) if record["type"] == "tick"]


def test_it_says_how_many_ticks_it_has_written_and_where(recording: Path) -> None:
    result = run(recording, "--cluster", CLUSTER)
    target = recording.with_name("recording-ticked")
    assert (result.exit_code, result.stdout) == (0, f"2 ticks written to {target}\n")
    assert ticked(target) == [T, T + PERIOD]


def test_json_says_it_to_a_program(recording: Path, tmp_path: Path) -> None:
    said = json.loads(run(recording, "--cluster", CLUSTER, "--into", tmp_path / "new", "--json").stdout)
    assert said == {"ticks": 2, "folder": str(tmp_path / "new")}


def test_the_recording_itself_stays_as_it_is(recording: Path) -> None:
    before = (recording / "1.jsonl").read_bytes()
    run(recording, "--cluster", CLUSTER)
    assert [path.name for path in recording.iterdir()] == ["1.jsonl"]
    assert (recording / "1.jsonl").read_bytes() == before


def test_cluster_period_and_folder_come_from_the_settings(recording: Path, tmp_path: Path) -> None:
    settings = conf(tmp_path, '{kind = "folder", folder.path = "recording"}')
    result = run("--conf", settings)
    assert (result.exit_code, result.stdout) == (0, f"2 ticks written to {tmp_path / 'recording-ticked'}\n")


def test_what_is_given_goes_before_the_settings(recording: Path, tmp_path: Path) -> None:
    settings = conf(tmp_path, '{kind = "folder", folder.path = "elsewhere"}')
    result = run(recording, "--conf", settings, "--into", tmp_path / "log", "--period-seconds", 30)
    assert result.exit_code == 0
    assert ticked(tmp_path / "log") == [T, T + PERIOD]
    other = run(recording, "--conf", settings, "--cluster", "other", "--into", tmp_path / "other")
    assert isinstance(other.exception, TrimtabError)
    assert "of cluster 'other'" in str(other.exception)


def test_the_log_may_be_made_in_the_folder_of_the_recording(recording: Path) -> None:
    assert run(recording, "--cluster", CLUSTER, "--into", recording).exit_code == 0
    assert ticked(recording) == [T, T + PERIOD]


def test_load_reports_saved_from_real_brokers_need_no_cluster(tmp_path: Path) -> None:
    result = run(SAMPLES, "--into", tmp_path / "log")
    assert result.exit_code == 0
    assert result.stdout == f"{len(ticked_reports(tmp_path / 'log'))} tick written to {tmp_path / 'log'}\n"


def ticked_reports(folder: Path) -> list[bytes]:
    return [
        line
        for path in sorted((folder / "metrics").glob("*.jsonl"))
        for line in path.read_bytes().splitlines()
        if b'"tick"' in line
    ]


def test_a_recording_that_has_ticks_is_refused_with_file_and_line_and_nothing_is_written(recording: Path) -> None:
    (recording / "2.jsonl").write_bytes(as_bytes(broker_sweep()) + b"\n\n" + as_bytes(tick()) + b"\n")
    result = run(recording, "--cluster", CLUSTER)
    assert isinstance(result.exception, TrimtabError)
    assert str(result.exception) == (
        f"{recording / '2.jsonl'}, line 3: the recording has ticks already, the first for {utc(T)}"
    )
    assert not recording.with_name("recording-ticked").exists()


def test_a_second_time_it_is_refused_since_the_log_is_there(recording: Path) -> None:
    run(recording, "--cluster", CLUSTER)
    result = run(recording, "--cluster", CLUSTER)
    assert isinstance(result.exception, TrimtabError)
    assert str(result.exception) == f"{recording}-ticked holds a log already; ticks go into a new one"


def test_neither_folder_nor_settings_is_an_error_of_usage(tmp_path: Path) -> None:
    assert run().exit_code == 2
    result = run(tmp_path / "gone")
    assert result.exit_code == 2
    assert "gone" in "".join(result.stderr.replace("│", "").split())  # the path may be cut into lines


def test_settings_with_a_log_in_kafka_name_no_recording(tmp_path: Path) -> None:
    result = run("--conf", conf(tmp_path, '{kind = "kafka", kafka.bootstrap = "127.0.0.1:9092"}'))
    assert isinstance(result.exception, SettingsError)
    assert result.exception.exit_code == 2


def test_a_recording_of_another_cluster_is_refused_with_the_name_that_it_has(recording: Path) -> None:
    error = run(recording, "--cluster", "elsewhere").exception
    assert isinstance(error, TrimtabError)
    assert str(error).endswith(f"of cluster 'elsewhere'; it holds records of {CLUSTER!r}: name one with --cluster")
