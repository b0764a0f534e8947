"""The registry of processes, on a real ZooKeeper."""

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from controller.adapters.election.registry import MOST_ENTRIES
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.network.waiting import wait_for
from controller.adapters.registration import Registration, processes_of, registered
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.registry import ZooKeeperRegistry
from controller.lab.servers import ZooKeeperServer
from controller.log.elections import registry_of
from controller.settings.access import ZooKeeperAuthSettings
from controller.settings.trimtab_toml import Settings
from controller.wire.process import RunningProcess
from tests.contracts.registry import OpenRegistry, RegistryContract, written

pytestmark = pytest.mark.integration

_LONGEST = 4096


def opened(hosts: str, cluster: str, auth: ZooKeeperAuthSettings | None = None) -> ZooKeeperRegistry:
    access = ZooKeeperAccess(hosts=hosts, auth=auth)
    return ZooKeeperRegistry(access=access, path="/trimtab", cluster=cluster, session_timeout_seconds=4)


class TestZooKeeperRegistry(RegistryContract):
    @pytest.fixture
    def open_registry(self, zookeeper: ZooKeeperServer, zookeeper_client: KazooClient) -> Iterator[OpenRegistry]:
        cluster = uuid4().hex
        zookeeper_client.ensure_path(f"/trimtab/{cluster}")
        with ExitStack() as registries:

            def one() -> ZooKeeperRegistry:
                return registries.enter_context(closing(opened(zookeeper.hosts, cluster)))

            yield one


def eventually(check: Callable[[], object]) -> None:
    wait_for(check, 20.0, every=0.1)


def process(**changed: Any) -> RunningProcess:
    values = {"host": "here", "process": 1, "role": "executor", "version": "1", "started_at": 0, "ready": True}
    return RunningProcess(**{**values, **changed})


def test_a_process_whose_session_expired_registers_again(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path(f"/trimtab/{cluster}")
    with closing(opened(zookeeper.hosts, cluster)) as registry:
        registry.write("a", b"1")
        session, password = registry._client.client_id
        # Another client takes the session over, and closes it: so ZooKeeper ends it, and its nodes.
        thief = KazooClient(zookeeper.hosts, client_id=(session, password))
        thief.start()
        thief.stop()
        thief.close()
        assert zookeeper_client.get_children(f"/trimtab/{cluster}/processes") == []
        eventually(lambda: _writes(registry, b"2"))
        assert written(registry) == {"a": b"2"}
        [node] = zookeeper_client.get_children(f"/trimtab/{cluster}/processes")
        _, stat = zookeeper_client.get(f"/trimtab/{cluster}/processes/{node}")
        assert stat.ephemeralOwner not in (0, session)


def _writes(registry: ZooKeeperRegistry, value: bytes) -> bool:
    try:
        registry.write("a", value)
    except Exception:
        return False
    return True


def test_a_node_that_somebody_deleted_is_there_again_with_the_next_renewal(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path(f"/trimtab/{cluster}")
    with closing(opened(zookeeper.hosts, cluster)) as registry:
        registry.write("a", b"1")
        zookeeper_client.delete(f"/trimtab/{cluster}/processes", recursive=True)
        registry.write("a", b"2")
        assert written(registry) == {"a": b"2"}


def test_no_more_entries_are_read_than_a_cluster_can_have_processes(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path(f"/trimtab/{cluster}/processes")
    transaction = zookeeper_client.transaction()
    for number in range(MOST_ENTRIES + 2):
        transaction.create(f"/trimtab/{cluster}/processes/{number:05}", b"1")
    transaction.commit()
    with closing(opened(zookeeper.hosts, cluster)) as registry:
        found = registry.read(_LONGEST)
    assert len(found.entries) == MOST_ENTRIES
    assert found.left_out == 2


def test_entries_that_are_broken_or_huge_are_named_and_the_others_are_read(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    folder = f"/trimtab/{cluster}/processes"
    zookeeper_client.ensure_path(folder)
    zookeeper_client.create(f"{folder}/huge", b"x" * 900_000)
    zookeeper_client.create(f"{folder}/broken", b'{"role": "executor"')
    zookeeper_client.create(f"{folder}/folder", b"")
    zookeeper_client.create(f"{folder}/folder/below", b"")
    zookeeper_client.create(f"{folder}/good", process().model_dump_json(by_alias=True).encode())
    found = processes_of(partial(registry_of, settings(zookeeper.hosts, cluster)))
    assert found.unknown == ""
    assert [seen.process.host for seen in found.running] == ["here"]
    assert sorted(found.unusable) == ["broken", "folder", "huge"]
    assert "longer than 4,096 bytes" in found.unusable["huge"]


def settings(hosts: str, cluster: str, **election: Any) -> Settings:
    return Settings.model_validate(
        {
            "cluster": {"name": cluster},
            "log": {"kind": "folder", "folder": {"path": "none"}},
            "election": {"kind": "zookeeper", "hosts": hosts, "path": "/trimtab", **election},
            "checkpoint": {"path": "none"},
        }
    )


def digest(folder: Path, user: str) -> ZooKeeperAuthSettings:
    file = folder / f"{user}.password"
    file.write_text(f"{user}-secret\n")
    return ZooKeeperAuthSettings(scheme="digest", user=user, password_file=str(file))


def test_a_process_without_the_right_to_write_works_on_and_says_which_node_it_may_not_write(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path("/trimtab")
    zookeeper_client.create(f"/trimtab/{cluster}", acl=[make_digest_acl("controllers", "secret", all=True)])
    auth = digest(tmp_path, "executors")
    registration = Registration(lambda: opened(zookeeper.hosts, cluster, auth), process)
    with caplog.at_level(logging.INFO):
        registration.start()
        eventually(lambda: "may" in caplog.text or "refuses" in caplog.text)
        registration.end()
    [line] = [each.getMessage() for each in caplog.records if each.name == "controller.adapters.registration"]
    assert line.startswith("cannot register this process, so")
    assert "it works nevertheless: ZooKeeper at " in line
    assert f"refuses node /trimtab/{cluster}/processes/" in line
    assert "'executors'" in line


def test_an_administrator_lets_executors_write_and_controllers_read(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient, tmp_path: Path
) -> None:
    """With SASL getAcl shows the names of all users; here the reader's is everybody's, which it shows as well."""
    cluster = uuid4().hex
    zookeeper_client.ensure_path("/trimtab")
    zookeeper_client.create(f"/trimtab/{cluster}", acl=[make_digest_acl("controllers", "secret", all=True)])
    zookeeper_client.add_auth("digest", "controllers:secret")
    executors = digest(tmp_path, "executors")
    world = [
        make_acl("world", "anyone", read=True),
        make_digest_acl("executors", "executors-secret", create=True, read=True),
    ]
    zookeeper_client.create(f"/trimtab/{cluster}/processes", acl=world)
    with ExitStack() as stack:
        registry = stack.enter_context(closing(opened(zookeeper.hosts, cluster, executors)))
        reader = stack.enter_context(closing(opened(zookeeper.hosts, cluster)))
        registry.write("a", b"1")
        registry.write("a", b"2")
        assert written(reader) == {"a": b"2"}
        with pytest.raises(Exception, match="refuses node"):
            reader.write("a", b"3")


def test_before_the_election_exists_nothing_is_created_so_that_no_executor_owns_its_nodes(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    with closing(opened(zookeeper.hosts, cluster)) as registry:
        assert not registry.write("a", b"1")
        assert zookeeper_client.exists(f"/trimtab/{cluster}") is None
        zookeeper_client.ensure_path(f"/trimtab/{cluster}")
        assert registry.write("a", b"1")
        assert written(registry) == {"a": b"1"}


def test_a_process_appears_with_what_it_does_and_vanishes_at_its_end(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path(f"/trimtab/{cluster}")
    ours = settings(zookeeper.hosts, cluster)
    metrics = ExecutorMetrics()
    with registered(ours, partial(registry_of, ours), metrics, "1.2.3"):
        eventually(lambda: processes_of(partial(registry_of, ours)).running)
        metrics.assigned(4)
        eventually(lambda: processes_of(partial(registry_of, ours)).running[0].process.partitions == 4)
        [seen] = processes_of(partial(registry_of, ours)).running
        assert (seen.process.role, seen.process.version, seen.process.ready) == ("executor", "1.2.3", True)
    assert processes_of(partial(registry_of, ours)).running == ()


def test_a_zookeeper_that_hangs_delays_neither_begin_nor_end() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        ours = settings(f"127.0.0.1:{silent.getsockname()[1]}", uuid4().hex)
        began = time.monotonic()
        with registered(ours, partial(registry_of, ours), ExecutorMetrics(), "1"):
            entered = time.monotonic() - began
        ended = time.monotonic() - began
        assert entered < 0.5
        assert ended < 1.5
        assert "did not answer" in processes_of(partial(registry_of, ours)).unknown
