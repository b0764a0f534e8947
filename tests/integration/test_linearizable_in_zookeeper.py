"""Controls and election in a real ZooKeeper, through a network that cuts connections and loses answers."""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from random import Random
from uuid import uuid4

import pytest

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.controls import ZooKeeperControls
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.lab.servers import ZooKeeperServer
from controller.model.errors import TrimtabError
from tests.protocol.histories import (
    History,
    all_at_once,
    change_controls,
    controls_are_linearizable,
    election_is_linearizable,
    lead,
    raise_epochs,
)

pytestmark = pytest.mark.integration

SESSION_SECONDS = 4.0
SECONDS = 10.0


class Network:
    """A way to *hosts* over loopback that can be cut, or deliver requests and no answers."""

    def __init__(self, hosts: str) -> None:
        host, _, port = hosts.partition(":")
        self._server, self._loses_answers, self._ended = (host, int(port)), False, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = list[socket.socket]()
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answers(self, seconds: float) -> None:
        """Requests arrive, their answers do not; then every connection is cut."""
        self._loses_answers = True
        time.sleep(seconds)
        self.cut()
        self._loses_answers = False

    def cut(self) -> None:
        """End every connection; new ones can be made."""
        for each in self._sockets[:]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End."""
        self._ended = True
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._ended:
            with suppress(OSError):
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            self._sockets += [client, server]
            with selectors.DefaultSelector() as selector:
                for one, other in ((client, server), (server, client)):
                    selector.register(one, selectors.EVENT_READ, other)
                while True:
                    for key, _ in selector.select(1.0):
                        assert isinstance(key.fileobj, socket.socket)
                        data = key.fileobj.recv(65536)
                        if not data:
                            return
                        if key.fileobj is client or not self._loses_answers:
                            key.data.sendall(data)


@pytest.fixture
def network(zookeeper: ZooKeeperServer) -> Iterator[Network]:
    with closing(Network(zookeeper.hosts)) as network:
        yield network


@contextmanager
def disturbed(network: Network, seed: int) -> Iterator[threading.Event]:
    """Cut connections and lose answers at random, within the block; the event is set when it is enough."""
    over = threading.Event()

    def disturb() -> None:
        chance, until = Random(seed), time.monotonic() + SECONDS
        while time.monotonic() < until:
            over.wait(chance.random())
            if chance.random() < 0.5:
                network.lose_answers(chance.random() * 0.5)
            else:
                network.cut()
        over.set()

    thread = threading.Thread(target=disturb, daemon=True)
    thread.start()
    yield over
    thread.join()


def test_controls(network: Network) -> None:
    history, name = History(), uuid4().hex

    def change(client: str, seed: int, over: threading.Event) -> None:
        with closing(controls(network, name)) as store:
            while not over.is_set():
                change_controls(store, history, f"{client}-{len(history.calls)}", Random(seed), 3)
                over.wait(0.1)

    with disturbed(network, 1) as over:
        all_at_once([partial(change, client, seed, over) for seed, client in enumerate("abc")])
    assert sum(call.name == "cas" and call.result is True for call in history.calls) > 5
    controls_are_linearizable(history)


def test_the_election(network: Network) -> None:
    history, name = History(), uuid4().hex

    def contend(client: str, seed: int, over: threading.Event) -> None:
        chance = Random(seed)
        while not over.is_set():
            with suppress(TrimtabError), closing_leadership(network, name) as leadership:
                while lead(leadership, history, client, chance, over):
                    pass

    def raising(over: threading.Event) -> None:
        with closing(controls(network, name)) as store:
            while not over.is_set():
                raise_epochs(store, history, "operator", Random(0), 2)
                over.wait(0.5)

    with disturbed(network, 2) as over:
        works: list[Callable[[], object]] = [partial(contend, client, seed, over) for seed, client in enumerate("abc")]
        all_at_once([*works, partial(raising, over)])
    assert sum(call.name == "check" and call.result is True for call in history.calls) > 5
    election_is_linearizable(history)


def controls(network: Network, name: str) -> ZooKeeperControls:
    return ZooKeeperControls(
        access=ZooKeeperAccess(hosts=network.hosts),
        path="/trimtab",
        cluster=name,
        session_timeout_seconds=SESSION_SECONDS,
    )


@contextmanager
def closing_leadership(network: Network, name: str) -> Iterator[ZooKeeperLeadership]:
    access = ZooKeeperAccess(hosts=network.hosts)
    leadership = ZooKeeperLeadership(
        access=access, path="/trimtab", cluster=name, session_timeout_seconds=SESSION_SECONDS
    )
    try:
        yield leadership
    finally:
        leadership.release()
