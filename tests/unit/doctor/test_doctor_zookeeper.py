"""Servers that are no ZooKeeper, or a dead one."""

import socket
import threading
import time

import pytest

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.session import granted_timeout_ms
from controller.model.errors import TrimtabError


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_server_that_takes_connections_and_says_nothing_is_given_up() -> None:
    with listening() as server:
        began = time.monotonic()
        with pytest.raises(TrimtabError, match="timed out"):
            granted_timeout_ms(ZooKeeperAccess(hosts=f"127.0.0.1:{server.getsockname()[1]}"), 10, answer_seconds=0.2)
        assert time.monotonic() - began < 1


def test_a_server_that_hangs_up_is_named_with_all_the_others() -> None:
    with listening() as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(TrimtabError, match=rf"127\.0\.0\.1:{port}: .*; 127\.0\.0\.1:1: .*refused"):
            granted_timeout_ms(ZooKeeperAccess(hosts=f"127.0.0.1:{port},127.0.0.1:1/chroot"), 10, answer_seconds=1)
