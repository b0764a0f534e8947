"""A receiver of OTLP over HTTP on loopback, which keeps the spans that it gets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """What it got; *holds* makes it answer nobody, *refuses* makes it answer 503."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.spans: list[dict[str, Any]] = []
        self.paths: set[str] = set()
        self.services: set[str] = set()
        self.holds, self.refuses = threading.Event(), threading.Event()
        #: Set when it may answer again, and at the end.
        self.released = threading.Event()

    def take(self, path: str, body: bytes) -> None:
        """Keep what OTLP's ExportTraceServiceRequest holds."""
        self.paths.add(path)
        for resource in json.loads(body)["resourceSpans"]:
            about = {each["key"]: each["value"] for each in resource["resource"]["attributes"]}
            self.services.add(about["service.name"]["stringValue"])
            self.spans += [span for scope in resource["scopeSpans"] for span in scope["spans"]]


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """A receiver for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.holds.is_set():
                receiver.released.wait(30)
                return
            if not receiver.refuses.is_set():
                receiver.take(self.path, body)
            self.send_response(503 if receiver.refuses.is_set() else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(server.server_port)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
