"""Servers that are no ZooKeeper, or a dead one."""

import logging
import re
import socket
import threading
import time

import pytest

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.session import granted_timeout_ms
from controller.model.errors import TrimtabError


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_server_that_takes_connections_and_says_nothing_is_given_up() -> None:
    with listening() as server:
        began = time.monotonic()
        with pytest.raises(TrimtabError, match="timed out"):
            granted_timeout_ms(ZooKeeperAccess(hosts=f"127.0.0.1:{server.getsockname()[1]}"), 10, answer_seconds=0.2)
        assert time.monotonic() - began < 8


def test_a_server_that_hangs_up_is_named_with_all_the_others() -> None:
    with listening() as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(TrimtabError, match=rf"127\.0\.0\.1:{port}: .*; 127\.0\.0\.1:1: .*refused"):
            granted_timeout_ms(ZooKeeperAccess(hosts=f"127.0.0.1:{port},127.0.0.1:1/chroot"), 10, answer_seconds=1)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it answers, but not as ZooKeeper does: another server has this port"),
        (b"\0\0\0\x08hello!!!", "it answers, but not as ZooKeeper does: another server has this port"),
        (b"\x15\x03\x03\0\x02\x02\x50", "it speaks TLS; does it require TLS, [election.tls]?"),
    ],
)
def test_a_server_that_is_no_zookeeper_is_told_in_words(answer: bytes, why: str) -> None:
    with listening() as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(answer)
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        where = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrimtabError, match=re.escape(f"{where}: {why}")):
            granted_timeout_ms(ZooKeeperAccess(hosts=where), 10, answer_seconds=1)


def test_kazoo_does_not_tell_each_answer_that_it_cannot_read(caplog: pytest.LogCaptureFixture) -> None:
    ZooKeeperConnection(ZooKeeperAccess(hosts="127.0.0.1:1"), session_seconds=1)
    log = logging.getLogger("controller.adapters.kazoo")
    log.error("Exception raised during deserialization of request: %s", "Connect")
    log.error("Unhandled exception in connection loop")
    assert [record.getMessage() for record in caplog.records] == ["Unhandled exception in connection loop"]
