"""What is wrong with the settings ends a command at its start: on this machine, and by what the brokers say."""

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.doctor.before_acting import refuse_another_cluster, refuse_wrong_settings
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings
from tests.admin_servers import RUNTIME, AdminServer, admin_servers

_CONF = """
cluster.name = "{cluster}"
log = {{ kind = "folder", folder = {{ path = "{log}" }} }}
election = {{ kind = "file", path = "election" }}
checkpoint.path = "{checkpoint}"
pulsar.admin_url = ["http://{broker}"]
"""


@pytest.fixture
def broker() -> Iterator[AdminServer]:
    with admin_servers(1) as [server]:
        yield server


def settings(folder: Path, broker_conf: str | None = "", **values: str) -> Settings:
    usable = {"cluster": "demo", "log": "log", "checkpoint": "checkpoint", "broker": "127.0.0.1:1"}
    (folder / "trimtab.toml").write_text(_CONF.format(**usable | values))
    if broker_conf is not None:
        (folder / "broker.conf").write_text(broker_conf)
    return read_settings(folder / "trimtab.toml")


@pytest.mark.parametrize("decides", [True, False])
def test_settings_that_can_be_used_leave_nothing_behind(tmp_path: Path, decides: bool) -> None:
    refuse_wrong_settings(settings(tmp_path), decides=decides)
    assert sorted(os.listdir(tmp_path)) == ["broker.conf", "trimtab.toml"]


@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("loadBalancerBrokerThresholdShedderPercentag=20", "did you mean loadBalancerBrokerThresholdShedderPercentage"),
        ('[cluster]\nname = "demo"', "begins a section of TOML"),
        ("loadBalancerBrokerThresholdShedderPercentage=many", "allowed: a whole number"),
    ],
)
def test_a_broker_conf_that_cannot_be_used_is_refused(tmp_path: Path, decides: bool, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        refuse_wrong_settings(settings(tmp_path, text), decides=decides)


@pytest.mark.parametrize(
    ("what", "exit_code"), [(errno.ENOSPC, 1), (errno.ESTALE, 1), (errno.EIO, 1), (errno.EACCES, 2), (errno.EROFS, 2)]
)
def test_a_disk_that_is_full_or_away_may_be_back_at_the_next_start_and_a_folder_of_others_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: int, exit_code: int
) -> None:
    def no_folder(*_: object) -> None:
        raise OSError(what, os.strerror(what))

    monkeypatch.setattr(os, "mkdir", no_folder)
    with pytest.raises(
        TrimtabError, match=f"log.folder.path = .* cannot be written to: {os.strerror(what)}"
    ) as failure:
        refuse_wrong_settings(settings(tmp_path), decides=True)
    assert failure.value.exit_code == exit_code


def test_only_who_decides_needs_the_checkpoint_and_broker_conf(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = settings(tmp_path, None, checkpoint="/proc/nope")
    refuse_wrong_settings(wrong, decides=False)
    assert "broker.conf does not exist" in caplog.text
    assert "checkpoint.path = '/proc/nope': /proc cannot be written to" in caplog.text
    with pytest.raises(SettingsError, match=r"broker\.conf"):
        refuse_wrong_settings(wrong, decides=True)
    with pytest.raises(SettingsError, match=r"checkpoint\.path = '/proc/nope': /proc cannot be written to"):
        refuse_wrong_settings(settings(tmp_path, checkpoint="/proc/nope"), decides=True)


def test_a_log_that_cannot_be_written_to_is_refused_by_all(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"log\.folder\.path = .*file' is not a folder|file is not a folder"):
        refuse_wrong_settings(settings(tmp_path, log="file/log"), decides=False)


def test_brokers_of_the_cluster_are_as_they_should_be(broker: AdminServer, tmp_path: Path) -> None:
    refuse_another_cluster(settings(tmp_path, broker=broker.name))


def test_brokers_of_another_cluster_are_refused_by_their_name(broker: AdminServer, tmp_path: Path) -> None:
    broker.answers[RUNTIME] = (200, {"clusterName": "theirs"})
    with pytest.raises(SettingsError) as failure:
        refuse_another_cluster(settings(tmp_path, cluster="ours", broker=broker.name))
    told = str(failure.value)
    assert told.startswith("[cluster] name = 'ours': the brokers belong to theirs")
    assert 'set [cluster] name = "theirs", or other brokers in [pulsar] admin_url' in told


def test_a_cluster_that_the_brokers_do_not_know_is_refused_also_where_they_show_no_settings(
    broker: AdminServer, tmp_path: Path
) -> None:
    broker.answers[RUNTIME] = (401, {"reason": "no super user"})
    with pytest.raises(SettingsError, match="the brokers belong to demo"):
        refuse_another_cluster(settings(tmp_path, cluster="ours", broker=broker.name))


def test_brokers_that_say_nothing_are_not_refused(
    broker: AdminServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker.refuse(401)
    with caplog.at_level(logging.WARNING):
        refuse_another_cluster(settings(tmp_path, broker=broker.name))
    assert "cannot check whether the brokers belong to cluster demo" in caplog.text
