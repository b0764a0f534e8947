"""Real brokers for a site: they own the bundles and move them; the load of the bundles is modelled.

Brokers of one machine all report the load of that machine, so nothing would ever be uneven.  Each executor calls
through an entrance of its own, which passes calls on and counts the unloads, whatever the answers say.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

import urllib3

from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.pulsar_stage import Stage, StageAdmin
from controller.simulator.cluster import ModelledSweep
from tests.faults.pulsar import Act, PiledCluster

#: Longer than any broker takes to unload a bundle.
_CALL_SECONDS: Final = 30.0
_UNLOAD: Final = "/unload"
#: What the other side of a proxy must not see.
_OF_THIS_HOP: Final = frozenset({"connection", "content-length", "transfer-encoding", "content-encoding"})


class OwnedByBrokers(PiledCluster):
    """A modelled load on bundles that real brokers own."""

    def __init__(self, brokers: tuple[str, ...], admin: StageAdmin, *, seed: int) -> None:
        super().__init__(brokers, seed=seed)
        self._admin = admin
        for namespace in self.namespaces:
            admin.create_namespace(namespace, len(self.boundaries(namespace)) - 1)
            assert admin.boundaries(namespace) == self.boundaries(namespace)
        self._stage = Stage(admin=admin, namespace="", bundles=tuple(self.bundle_loads()), topics=(), rates={})

    def pile_up(self, on: int) -> None:
        """As the model does, with the brokers after it."""
        super().pile_up(on)
        for bundle in self._stage.bundles:
            self._stage.bring(bundle, super().owner(bundle))

    def owner(self, bundle: str) -> str:
        """The broker that has *bundle*; where nobody has it, the last one that had."""
        self._ask()
        return super().owner(bundle)

    def sweeps(self, interval: int) -> Iterator[ModelledSweep]:
        """The modelled load, at the brokers that have the bundles now."""
        self._ask()
        return super().sweeps(interval)

    def _ask(self) -> None:
        for code, broker in enumerate(self.brokers):
            for bundle in self._admin.owned(broker) & self._row_of.keys():
                self._owner[self._row_of[bundle]] = code


class RealPulsar:
    """As PlayedPulsar, in front of real brokers."""

    #: A destination is a wish: a bundle may go to another broker.
    obeys: Final = False

    def __init__(self, real: PulsarCluster, *, entrances: int, seed: int) -> None:
        self._urls, self._pool = real.admin_urls, urllib3.PoolManager(maxsize=16)
        self.admin = StageAdmin(real.admin_urls, cluster=CLUSTER)
        self.cluster = OwnedByBrokers(tuple(sorted(real.brokers)), self.admin, seed=seed)
        self._servers = [_Entrance(self, nth) for nth in range(entrances)]
        self.entrances = [f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers]
        self.acts: list[Act] = []
        #: See PlayedPulsar.
        self.on_act: Callable[[int, Act], None] | None = None
        self.lock = threading.Lock()

    def start(self) -> None:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()

    def stop(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self.admin.close()
        self._pool.clear()

    def call(self, method: str, path: str, body: bytes, entrance: int) -> urllib3.BaseHTTPResponse:
        """The answer of a broker; an unload is followed to the broker that does it, and counted."""
        url = urlsplit(path)
        unloads = method == "PUT" and url.path.endswith(_UNLOAD)
        bundle = url.path.removesuffix(_UNLOAD).removeprefix("/admin/v2/namespaces/")
        before = self.admin.owner(bundle) if unloads else ""
        answer = self._pool.request(
            method,
            f"{self._urls[entrance % len(self._urls)]}{path}",
            body=body or None,
            headers={"Content-Type": "application/json"},
            redirect=unloads,
            retries=urllib3.Retry(total=5, connect=0, read=0, raise_on_redirect=False) if unloads else False,
            timeout=_CALL_SECONDS,
        )
        if unloads and answer.status < 300:
            [destination] = parse_qs(url.query).get("destinationBroker", [""])
            self._count(Act(bundle, before, destination), entrance)
        return answer

    def _count(self, act: Act, entrance: int) -> None:
        with self.lock:
            self.acts.append(act)
            call, self.on_act = self.on_act, None
        if call is not None:
            call(entrance, act)


@contextmanager
def real_pulsar(real: PulsarCluster, *, entrances: int, seed: int = 1) -> Iterator[RealPulsar]:
    """The brokers of *real*, which are not stopped at the end."""
    pulsar = RealPulsar(real, entrances=entrances, seed=seed)
    pulsar.start()
    try:
        yield pulsar
    finally:
        pulsar.stop()


class _Entrance(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pulsar: RealPulsar, number: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pulsar, self.number = pulsar, number

    def handle_error(self, *_: object) -> None:
        """Callers are killed here on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Entrance
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass_on()

    def do_PUT(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.pulsar.call(self.command, self.path, body, self.server.number)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _OF_THIS_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        self.wfile.write(answer.data)

    def log_message(self, *_: object) -> None:
        """Not to the output."""
