"""A receiver of webhooks for tests, which behaves as badly as it is told to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from controller.adapters.network.deadline import Deadline


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it came; header names are in small letters."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class WebhookReceiver:
    """A running receiver.  *answer* answers a request, 204 unless it is replaced."""

    url: str = ""
    requests: list[ReceivedRequest] = field(default_factory=list)
    answer: Callable[[BaseHTTPRequestHandler], None] = field(default=lambda handler: status(204)(handler))
    #: Requests that hang until the end of the test.
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.requests]

    def hang(self, _: BaseHTTPRequestHandler) -> None:
        """Answers nothing until the end."""
        self.ended.wait(60)

    def wait(self, count: int, seconds: float = 30.0) -> list[ReceivedRequest]:
        """At least *count* requests."""
        deadline = Deadline.after(seconds)
        while len(self.requests) < count:
            assert not deadline.passed, f"{len(self.requests)} requests came instead of {count}"
            time.sleep(0.02)
        return self.requests


def status(code: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answers *code* with *headers*."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    return answer


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(ReceivedRequest(self.path, headers, body))
            try:
                receiver.answer(self)
            except OSError:
                self.close_connection = True

        def do_GET(self) -> None:
            receiver.requests.append(ReceivedRequest(self.path, {}, b""))
            status(200)(self)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield receiver
        receiver.ended.set()
        server.shutdown()
