"""Notifications of several `trimtab serve` on one real ZooKeeper: one sends, another goes on where it died."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from controller.adapters.network.waiting import wait_for
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.notifications import ZooKeeperNotifications
from controller.lab.servers import ZooKeeperServer
from controller.model.errors import TrimtabError
from tests.contracts.notifications import NotificationStoreContract, OpenStore
from tests.folder_settings import write_settings
from tests.webhook_receiver import WebhookReceiver, status, webhook_receiver

pytestmark = pytest.mark.integration

#: ZooKeeper's own least, with its usual ticks.
_SESSION_SECONDS = 4
#: For processes to start, on a machine that does much else.
_PATIENCE = 240.0


def opened(hosts: str, cluster: str) -> ZooKeeperNotifications:
    access = ZooKeeperAccess(hosts=hosts)
    return ZooKeeperNotifications(
        access=access, path="/trimtab", cluster=cluster, session_timeout_seconds=_SESSION_SECONDS
    )


class TestZooKeeperNotifications(NotificationStoreContract):
    @pytest.fixture
    def open_store(self, zookeeper: ZooKeeperServer, zookeeper_client: KazooClient) -> Iterator[OpenStore]:
        cluster = uuid4().hex
        zookeeper_client.ensure_path(f"/trimtab/{cluster}")
        with ExitStack() as stores:
            yield lambda: stores.enter_context(closing(opened(zookeeper.hosts, cluster)))


def test_before_a_controller_or_collector_has_come_nothing_is_created(
    zookeeper: ZooKeeperServer, zookeeper_client: KazooClient
) -> None:
    cluster = uuid4().hex
    with closing(opened(zookeeper.hosts, cluster)) as store:
        assert not store.sends()
    assert zookeeper_client.exists(f"/trimtab/{cluster}") is None


def test_who_cannot_reach_zookeeper_does_not_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with closing(opened(f"127.0.0.1:{port}", "any")) as store, pytest.raises(TrimtabError):
        store.sends()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as each:
        yield each


@contextmanager
def serving(folder: Path, hosts: str, cluster: str, url: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A server of the page of a cluster that never decides, which is told after two seconds."""
    folder.mkdir()
    (folder / "broker.conf").write_text("", encoding="utf-8")
    conf = folder / "trimtab.toml"
    lines = (
        f'cluster = {{name = "{cluster}", broker_conf = "broker.conf"}}',
        f'log = {{kind = "folder", folder.path = "{folder.parent / "log"}"}}',
        f'election = {{kind = "zookeeper", hosts = "{hosts}", path = "/trimtab",'
        f" session_timeout_seconds = {_SESSION_SECONDS}}}",
        'checkpoint.path = "checkpoint"',
        "intervals.period_seconds = 1",
        'web = {listen = "127.0.0.1:0", anonymous = "viewer"}',
        "notifications.silent_intervals = 2",
        "notifications.doctor_minutes = 0",
        f'notifications.webhooks = [{{name = "oncall", url = "{url}"}}]',
    )
    conf.write_text("\n".join(lines).replace("127.0.0.1:0", f"127.0.0.1:{_free_port()}"), encoding="utf-8")
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)], stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _sends(folder: Path) -> bool:
    return b"this process sends the notifications" in (folder / "log.txt").read_bytes()


def _the_sender(*folders: Path) -> Path:
    wait_for(lambda: any(map(_sends, folders)), _PATIENCE, every=0.1)
    [sender] = filter(_sends, folders)
    return sender


def test_the_one_that_sends_dies_and_the_other_sends_what_it_left_with_the_same_id(
    tmp_path: Path, zookeeper: ZooKeeperServer, zookeeper_client: KazooClient, receiver: WebhookReceiver
) -> None:
    cluster = uuid4().hex
    zookeeper_client.ensure_path(f"/trimtab/{cluster}")
    receiver.answer = receiver.hang
    with ExitStack() as processes:
        servers = {
            folder: processes.enter_context(serving(folder, zookeeper.hosts, cluster, receiver.url))
            for folder in (tmp_path / "a", tmp_path / "b")
        }
        receiver.wait(1, _PATIENCE)  # and there is no answer
        dead = _the_sender(*servers)
        receiver.answer = status(204)
        servers[dead].kill()
        receiver.wait(2, _PATIENCE)
        processes.enter_context(serving(tmp_path / "c", zookeeper.hosts, cluster, receiver.url))
        [alive] = set(servers) - {dead}
        assert _sends(alive)
        servers[alive].send_signal(signal.SIGTERM)
        assert servers[alive].wait(_PATIENCE) == 0
        _the_sender(tmp_path / "c")
        time.sleep(5)  # several looks of a process that was started anew
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1
    assert {request.json["type"] for request in receiver.requests} == {"trimtab.notification.no-decision"}


def test_a_test_notification_goes_to_every_webhook_and_says_which_did_not_accept_it(
    tmp_path: Path, receiver: WebhookReceiver
) -> None:
    conf = write_settings(
        tmp_path,
        "[[notifications.webhooks]]",
        'name = "good"',
        f'url = "{receiver.url}"',
        'events = ["breaker-opened"]',
        "[[notifications.webhooks]]",
        'name = "gone"',
        f'url = "http://127.0.0.1:{_free_port()}/x"',
    )
    command = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf), "--test-notification"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert ended.returncode == 1
    assert "demo, good: accepted\n" in ended.stdout
    assert "demo, gone: no answer" in ended.stdout
    assert receiver.requests[0].json["type"] == "trimtab.notification.test"
