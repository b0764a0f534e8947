"""``trimtab record`` on a log in a folder."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.opened import log_system
from controller.adapters.recordings.reading import Recording
from controller.cli.record import record_log
from controller.model.errors import SettingsError
from controller.ports.records import RECORDED_TOPICS
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
    assert said["records"] == {topic: log.extents(topic)[0].end for topic in RECORDED_TOPICS}
    for topic in RECORDED_TOPICS:
        extents = log.extents(topic)
        assert [*recording.read(topic, extents)] == [*log.read(topic, extents)]
    assert said["bytes"] == sum((tmp_path / "new" / file.path).stat().st_size for file in recording.manifest.files)


def test_only_options_that_trimtab_reads_are_kept_of_broker_conf(conf: Path, tmp_path: Path) -> None:
    run("--conf", conf, "-o", tmp_path / "new")
    assert Recording(tmp_path / "new").manifest.settings.broker_conf == {"loadBalancerBrokerMaxTopics": "77"}
    assert b"secret" not in (tmp_path / "new" / "manifest.json").read_bytes()


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


def test_it_writes_over_nothing(conf: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    answer = run("--conf", conf, "-o", tmp_path)
    assert isinstance(answer.exception, SettingsError)
    assert "is not empty" in str(answer.exception)
