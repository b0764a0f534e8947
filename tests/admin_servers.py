"""Small HTTP servers that play brokers to the admin client, and fail when told to."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.doctor import OFF, report

VERSION, RUNTIME, REPORT = (
    "/admin/v2/brokers/version",
    "/admin/v2/brokers/configuration/runtime",
    "/admin/v2/broker-stats/load-report",
)
BROKERS, DYNAMIC = "/admin/v2/brokers", "/admin/v2/brokers/configuration/values"


class AdminServer(ThreadingHTTPServer):
    """A healthy broker of cluster demo; ``answers`` is to be spoilt."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = f"127.0.0.1:{self.server_address[1]}"
        #: Path -> status, and JSON or text.
        self.answers: dict[str, tuple[int, Any]] = {
            VERSION: (200, "4.0.8"),
            RUNTIME: (200, dict(OFF)),
            DYNAMIC: (200, {}),
            REPORT: (200, {**report(), "lastUpdate": time.time_ns() // 1_000_000}),
            "/admin/v2/clusters": (200, ["demo"]),
            "/admin/v2/tenants": (200, ["public", "pulsar"]),
        }
        #: Paths that get no answer while the server lives.
        self.hangs: set[str] = set()
        self.ended = threading.Event()
        self.date_offset_seconds = 0.0

    def refuse(self, status: int) -> None:
        """Every path from now on."""
        self.answers = dict.fromkeys(self.answers, (status, {"reason": "you may not"}))


class _Handler(BaseHTTPRequestHandler):
    server: AdminServer
    wbufsize = 1 << 16  # an answer leaves in one piece

    def do_GET(self) -> None:
        if self.path in self.server.hangs:
            self.server.ended.wait()
            return
        status, content = self.server.answers.get(self.path, (404, {"reason": "not here"}))
        payload = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def date_time_string(self, timestamp: float | None = None) -> str:
        now = time.time() if timestamp is None else timestamp
        return formatdate(now + self.server.date_offset_seconds, usegmt=True)

    def log_message(self, *_: object) -> None:
        """Not to the test's output."""


@contextmanager
def admin_servers(number: int) -> Iterator[list[AdminServer]]:
    """So many, each of which lists all of them."""
    servers = [AdminServer() for _ in range(number)]
    for server in servers:
        server.answers[BROKERS] = (200, [each.name for each in servers])
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield servers
    finally:
        for server in servers:
            server.ended.set()
            server.shutdown()
            server.server_close()
