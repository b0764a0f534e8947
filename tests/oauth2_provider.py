"""An identity provider for tests: OAuth 2.0 client credentials over HTTP on this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

CLIENT = {"client_id": "trimtab", "client_secret": "a-secret-of-a-client"}


@dataclass
class Provider:
    """A running provider: what it answers may be replaced."""

    url: str = ""
    #: (status, body) of the token endpoint, for the form of a request.
    token: Callable[[dict[str, str]], tuple[int, Any]] = lambda _: (200, {"access_token": "t-1", "expires_in": 60})
    discovery: Any = None
    forms: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def oauth2_provider() -> Iterator[Provider]:
    """A provider that answers until the end of the block."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = provider.discovery or {"issuer": provider.url, "token_endpoint": f"{provider.url}/token"}
            self._answer(200, found) if self.path == "/.well-known/openid-configuration" else self._answer(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            provider.forms.append({key: values[0] for key, values in parse_qs(body).items()})
            self._answer(*provider.token(provider.forms[-1]))

        def _answer(self, status: int, body: Any) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
