"""Small HTTP servers that answer by path and remember every request, and who showed what to them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLUSTER = "lab"


class Broker(ThreadingHTTPServer):
    """Answers by path; remembers (method, path with query, Authorization, body) of every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.name = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"http://{self.name}"
        #: Path without query -> status, Location or JSON.
        self.answers: dict[str, tuple[int, Any]] = {}
        self.seen: list[tuple[str, str, str | None, bytes]] = []


def answer(request: BaseHTTPRequestHandler, status: int, content: Any) -> None:
    """Answer *request* with *content*: JSON, or where a 307 leads."""
    request.send_response(status)
    if status == 307:
        request.send_header("Location", content)
    payload = b"" if status in (204, 307) else json.dumps(content).encode()
    if status != 204:
        request.send_header("Content-Length", str(len(payload)))
    request.end_headers()
    request.wfile.write(payload)


class Handler(BaseHTTPRequestHandler):
    server: Broker
    wbufsize = 1 << 16  # an answer leaves in one piece

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, self.headers.get("Authorization"), body))
        status, content = self.server.answers.get(self.path.partition("?")[0], (404, {"reason": "not here"}))
        answer(self, status, content)

    do_PUT = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Not to the test's output."""


def list_brokers(*brokers: Broker, at: tuple[Broker, ...] = ()) -> None:
    """Each of *brokers*, or those *at*, lists all of them as the active ones."""
    for each in at or brokers:
        each.answers[f"/admin/v2/brokers/{CLUSTER}"] = (200, [broker.name for broker in brokers])


@contextmanager
def recording_brokers() -> Iterator[list[Broker]]:
    """Brokers that run until the end of the block, once they were added to the list by ``started``."""
    made: list[Broker] = []
    try:
        yield made
    finally:
        for each in made:
            each.shutdown()
            each.server_close()


def started(made: list[Broker]) -> Broker:
    """One more, which lists nobody."""
    made.append(Broker())
    threading.Thread(target=made[-1].serve_forever, args=[0.01], daemon=True).start()
    return made[-1]
