"""Controllers that take over from each other have one checkpoint, or none of them may start."""

from pathlib import Path

import pytest

from controller.adapters.servers import ZooKeeperServer
from controller.adapters.zookeeper import ZooKeeperLeadership
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import Settings
from streaming.assembly import check_shared_checkpoint, leadership

pytestmark = pytest.mark.integration


def settings(zookeeper: ZooKeeperServer, folder: Path, checkpoint: str) -> Settings:
    return Settings.model_validate(
        {
            "cluster": {"name": folder.name},
            "log": {"kind": "folder", "folder": {"path": str(folder)}},
            "election": {"kind": "zookeeper", "hosts": zookeeper.hosts, "path": "/shared"},
            "checkpoint": {"path": checkpoint if "://" in checkpoint else str(folder / checkpoint)},
            "journal": {"verdicts_path": str(folder / "verdicts")},
        }
    )


def check(settings: Settings) -> None:
    leader = leadership(settings)
    assert isinstance(leader, ZooKeeperLeadership)
    try:
        assert leader.acquire(lambda: False)
        check_shared_checkpoint(settings, leader)
    finally:
        leader.release()


def test_the_same_folder_is_accepted_again(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    check(settings(zookeeper, tmp_path, "one"))
    check(settings(zookeeper, tmp_path, "one"))


def test_a_folder_of_its_own_is_refused_and_the_message_says_what_to_do(
    zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    check(settings(zookeeper, tmp_path, "one"))
    with pytest.raises(SettingsError) as caught:
        check(settings(zookeeper, tmp_path, "two"))
    assert f"checkpoint.path = '{tmp_path / 'two'}'" in str(caught.value)
    assert f"delete /shared/{tmp_path.name}/checkpoint in ZooKeeper" in str(caught.value)


def test_a_uri_is_taken_to_be_shared(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    check(settings(zookeeper, tmp_path, "one"))
    check(settings(zookeeper, tmp_path, "s3a://bucket/checkpoint"))
