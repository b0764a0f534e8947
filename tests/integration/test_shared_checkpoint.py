"""Controllers that take over from each other have one checkpoint, or none of them may start."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.aggregate.shard import state_blob
from controller.lab.servers import ZooKeeperServer
from controller.model.errors import SettingsError, StateVersionError, TrimtabError
from controller.settings.trimtab_toml import Settings
from streaming.assembly import Assembly

pytestmark = pytest.mark.integration


def settings(zookeeper: ZooKeeperServer, folder: Path, checkpoint: str) -> Settings:
    (folder / "broker.conf").touch()
    return Settings.model_validate(
        {
            "cluster": {"name": folder.name, "broker_conf": str(folder / "broker.conf")},
            "log": {"kind": "folder", "folder": {"path": str(folder)}},
            "election": {"kind": "zookeeper", "hosts": zookeeper.hosts, "path": "/shared"},
            "checkpoint": {"path": checkpoint},
            "journal": {"verdicts_path": str(folder / "verdicts")},
        }
    )


def check(settings: Settings, spark: SparkSession) -> None:
    assembly = Assembly(settings)
    leader = assembly.leadership()
    try:
        assert leader.acquire(lambda: False)
        assembly.check_shared_checkpoint(leader, assembly.files(spark))
    finally:
        leader.release()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_same_place_is_accepted_again_and_knows_whether_a_query_has_begun(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession, scheme: str
) -> None:
    place = settings(zookeeper, tmp_path, f"{scheme}{tmp_path}/one")
    check(place, spark)
    check(place, spark)
    assembly = Assembly(place)
    files = assembly.files(spark)
    assert not assembly.has_committed(files)
    commits = tmp_path / "one" / "decisions-s16" / "commits"
    commits.mkdir(parents=True)
    assert not assembly.has_committed(files)
    (commits / "0").write_text("v1")
    assert assembly.has_committed(files)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_place_of_its_own_is_refused_and_the_message_says_what_to_do(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession, scheme: str
) -> None:
    check(settings(zookeeper, tmp_path, f"{scheme}{tmp_path}/one"), spark)
    with pytest.raises(SettingsError) as caught:
        check(settings(zookeeper, tmp_path, f"{scheme}{tmp_path}/two"), spark)
    assert f"checkpoint.path = '{scheme}{tmp_path}/two'" in str(caught.value)
    assert f"delete /shared/{tmp_path.name}/checkpoint in ZooKeeper" in str(caught.value)
    assert not list(Path.cwd().glob("*:")), "a URI is no folder"
    (tmp_path / "two" / ".identity.crc").unlink(missing_ok=True)
    (tmp_path / "two" / "identity").write_text((tmp_path / "one" / "identity").read_text() + "\n")
    check(settings(zookeeper, tmp_path, f"{scheme}{tmp_path}/two"), spark)


def test_a_folder_and_its_uri_are_the_same_place(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession
) -> None:
    check(settings(zookeeper, tmp_path, f"{tmp_path}/one"), spark)
    check(settings(zookeeper, tmp_path, f"file:{tmp_path}/one"), spark)


def test_a_file_system_that_spark_does_not_know_is_refused_by_name(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession
) -> None:
    with pytest.raises(SettingsError, match=r"checkpoint\.path = 'nowhere://bucket/one'.*spark\.jars\.packages"):
        Assembly(settings(zookeeper, tmp_path, "nowhere://bucket/one")).files(spark)


def test_where_a_file_system_refuses_only_its_own_reason_is_given(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "one").write_text("a file")
    files = Assembly(settings(zookeeper, tmp_path, f"file:{tmp_path}/one/two")).files(spark)
    with pytest.raises(TrimtabError, match=rf"checkpoint\.path = 'file:{tmp_path}/one/two': .*/one") as caught:
        files.try_to_write()
    assert "spark.jars" not in str(caught.value)
    assert caught.value.exit_code == 1, "a file system that is away is tried again by the next start"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_checkpoint_that_a_later_release_wrote_to_is_refused_by_name(
    zookeeper: ZooKeeperServer, tmp_path: Path, spark: SparkSession, scheme: str
) -> None:
    assembly = Assembly(settings(zookeeper, tmp_path, f"{scheme}{tmp_path}/one"))
    for _ in range(2):
        assembly.refuse_other_version(assembly.files(spark))
    later = tmp_path / "one" / f"state-{state_blob.VERSION + 1}"
    assert (tmp_path / "one" / f"state-{state_blob.VERSION}").read_text().startswith("trimtab ")
    later.write_text("trimtab 9.9.9")
    with pytest.raises(StateVersionError, match=r"trimtab 9\.9\.9 wrote its state in version 6"):
        assembly.refuse_other_version(assembly.files(spark))
