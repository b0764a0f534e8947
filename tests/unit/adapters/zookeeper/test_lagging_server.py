"""A server of ZooKeeper that lags behind the others answers reads with what it knows, until it is told to catch up."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss

from controller.adapters.zookeeper import node_client as module
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.model.controls import OperatorControls, Pause
from controller.model.errors import ControlsUnreachableError
from controller.wire.controls import encode_controls

PAUSED = OperatorControls(pauses=(Pause(by="ada", reason="upgrade", at_ms=5),))


class Stat(NamedTuple):
    version: int


class Answer:
    """What a request of kazoo's gives."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def get(self, timeout: float) -> Any:
        return self._answer()


class LaggingServer:
    """kazoo's client at a server that has not heard of the last change to the controls and to the epoch."""

    connected = True

    def __init__(self) -> None:
        self.newest = {"controls": (encode_controls(PAUSED), Stat(8)), "epoch": (b"9", Stat(4))}
        self._known = {"controls": (encode_controls(OperatorControls()), Stat(7)), "epoch": (b"6", Stat(3))}
        self.is_cut_off = False

    def sync_async(self, _: str) -> Answer:
        if self.is_cut_off:
            return Answer(self._no_answer)
        self._known = self.newest
        return Answer(str)

    def get_async(self, node: str) -> Answer:
        return Answer(lambda: self._known[node.rpartition("/")[2]])

    def set_async(self, node: str, value: bytes, *, version: int) -> Answer:
        name = node.rpartition("/")[2]

        def replaced() -> Stat:
            if self.newest[name][1].version != version:
                raise BadVersionError
            self.newest = {**self.newest, name: (value, Stat(version + 1))}
            return self.newest[name][1]

        return Answer(replaced)

    @staticmethod
    def _no_answer() -> Any:
        raise ConnectionLoss


@pytest.fixture
def server() -> LaggingServer:
    return LaggingServer()


@pytest.fixture
def store(server: LaggingServer, monkeypatch: pytest.MonkeyPatch) -> ZooKeeperControls:
    class Connected(ZooKeeperConnection):
        def __init__(self, access: ZooKeeperAccess, **_: object) -> None:
            self.access, self.client = access, server

        @property
        def ended(self) -> bool:
            return False

    monkeypatch.setattr(module, "ZooKeeperConnection", Connected)
    return ZooKeeperControls(
        access=ZooKeeperAccess(hosts="a:2181,b:2181,c:2181"), path="/trimtab", cluster="lab", session_timeout_seconds=4
    )


def test_a_pause_that_was_acknowledged_is_read_from_a_server_that_lags(store: ZooKeeperControls) -> None:
    assert store.read() == (PAUSED, 8)
    assert store.version() == 8


def test_an_epoch_that_was_raised_is_read_from_a_server_that_lags(store: ZooKeeperControls) -> None:
    assert store.epoch() == 9


def test_controls_that_were_read_from_a_server_that_lags_can_be_replaced_at_once(store: ZooKeeperControls) -> None:
    _, version = store.read()
    assert store.write(OperatorControls(), version)


def test_a_server_that_cannot_catch_up_gives_no_controls(store: ZooKeeperControls, server: LaggingServer) -> None:
    server.is_cut_off = True
    with pytest.raises(ControlsUnreachableError):
        store.read()
