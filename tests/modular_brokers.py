"""Brokers on loopback with Pulsar's modular load manager, as far as an unload to a destination needs them.

Its leader keeps a destination by the range alone, and forgets it at the first lookup of a bundle that nobody has.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.commands import BUNDLE, QUARTERS
from tests.recording_servers import answer

CLUSTER = "lab"
_RANGE = BUNDLE.rpartition("/")[2]


class _Broker(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster: "ModularPulsar") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cluster, self.name = cluster, f"127.0.0.1:{self.server_address[1]}"


@dataclass
class ModularPulsar:
    """The brokers, and who has BUNDLE."""

    brokers: list[str] = field(default_factory=list)
    #: Who leads, "" where nobody does.
    leader: str = ""
    owner: str = ""
    #: Whom the leader chooses for a bundle without a destination.
    best: str = ""
    #: Destinations that the leader keeps: range -> broker.
    wanted: dict[str, str] = field(default_factory=dict)
    #: Called when BUNDLE was unloaded, before that is answered.
    unloaded: Callable[[], object] = lambda: None
    #: So many more lookups at the destination are answered with the owner that it knew before the unload.
    stale: int = 0
    #: Lookups: at whom, and whether as if the leader had sent it.
    asked: list[tuple[str, bool]] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)
    before: str = ""

    def unload(self, destination: str) -> None:
        self.before, self.owner = self.owner, ""
        if destination:
            self.wanted[_RANGE] = destination
        self.unloaded()

    def lookup(self, broker: str, *, authoritative: bool) -> tuple[int, str]:
        """200 and the owner, or 307 and the broker that is to be asked next."""
        self.asked.append((broker, authoritative))
        if authoritative and self.stale:
            self.stale -= 1
            return 200, self.before
        if self.owner:
            return 200, self.owner
        if broker == self.leader and not authoritative:
            chosen = self.wanted.pop(_RANGE, self.best)
            if chosen != broker:
                return 307, chosen
        elif not authoritative:
            return 307, self.leader
        self.owner = broker
        return 200, broker

    def reply(self, method: str, broker: str, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        match path.removeprefix("/admin/v2/").strip("/").split("/"):
            case ["brokers", "leaderBroker"]:
                return (200, {"brokerId": self.leader}) if self.leader else (404, {"reason": "no leader"})
            case ["brokers", _]:
                return 200, self.brokers
            case ["brokers", _, asked, "ownedNamespaces"]:
                return 200, {BUNDLE: {"is_active": True}} if asked == self.owner else {}
            case ["namespaces", _, _, "bundles"]:
                return 200, {"boundaries": [f"0x{boundary:08x}" for boundary in QUARTERS]}
            case ["namespaces", _, _, _, "unload"] if method == "PUT":
                self.unload(*query.get("destinationBroker", [""]))
                return 204, None
            case ["lookup", *_]:
                status, found = self.lookup(broker, authoritative=query.get("authoritative") == ["true"])
                if status == 200:
                    return 200, {"httpUrl": f"http://{found}"}
                sent = "true" if broker == self.leader else "false"
                return 307, f"http://{found}{path}?authoritative={sent}"
            case _:
                return 404, {"reason": "not here"}


class _Handler(BaseHTTPRequestHandler):
    server: _Broker
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        cluster, url = self.server.cluster, urlsplit(self.path)
        with cluster.turn:
            status, content = cluster.reply(self.command, self.server.name, url.path, parse_qs(url.query))
        answer(self, status, content)

    do_PUT = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Not to the test's output."""


@contextmanager
def modular_brokers() -> Iterator[ModularPulsar]:
    """Three brokers; the first one leads, the second one has BUNDLE."""
    cluster = ModularPulsar()
    servers = [_Broker(cluster) for _ in range(3)]
    cluster.brokers = [server.name for server in servers]
    cluster.leader, cluster.owner, cluster.best = cluster.brokers[0], cluster.brokers[1], cluster.brokers[1]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=[0.005], daemon=True).start()
    try:
        yield cluster
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
