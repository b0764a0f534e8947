"""Controls in a real ZooKeeper: every controller reads them, and `trimtab stop-all` ends a leadership."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election.controls import ControlStore
from controller.cli.controls import change, pause
from controller.lab.servers import KafkaServer, ZooKeeperServer, zookeeper_server
from controller.log.elections import election_system
from controller.log.fencing import fence
from controller.model.controls import OperatorControls, Pause
from controller.model.errors import ControlsCorruptError, ControlsUnreachableError, LeadershipLostError
from controller.settings.log import KafkaLogSettings
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.commands import EpochEvent, parse_event
from tests.contracts.controls import ControlStoreContract, OpenStore
from tests.integration.test_kafka_inbox import executor, inbox, issue, log, work
from tests.integration.test_zookeeper_leadership import client, contender, eventually
from tests.kafka_log import journal_in, read_all
from tests.unit.executor.test_executor_loop import Owners

pytestmark = pytest.mark.integration
_ = log  # the fixture

PAUSED = Pause(reason="upgrade", by="ada", at_ms=5)


def settings(
    tmp_path: Path, hosts: str, cluster: str, more: str = 'log = { kind = "folder", folder.path = "log" }'
) -> Settings:
    file = tmp_path / f"{cluster}.toml"
    file.write_text(
        f"""
        cluster.name = "{cluster}"
        election = {{ kind = "zookeeper", hosts = "{hosts}", path = "/trimtab", session_timeout_seconds = 4 }}
        checkpoint.path = "checkpoint"
        {more}
        """
    )
    return read_settings(file)


@contextmanager
def store_of(found: Settings) -> Iterator[ControlStore]:
    store = election_system(found).controls()
    try:
        yield store
    finally:
        store.close()


class TestZooKeeperControls(ControlStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[OpenStore]:
        found = settings(tmp_path, zookeeper.hosts, uuid4().hex)
        with ExitStack() as stores:
            yield lambda: stores.enter_context(store_of(found))

    @pytest.fixture
    def of_another(self, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[OpenStore]:
        found = settings(tmp_path, zookeeper.hosts, uuid4().hex)
        with ExitStack() as stores:
            yield lambda: stores.enter_context(store_of(found))


def test_a_node_that_holds_something_else_is_an_error_and_can_be_set_anew(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    found = settings(tmp_path, zookeeper.hosts, uuid4().hex)
    with client(zookeeper.hosts) as kazoo, store_of(found) as store:
        kazoo.create(f"/trimtab/{found.cluster.name}/controls", b"?", makepath=True)
        with pytest.raises(ControlsCorruptError, match="/controls in ZooKeeper at"):
            store.read()
        with pytest.raises(ControlsCorruptError, match="set them again with `trimtab pause`"):
            change(store, lambda now: now)
        change(store, lambda now: replace(now, pauses=(PAUSED,)), may_replace=True)
        assert store.read()[0] == OperatorControls(pauses=(PAUSED,))


def test_while_zookeeper_is_away_the_last_known_pause_holds(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path / "server") as server:
        found = settings(tmp_path, server.hosts, "lab")
        with store_of(found) as store, store_of(found) as late:
            change(store, lambda _: OperatorControls(pauses=(PAUSED,)))
            controller = ControlsInForce(standing_controls(found), store, lambda: 0)
            assert controller.at(0).paused
            server.stop()
            assert controller.at(0).paused
            assert controller.at(0).unknown == ""
            with pytest.raises(ControlsUnreachableError):
                late.read()
            assert (
                "it is not known whether somebody paused"
                in ControlsInForce(standing_controls(found), late, lambda: 0).at(0).unknown
            )
            server.start()
            eventually(lambda: ControlsInForce(standing_controls(found), late, lambda: 0).at(0).paused)


def test_stop_all_fences_the_leader_and_what_executors_have_not_begun(
    tmp_path: Path,
    kafka: KafkaServer,
    zookeeper: ZooKeeperServer,
    log: KafkaLogSettings,
) -> None:
    topics = ", ".join(
        f'{name}_topic = "{getattr(log, f"{name}_topic")}"' for name in ("commands", "results", "journal")
    )
    names = f'kafka = {{ bootstrap = "{kafka.bootstrap}", partitions = {log.partitions}, {topics} }}'
    found = settings(tmp_path, zookeeper.hosts, "standalone", f'log = {{ kind = "kafka", {names} }}')
    with contender(zookeeper.hosts, "standalone") as leader, store_of(found) as store, inbox(log) as opened:
        assert leader.acquire(lambda: False)
        journal = journal_in(log, cluster="standalone")
        epoch = leader.claim(journal.open().epoch)
        journal.begin_epoch(epoch)
        issue(log, epoch=epoch)
        cluster = Owners(disturb=lambda: None)
        works = executor(opened, log, cluster, batch=2)

        pause(tmp_path / "standalone.toml", reason="stop-all", by="ada")
        assert fence(found, store) == epoch + 1

        with pytest.raises(LeadershipLostError):
            leader.check()
        with pytest.raises(LeadershipLostError, match="another process writes"):
            journal.begin_epoch(epoch + 5)
        work(works, quiet_seconds=3.0)
        assert cluster.acted == [], "what lies before the new epoch is refused, batch by batch"
        eventually(lambda: leader.acquire(lambda: False))
        assert leader.claim(journal_in(log, cluster="standalone").open().epoch) == epoch + 2
        assert ControlsInForce(standing_controls(found), store, lambda: 0).at(0).paused
    for partition in range(log.partitions):
        events = [parse_event(record.value) for record in read_all(log.bootstrap, log.commands_topic, partition)]
        assert [each.epoch for each in events if isinstance(each, EpochEvent)][-1] == epoch + 1
