"""Pulsar's admin API in front of a modelled cluster; it counts what is done to it, whoever says what."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from controller.lab.pulsar_server import CLUSTER
from controller.model.names import BundleName, find_bundle, topic_hash
from controller.simulator.cluster import ClusterShape, ModelledCluster
from tests.commands import unload

LOOPBACK: Final = "127.0.0.1"


class Act(NamedTuple):
    """A bundle that was really moved."""

    bundle: str
    source: str
    destination: str


class PiledCluster(ModelledCluster):
    """A modelled cluster that is never balanced for long."""

    def __init__(self, brokers: tuple[str, ...], *, seed: int) -> None:
        super().__init__(
            ClusterShape(brokers=len(brokers), empty_brokers=0, namespaces=8, bundles=32, topics=320, skew=0.3),
            seed=seed,
            name=CLUSTER,
        )
        self.brokers = brokers

    def pile_up(self, on: int) -> None:
        """Give every second bundle to broker number *on*, and deal out the others."""
        brokers = len(self.brokers)
        for row in range(len(self._owner)):
            self._owner[row] = (on if row % 2 else row // 2) % brokers
        self.advance()


class PlayedPulsar:
    """The brokers, each at a port of its own, and beside them an entrance for each of those who send commands."""

    #: A bundle always goes where it is sent.
    obeys: Final = True

    def __init__(self, *, brokers: int, entrances: int, seed: int, host: str) -> None:
        servers = [_Server(self, nth, host) for nth in range(brokers + entrances)]
        self._servers = servers
        self.cluster = PiledCluster(tuple(sorted(server.name for server in servers[entrances:])), seed=seed)
        #: Where executor n calls: so it is known who acts.
        self.entrances = [f"http://{server.name}" for server in servers[:entrances]]
        self.acts: list[Act] = []
        #: Called once, with the number of the entrance, when the next act is done and not yet answered.
        self.on_act: Callable[[int, Act], None] | None = None
        self.lock = threading.Lock()

    def start(self) -> None:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()

    def stop(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def reply(self, path: str) -> tuple[int, Any]:
        """The answer to a GET."""
        cluster = self.cluster
        match path.removeprefix("/admin/v2/").strip("/").split("/"):
            case ["brokers", _]:
                return 200, list(cluster.brokers)
            case ["brokers", _, broker, "ownedNamespaces"]:
                owned = (bundle for bundle in cluster.bundle_loads() if cluster.owner(bundle) == broker)
                return 200, {bundle: {"is_active": True} for bundle in owned}
            case ["namespaces", tenant, name, "bundles"]:
                ends = cluster.boundaries(f"{tenant}/{name}")
                return 200, {"boundaries": [f"0x{end:08x}" for end in ends], "numBundles": len(ends) - 1}
            case ["lookup", "v2", "topic", domain, tenant, name, topic]:
                namespace = f"{tenant}/{name}"
                position = topic_hash(f"{domain}://{namespace}/{topic}")
                bundle = BundleName(namespace, *find_bundle(cluster.boundaries(namespace), position))
                return 200, {"httpUrl": f"http://{cluster.owner(str(bundle))}"}
            case _:
                return 404, {"reason": f"not played: {path}"}

    def act(self, path: str, query: dict[str, list[str]], entrance: int) -> tuple[int, Any]:
        """The answer to a PUT: the bundle has moved by then."""
        match path.removeprefix("/admin/v2/").split("/"):
            case ["namespaces", tenant, name, ends, "unload"]:
                bundle = f"{tenant}/{name}/{ends}"
            case _:
                return 404, {"reason": f"not played: {path}"}
        with self.lock:
            source = self.cluster.owner(bundle)
            if not source:
                return 412, {"reason": f"{bundle} is no bundle"}
            [destination] = query.get("destinationBroker", [""])
            command = unload(bundle, cluster=CLUSTER, source=source, destination=destination)
            self.cluster.apply(command, now_ms=0)
            done = Act(bundle, source, self.cluster.owner(bundle))
            self.acts.append(done)
            call, self.on_act = self.on_act, None
        if call is not None:
            call(entrance, done)
        return 204, None


@contextmanager
def played_pulsar(*, brokers: int, entrances: int, seed: int = 1, host: str = LOOPBACK) -> Iterator[PlayedPulsar]:
    pulsar = PlayedPulsar(brokers=brokers, entrances=entrances, seed=seed, host=host)
    pulsar.start()
    try:
        yield pulsar
    finally:
        pulsar.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pulsar: PlayedPulsar, number: int, host: str) -> None:
        super().__init__((host, 0), _Handler)
        self.pulsar, self.number = pulsar, number
        self.name = f"{host}:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Callers are killed here on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with self.server.pulsar.lock:
            answer = self.server.pulsar.reply(urlsplit(self.path).path)
        self._send(*answer)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self._send(*self.server.pulsar.act(url.path, parse_qs(url.query), self.server.number))

    def _send(self, status: int, content: Any) -> None:
        payload = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Not to the output."""
