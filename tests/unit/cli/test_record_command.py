"""``trimtab record`` on a log in a folder."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.recordings.manifest import recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS
from controller.cli.app import app as main_app
from controller.cli.record import record_log
from controller.log.factory import log_system
from controller.model.errors import SettingsError
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import read_settings
from tests.modelled_log import played, settings_in
from tests.records import PERIOD, T

app = typer.Typer()
app.command()(record_log)


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of five intervals with its journal, which no test changes."""
    path = settings_in(
        tmp_path_factory.mktemp("log"), broker_conf="loadBalancerBrokerMaxTopics=77\nzookeeperServers=secret:2181\n"
    )
    played(path, 5)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_every_record_of_the_log_is_in_the_recording(conf: Path, tmp_path: Path) -> None:
    said = json.loads(run("--conf", conf, "-o", tmp_path / "new", "--json").stdout)
    log, recording = log_system(read_settings(conf)).records(), Recording(tmp_path / "new")
    for topic in RECORDED_TOPICS:
        extents = log.extents(topic)
        records = [*log.read(topic, extents)]
        assert [*recording.read(topic, extents)] == records
        assert said["records"][topic] == len(records) > 0
    assert said["bytes"] == sum((tmp_path / "new" / file.path).stat().st_size for file in recording.manifest.files)


def test_only_options_that_trimtab_reads_are_kept_of_broker_conf(conf: Path, tmp_path: Path) -> None:
    run("--conf", conf, "-o", tmp_path / "new")
    assert Recording(tmp_path / "new").manifest.settings.broker_conf == {"loadBalancerBrokerMaxTopics": "77"}
    assert b"secret" not in (tmp_path / "new" / "manifest.json").read_bytes()


def test_namespaces_that_trimtab_lives_in_are_excluded_as_for_the_live_run(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").touch()
    (tmp_path / "trimtab.toml").write_text(
        'cluster.name = "c"\nlog = {kind = "pulsar", pulsar = {namespace = "public/own", service_url = "pulsar://h:1",'
        ' admin_url = ["http://h:2"]}}\nelection = {kind = "file", path = "election"}\ncheckpoint.path = "kept"\n'
        'decisions.excluded = ["a/b"]\n'
    )
    settings = read_settings(tmp_path / "trimtab.toml")
    kept = recorded_settings(settings)
    assert kept.decisions.excluded == ("a/b", "public/own")
    assert kept.policy("c").excluded == read_policy(settings).excluded


def test_a_folder_and_a_span(conf: Path, tmp_path: Path) -> None:
    answer = run(
        conf.parent / "log", "--conf", conf, "-o", tmp_path / "new", "--from", "2025-01-01T00:01Z", "--topic", "results"
    )
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith(f"{tmp_path / 'new'}: ")
    assert [topic for topic, parts in Recording(tmp_path / "new").manifest.topics.items() if parts] == ["results"]
    assert Recording(tmp_path / "new").manifest.from_ms == T + PERIOD


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "yesterday"), ("--from", "5m", "--to", "10m"), ("--topic", "beans"), ("--offsets", "metrics/0=5"),
        ("--offsets", "metrics/0=5:5"), ("--offsets", "beans/0=5:6"), ("--offsets", f"metrics/0=0:{10**30}"),
        ("--offsets", "metrics/0=1:2", "--offsets", "metrics/0=2:3"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(conf: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    assert run("--conf", conf, "-o", tmp_path / "new", *options).exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_time_behind_the_last_record_is_refused_and_nothing_is_left(conf: Path, tmp_path: Path) -> None:
    topics = ("--topic", "metrics", "--topic", "results")
    answer = run("--conf", conf, "-o", tmp_path / "new", "--from", "2025-01-01T00:30Z", *topics)
    assert "holds no record of metrics, results from 2025-01-01T00:30:00Z on; it" in str(answer.exception)
    assert not (tmp_path / "new").exists()


def test_it_writes_over_nothing(conf: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    answer = run("--conf", conf, "-o", tmp_path)
    assert isinstance(answer.exception, SettingsError)
    assert "is not empty" in str(answer.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_anonymised_with_a_key_it_goes_on_and_is_the_same_again(conf: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    for name in ("one", "two"):
        answer = run("--conf", conf, "-o", tmp_path / name, "--anonymise", "--key-file", key)
        assert answer.exit_code == 0, answer.output
    one, two = (Recording(tmp_path / name) for name in ("one", "two"))
    assert one.manifest == two.manifest
    assert one.manifest.anonymised
    again = run("--conf", conf, "-o", tmp_path / "one", "--anonymise", "--key-file", key)
    assert "a complete recording already" in str(again.exception)
    assert key.read_bytes() not in b"".join(path.read_bytes() for path in (tmp_path / "one").rglob("*.*"))


def test_what_was_asked_for_is_kept_without_names(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(key: bytes, *more: str) -> str:
        (tmp_path / "key").write_bytes(key)
        with monkeypatch.context() as patched:
            patched.setattr("controller.offline.record.RecordingWriter.end_topic", Mock(side_effect=KeyboardInterrupt))
            folder = tmp_path / f"{key!r}{more}".replace("/", "-")
            run(conf.parent / "log", "--conf", conf, "-o", folder, "--anonymise", "--key-file", tmp_path / "key", *more)
        text = (folder / "progress.json").read_text()
        assert str(conf.parent) not in text
        assert "demo" not in text
        asked: str = json.loads(text)["asked"]
        return asked

    told = {kept(b"a" * 16), kept(b"b" * 16), kept(b"a" * 16, "--topic", "metrics")}
    assert len(told) == 3


def test_without_a_key_file_pseudonyms_differ_every_time(conf: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("--conf", conf, "-o", tmp_path / name, "--anonymise")
    one, two = (Recording(tmp_path / name).manifest.cluster for name in ("one", "two"))
    assert one != two


@pytest.mark.parametrize("size", [0, 15, 5000])
def test_a_key_that_is_too_short_or_too_long(conf: Path, tmp_path: Path, size: int) -> None:
    (tmp_path / "key").write_bytes(b"x" * size)
    answer = run("--conf", conf, "-o", tmp_path / "new", "--anonymise", "--key-file", tmp_path / "key")
    assert isinstance(answer.exception, SettingsError)
    assert run("--conf", conf, "-o", tmp_path / "new", "--key-file", tmp_path / "key").exit_code == 2


def test_from_the_midst_of_a_run_it_says_what_it_knows_of_before_and_replays_as_the_live_run(
    conf: Path, tmp_path: Path
) -> None:
    since = ("--from", "2025-01-01T00:03Z")
    answer = run("--conf", conf, "-o", tmp_path / "new", *since)
    assert "from 3 intervals from 2025-01-01T00:00:00Z to 2025-01-01T00:02:00Z; averages" in answer.stdout
    said = json.loads(run("--conf", conf, "-o", tmp_path / "two", *since, "--before", "1", "--json").stdout)
    assert said["knownBefore"]["intervals"] <= 2
    raw = json.loads(run("--conf", conf, "-o", tmp_path / "raw", *since, "--before", "0", "--json").stdout)
    assert raw["knownBefore"] is None
    replayed = CliRunner().invoke(main_app, ["replay", str(tmp_path / "new"), "--fast"])
    assert replayed.exit_code == 0, replayed.output
    assert "begins with averages and states from 3 intervals before it" in replayed.stdout
    assert "2 of 2 entries equal, byte for byte" in replayed.stdout
