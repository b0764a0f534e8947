"""``trimtab init``: the settings that it writes, and what it refuses."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli.init import init
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.broker_conf import read_broker_conf
from controller.settings.election import ElectionByFile
from controller.settings.log import LogInFolder, LogInKafka, LogInPulsar
from controller.settings.trimtab_toml import read_settings

CONF = Path(__file__).parents[3] / "conf"

app = typer.Typer()
app.command()(init)


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_settings_for_kafka_are_those_that_come_with_trimtab_with_the_given_addresses() -> None:
    result = run(
        "mine", "--cluster", "east", "--kafka", "k1:9092,k2:9092", "--zookeeper", "z:2181", "--admin-url", "http://b:80"
    )
    assert result.exit_code == 0, result.output
    made, shipped = read_settings(Path("mine/trimtab.toml")), read_settings(CONF / "trimtab.toml")
    assert isinstance(made.log, LogInKafka)
    assert made.log.kafka.bootstrap == "k1:9092,k2:9092"
    assert made.pulsar is not None
    assert made.pulsar.admin_url == ("http://b:80",)
    assert (made.cluster.name, made.election.hosts) == ("east", "z:2181")
    for same in ("intervals", "journal", "decisions", "guardrails", "executor", "collector", "metrics"):
        assert getattr(made, same) == getattr(shipped, same)
    assert read_broker_conf(Path("mine/broker.conf")) == read_broker_conf(CONF / "broker.conf")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["my-cluster"], "my-cluster"),
        (["my-cluster/"], "my-cluster"),
        (["my-cluster", "--cluster", "east"], "east"),
        ([], "standalone"),
        (["conf"], "standalone"),
        (["below/settings"], "standalone"),
    ],
)
def test_a_name_that_is_given_is_the_clusters_name(words: list[str], name: str) -> None:
    assert run(*words).exit_code == 0
    made = read_settings(Path(words[0] if words else "conf") / "trimtab.toml")
    assert made.cluster.name == name
    assert Path(made.checkpoint.path).parent.name == name


def test_the_period_is_what_was_given_and_one_that_trimtab_refuses_is_refused() -> None:
    assert run("mine", "--period", "20").exit_code == 0
    assert read_settings(Path("mine/trimtab.toml")).intervals.period_seconds == 20
    assert run("other", "--period", "0").exit_code == 2
    assert not Path("other").exists()


def test_settings_for_a_folder_name_no_server() -> None:
    assert run("mine", "--log", "folder", "--state", "kept").exit_code == 0
    made, text = read_settings(Path("mine/trimtab.toml")), Path("mine/trimtab.toml").read_text()
    assert isinstance(made.log, LogInFolder)
    assert made.election.kind == "file"
    assert {made.log.folder.path, made.election.path, made.checkpoint.path} == {
        str(Path("kept").absolute() / name) for name in ("log", "election", "checkpoint")
    }
    assert "9092" not in text
    assert "2181" not in text


def test_settings_for_pulsar_name_no_kafka() -> None:
    words = ("mine", "--log", "pulsar", "--service-url", "pulsar://a:6650,b:6650", "--admin-url", "http://a:80")
    assert run(*words).exit_code == 0
    made, text = read_settings(Path("mine/trimtab.toml")), Path("mine/trimtab.toml").read_text()
    assert isinstance(made.log, LogInPulsar)
    assert made.log.pulsar.service_url == "pulsar://a:6650,b:6650"
    assert made.log.pulsar.admin_url == ("http://a:80",)
    assert made.log.pulsar.token_file is None
    assert "9092" not in text


def test_it_says_what_to_do_next_with_the_files_that_it_wrote() -> None:
    by_default = run().stdout
    assert "Written: conf/trimtab.toml, conf/broker.conf, conf/broker.recommended.conf, conf/prometheus/" in by_default
    assert "trimtab doctor " in by_default
    assert "--conf" not in by_default
    assert "trimtab doctor --conf other/trimtab.toml" in run("other").stdout
    assert "trimtab take-over --conf 'my own/trimtab.toml'`" in run("my own").stdout


def test_files_that_the_documents_name_below_conf_are_there_as_they_come_with_trimtab() -> None:
    assert run().exit_code == 0
    for name in ("broker.conf", "broker.recommended.conf", "prometheus/trimtab.rules.yml", "grafana/trimtab.json"):
        assert Path("conf", name).read_bytes() == (CONF / name).read_bytes()


@pytest.mark.parametrize("name", ["trimtab.toml", "broker.conf"])
def test_nothing_is_written_where_one_of_the_files_is_there(name: str, empty: Path) -> None:
    (empty / "conf").mkdir()
    (empty / "conf" / name).write_text("mine")
    error = run().exception
    assert isinstance(error, TrimtabError)
    assert error.exit_code == 2
    assert str(error).startswith(f"conf/{name}: already exists, so nothing was written")
    assert [path.name for path in (empty / "conf").iterdir()] == [name]
    assert (empty / "conf" / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kafka", "nowhere"), "log.kafka.bootstrap = 'nowhere'"),
        (("--zookeeper", "z:0:1"), "election.hosts = 'z:0:1'"),
        (("--cluster", 'a"\n[x]'), "cluster.name = "),
        (("--cluster", "x" * 100_000 + "\x7f"), "not TOML"),
        (("--admin-url", "b:8080"), "pulsar.admin_url"),
    ],
)
def test_a_value_that_trimtab_would_refuse_is_refused_and_nothing_is_written(
    words: tuple[str, str], told: str, empty: Path
) -> None:
    error = run(*words).exception
    assert isinstance(error, SettingsError)
    assert told in str(error)
    assert list(empty.iterdir()) == []


def test_a_place_where_nothing_can_be_written_is_an_error(empty: Path) -> None:
    (empty / "file").touch()
    error = run("file/conf").exception
    assert isinstance(error, TrimtabError)
    assert "file/conf cannot be written to" in str(error)


def test_two_clusters_in_one_place_share_nothing() -> None:
    places = list[str]()
    for folder, cluster in (("a", "east"), ("b", "west")):
        assert run(folder, "--log", "folder", "--cluster", cluster).exit_code == 0
        made = read_settings(Path(folder, "trimtab.toml"))
        assert isinstance(made.log, LogInFolder)
        assert isinstance(made.election, ElectionByFile)
        places += [made.log.folder.path, made.election.path, made.checkpoint.path, made.verdicts_folder]
    assert len({Path(place).resolve() for place in places}) == len(places)


@pytest.mark.parametrize("log", ["kafka", "pulsar"])
def test_with_an_election_on_the_log_no_zookeeper_is_named(log: str, empty: Path) -> None:
    assert run("--log", log, "--election", "log").exit_code == 0
    made = read_settings(empty / "conf" / "trimtab.toml")
    assert made.elects_on_log
    assert "ZooKeeper" not in run("other", "--log", log, "--election", "log").stdout
