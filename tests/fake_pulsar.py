"""A small Pulsar on loopback: brokers that answer the admin API as real ones did (tests/samples)."""

import gzip
import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "samples"
CLUSTER = "lab"
#: How often a broker that hangs looks whether it is to hang up.
_LOOK_SECONDS = 0.005
QUARTERS = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")


def sample(name: str) -> Any:
    return json.loads((SAMPLES / name).read_bytes())


class FakeBroker(ThreadingHTTPServer):
    """One broker; its load is that of a real one, its bundles lie in a namespace of its own."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cluster: "FakePulsar", number: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cluster = cluster
        #: Where it answers, and how it is called: by its port for http, also where that is closed.
        self.address = self.name = f"127.0.0.1:{self.server_address[1]}"
        self.namespace = f"lab/ns-{number}"
        self.extensible = False
        #: What it runs with.
        self.settings: Any = {
            "loadBalancerEnabled": "true",
            "loadBalancerSheddingEnabled": "false",
            "loadBalancerAutoBundleSplitEnabled": "false",
        }
        #: Set while it answers; a broker that hangs takes connections and says nothing.
        self.answers = threading.Event()
        self.answers.set()
        #: How often it has ended the connections of those who wait for an answer.
        self.hung_up = 0
        #: Paths with this in them are answered with an error.
        self.broken = "nothing"
        #: Paths with this in them are not answered while the cluster lives.
        self.silent = "nothing"
        #: Paths, in the order they were asked for.
        self.asked: list[str] = []

    def handle_error(self, *_: object) -> None:
        """A caller that went away is none of the test's business."""

    @cached_property
    def load_report(self) -> Any:
        report = sample("load_report_1.json")
        text = json.dumps(report).replace("lab/ns/", f"{self.namespace}/")
        return json.loads(text) | {"webServiceUrl": f"http://{self.name}"}

    @cached_property
    def topics(self) -> Any:
        text = json.dumps(sample("topics_1.json")["lab/ns"]).replace("lab/ns/", f"{self.namespace}/")
        return {self.namespace: json.loads(text)}

    def reply(self, path: str) -> tuple[int, Any]:
        cluster = self.cluster
        match path.removeprefix("/admin/v2/").split("/"):
            case ["broker-stats", "load-report"]:
                return (500, sample("extensible_load_report.json")) if self.extensible else (200, self.load_report)
            case ["broker-stats", "topics"]:
                return 200, self.topics
            case ["broker-stats", "metrics"]:
                return 200, sample("load_metrics.json")
            case ["brokers", "configuration", "runtime"]:
                return 200, self.settings
            case ["brokers", "leaderBroker"]:
                return 200, {"brokerId": cluster.brokers[0].name}
            case ["brokers", "version"]:
                return 200, "4.0.8"
            case ["brokers", "lab"]:
                return 200, [broker.name for broker in cluster.brokers if not cluster.lists_nobody]
            case ["brokers", "lab", name, "ownedNamespaces"]:
                owner = next(broker for broker in cluster.brokers if broker.name == name)
                if owner is not self:
                    return 307, f"{cluster.scheme}://{owner.address}{path}"
                return 200, {bundle: {"is_active": True} for bundle in self.load_report["lastStats"]}
            case ["tenants"]:
                return 200, ["lab"]
            case ["namespaces", "lab"]:
                return 200, [*(broker.namespace for broker in cluster.brokers), *cluster.more]
            case ["namespaces", "lab", _, "bundles"]:
                return 200, {"boundaries": cluster.boundaries, "numBundles": len(cluster.boundaries) - 1}
            case ["namespaces", "lab", _, "antiAffinity"]:
                return 200, "apart"
            case ["clusters", "lab", "namespaceIsolationPolicies"]:
                return (200, cluster.policies) if cluster.policies else (404, {"reason": "no policies"})
            case ["clusters", "lab", "failureDomains"]:
                return 200, {"rack-1": {"brokers": [cluster.brokers[0].name]}}
            case _:
                return 404, {"reason": "not here"}


@dataclass
class FakePulsar:
    """The brokers, and what they demand of callers."""

    brokers: list[FakeBroker] = field(default_factory=list)
    boundaries: Sequence[str] = QUARTERS
    policies: dict[str, Any] = field(default_factory=dict)
    #: The Authorization header that callers have to show.
    demands: str | None = None
    scheme: str = "http"
    ended: threading.Event = field(default_factory=threading.Event)
    #: Namespaces besides the brokers' own, without bundles that anybody serves.
    more: list[str] = field(default_factory=list)
    #: No broker is listed as active, though they answer.
    lists_nobody: bool = False

    @property
    def names(self) -> list[str]:
        return sorted(broker.name for broker in self.brokers)

    @property
    def urls(self) -> list[str]:
        return [f"{self.scheme}://{broker.address}" for broker in self.brokers]


@contextmanager
def fake_pulsar(brokers: int, tls: ssl.SSLContext | None = None) -> Iterator[FakePulsar]:
    cluster = FakePulsar(scheme="https" if tls is not None else "http")
    cluster.brokers += [FakeBroker(cluster, number) for number in range(brokers)]
    for broker in cluster.brokers:
        if tls is not None:
            # The handshake in the thread of the connection: a caller that is refused must not end the server.
            broker.socket = tls.wrap_socket(broker.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=broker.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield cluster
    finally:
        cluster.ended.set()
        for broker in cluster.brokers:
            broker.answers.set()
            broker.shutdown()
            broker.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: FakeBroker
    raw_requestline: bytes
    protocol_version = "HTTP/1.1"
    #: An answer leaves in one piece: the second one of two waits until the first is acknowledged, 40 ms.
    wbufsize = 1 << 16

    def parse_request(self) -> bool:
        """As the base class; its parser, which is made for mail, takes half the time of an answer."""
        self.requestline = self.raw_requestline.decode("iso-8859-1")
        self.command, self.path, self.request_version = self.requestline.split()
        headers: dict[str, str] = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("iso-8859-1").partition(":")
            headers[name.title()] = value.strip()
        self.headers = headers  # type: ignore[assignment]
        self.close_connection = headers.get("Connection", "").lower() == "close"
        return True

    def do_GET(self) -> None:
        broker = self.server
        broker.asked.append(self.path)
        before = broker.hung_up
        while not broker.answers.wait(_LOOK_SECONDS):
            if broker.hung_up > before:
                self.close_connection = True
                return
        if broker.cluster.demands not in (None, self.headers.get("Authorization")):
            status, content = 401, {"reason": "Authentication required"}
        elif broker.silent in self.path:
            broker.cluster.ended.wait(60)
            return
        elif broker.broken in self.path:
            status, content = 503, {"reason": "out of order"}
        else:
            status, content = broker.reply(self.path)
        payload = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        if status == 307:
            self.send_header("Location", str(content))
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            payload = gzip.compress(payload, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Not to the test's output."""
