"""A recording that is cut, or made an incident of, keeps its settings and its cluster; and is cut by its intervals."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import Extent
from controller.cli.app import app
from controller.log.factory import records_in
from controller.model.errors import SettingsError, TrimtabError
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

SPAN = ("--from", "2025-01-01T00:02Z", "--to", "2025-01-01T00:04Z")


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of six intervals, and a recording of it: rec."""
    folder = tmp_path_factory.mktemp("controller")
    path = settings_in(folder, broker_conf="loadBalancerBrokerMaxTopics=77\n", more="decisions.seed = 7")
    played(path, 6)
    assert run("record", folder / "log", "--conf", path, "-o", folder / "rec").exit_code == 0
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of another cluster, in conf/trimtab.toml of the folder that commands run in."""
    (tmp_path / "conf").mkdir()
    path = settings_in(tmp_path / "conf")
    path.write_text(path.read_text().replace(f'"{CLUSTER}"', '"other"'))
    monkeypatch.chdir(tmp_path)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def replayed(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(run("replay", folder, "--fast", "--json").stdout)
    return said


def test_a_copy_has_the_recordings_own_settings_and_decides_the_same(conf: Path, tmp_path: Path) -> None:
    assert run("record", conf.parent / "rec", "-o", tmp_path / "copy").exit_code == 0
    own, copy = Recording(conf.parent / "rec").manifest, Recording(tmp_path / "copy").manifest
    assert (copy.cluster, copy.settings) == (own.cluster, own.settings)
    assert replayed(tmp_path / "copy")["equal"] == 6


def test_an_incident_of_a_recording_has_its_settings_too(conf: Path, tmp_path: Path) -> None:
    options = ("--around", "2025-01-01T00:04Z", "--minutes", "1", "-o", tmp_path / "i.tar")
    answer = run("incident", "make", conf.parent / "rec", *options)
    assert answer.exit_code == 0, answer.output
    assert f"cluster {CLUSTER}, names are as they are" in " ".join(answer.stdout.split())


def test_settings_that_are_given_count_and_what_is_different_is_said(conf: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    given = settings_in(tmp_path / "theirs", more="guardrails.in_flight = 3")
    answer = run("record", conf.parent / "rec", "--conf", given, "-o", tmp_path / "copy")
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == (
        f"{given} counts, not the recording's own settings; different are decisions.seed = 0, not 7,"
        ' guardrails.in_flight = 3, not 200, broker_conf.loadBalancerBrokerMaxTopics = "50000", not "77"\n'
    )
    settings = Recording(tmp_path / "copy").manifest.settings
    assert (settings.decisions.seed, settings.guardrails.in_flight) == (0, 3)
    assert run("record", conf.parent / "rec", "--conf", conf, "-o", tmp_path / "same").stderr == ""


def test_a_log_without_records_of_the_cluster_is_refused_and_those_that_it_has_are_named(
    conf: Path, elsewhere: Path, tmp_path: Path
) -> None:
    log, rec = conf.parent / "log", conf.parent / "rec"
    around = ("--around", "2025-01-01T00:04Z", "-o", tmp_path / "i.tar")
    for words in (
        ("record", log, "-o", tmp_path / "new"),
        ("record", rec, "--conf", elsewhere, "-o", tmp_path / "new"),
        ("incident", "make", log, *around),
        ("replay", log, "--fast"),
        ("audit", rec, "--conf", elsewhere),
    ):
        answer = run(*words)
        assert isinstance(answer.exception, SettingsError), words
        assert f"no record of cluster 'other'; it holds records of '{CLUSTER}': give" in str(answer.exception)
    assert not (tmp_path / "new").exists()


def test_a_copy_of_a_recording_without_names_is_still_one(conf: Path, tmp_path: Path) -> None:
    assert run("record", conf.parent / "rec", "-o", tmp_path / "hidden", "--anonymise").exit_code == 0
    assert run("record", tmp_path / "hidden", "-o", tmp_path / "copy").exit_code == 0
    assert Recording(tmp_path / "copy").manifest.anonymised


def test_a_part_of_a_recording_is_that_part_of_the_log(conf: Path, tmp_path: Path) -> None:
    assert run("record", conf.parent / "log", "--conf", conf, *SPAN, "-o", tmp_path / "of_log").exit_code == 0
    assert run("record", conf.parent / "rec", *SPAN, "-o", tmp_path / "of_rec").exit_code == 0
    of_log, of_rec = (Recording(tmp_path / name) for name in ("of_log", "of_rec"))
    for topic in ("metrics", "results", "journal"):
        assert of_rec.manifest.topics[topic] == of_log.manifest.topics[topic], topic
    assert (replayed(tmp_path / "of_rec")["decided"], replayed(tmp_path / "of_rec")["equal"]) == (2, 2)
    said = json.loads(run("record", conf.parent / "rec", "-o", tmp_path / "all", "--json").stdout)
    assert said["firstMs"] == T - 1, "what was written before the first tick"


def before(folder: Path, time_ms: int) -> int:
    """How many records of the metrics in *folder* were written before *time_ms*."""
    log = records_in(folder)
    begin, extent = log.since("metrics", time_ms)[0], log.extents("metrics")[0]
    return len([*log.read("metrics", {0: Extent(extent.first, begin)})])


def test_records_were_written_when_their_file_was_but_before_the_next_interval(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    times = {
        "000000000000000-000001.jsonl": T + 9 * PERIOD,
        f"{T:015d}-000000.jsonl": T + 5,
        f"{T:015d}-000001.jsonl": T + 9 * PERIOD,
        f"{T + 3 * PERIOD:015d}-000000.jsonl": T + 9 * PERIOD,
    }
    for name, modified_ms in times.items():
        (folder / name).write_text("{}\n")
        os.utime(folder / name, ns=(modified_ms * 1_000_000,) * 2)
    log = records_in(tmp_path)
    found = [record.timestamp_ms for record in log.read("metrics", log.extents("metrics"))]
    assert found == [T - 1, T + 5, T + 3 * PERIOD - 1, T + 6 * PERIOD - 1]


def test_files_that_were_written_before_the_first_tick_have_that_time(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    first, second = (folder / f"000000000000000-{number:06d}.jsonl" for number in (1, 2))
    for path, modified_ms in ((first, T - 3 * PERIOD), (second, T + 9 * PERIOD)):
        path.write_text("{}\n")
        os.utime(path, ns=(modified_ms * 1_000_000,) * 2)
    assert before(tmp_path, T - 3 * PERIOD) == 0
    assert before(tmp_path, T) == 1
    (folder / f"{T:015d}-000000.jsonl").write_text("{}\n")
    # A copy has later times; what was written before the first tick was written before it.
    assert [before(tmp_path, T + ms) for ms in (-3 * PERIOD, -PERIOD, 0)] == [0, 1, 2]


def test_old_files_that_are_deleted_while_a_log_is_copied_move_no_offset(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    paths = [folder / f"{T + number * PERIOD:015d}-000000.jsonl" for number in range(6)]
    for number, path in enumerate(paths[:5]):
        path.write_text(f"{number}\n")
    log = records_in(tmp_path)
    begin = log.since("metrics", T + 2 * PERIOD)[0]
    end = log.extents("metrics")[0].end
    paths[0].unlink()
    paths[5].write_text("5\n")
    assert [record.value for record in log.read("metrics", {0: Extent(begin, end)})] == [b"2", b"3", b"4"]
    rest = log.read("metrics", {0: Extent(begin, end)})
    assert next(rest).value == b"2"
    paths[3].unlink()
    with pytest.raises(TrimtabError, match=rf"{paths[3].name}: was deleted since the log was listed"):
        list(rest)


def test_a_log_whose_oldest_files_were_deleted_counts_from_another_one(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    paths = [folder / f"{T + number * PERIOD:015d}-000000.jsonl" for number in range(2)]
    for path in paths:
        path.write_text("{}\n")
    assert records_in(tmp_path).counted_from("metrics") == paths[0].name
    paths[0].unlink()
    assert records_in(tmp_path).counted_from("metrics") == paths[1].name
    assert records_in(tmp_path).counted_from("results") == ""


@pytest.mark.parametrize("name", ["{}.jsonl", "{}-000001.jsonl", "{:015d}.jsonl"])
def test_files_of_others_are_of_the_interval_that_they_are_named_after(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    for number in range(5):
        (folder / name.format(T + number * PERIOD)).write_text("{}\n")
    assert before(tmp_path, T + 2 * PERIOD) == 2


@pytest.mark.parametrize("name", ["20250101.jsonl", "2025-01-01.jsonl", "20250101120000.jsonl", "7.jsonl"])
def test_a_day_or_a_number_in_the_name_of_a_file_is_no_interval(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    (folder / name).write_text("{}\n")
    os.utime(folder / name, ns=(T * 1_000_000,) * 2)
    assert [before(tmp_path, time_ms) for time_ms in (T, T + 1)] == [0, 1]
