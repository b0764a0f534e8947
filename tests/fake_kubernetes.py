"""A small API server that knows Leases, as far as trimtab asks: versions, conflicts, dry runs, and who may do what."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controller.adapters.kubernetes.api import LeaseApi, LeasePlace

NAMESPACE = "pulsar"


class FakeKubernetes(ThreadingHTTPServer):
    """Its Leases, by name; ``fails`` says with which status a request is refused, 0: it is not."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.leases: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.changing = threading.Lock()
        #: The Authorization header that callers have to show.
        self.demands: str | None = None
        #: Method -> status.
        self.fails: Callable[[str], int] = lambda _: 0
        #: Called with the method of each request before it is looked at.
        self.before: Callable[[str], object] = lambda _: None
        self.requests: list[tuple[str, str]] = []

    def store(self, name: str, lease: dict[str, Any]) -> dict[str, Any]:
        """What `kubectl` does: replace the Lease whatever its version."""
        self.version += 1
        metadata = {**lease["metadata"], "name": name, "namespace": NAMESPACE, "resourceVersion": str(self.version)}
        metadata.setdefault("uid", f"uid-{self.version}")
        self.leases[name] = {**lease, "metadata": metadata}
        return self.leases[name]

    def edit(self, name: str = "trimtab", *, annotations: Any = None, **spec: Any) -> None:
        """Change some of the Lease, as `kubectl edit` does."""
        with self.changing:
            lease = self.leases[name]
            metadata = lease["metadata"] if annotations is None else {**lease["metadata"], "annotations": annotations}
            self.store(name, {**lease, "metadata": metadata, "spec": {**lease["spec"], **spec}})

    def api(self, token_file: Path | None = None, *, answer_seconds: float = 5.0) -> LeaseApi:
        place = LeasePlace(
            server=self.url,
            namespace=NAMESPACE,
            name="trimtab",
            token_file=str(token_file or ""),
            trust_certs="",
        )
        return LeaseApi(place, answer_seconds=answer_seconds)

    def answer(self, method: str, path: str, query: str, body: Any) -> tuple[int, Any]:
        *_, kind, name = f"{path}/".rstrip("/").split("/") if method != "POST" else [*path.split("/"), ""]
        if kind != "leases":
            return 404, {"message": "not here"}
        if method == "GET":
            return (200, self.leases[name]) if name in self.leases else (404, {"message": f"{name} not found"})
        name, dry = body["metadata"]["name"], query == "dryRun=All"
        stored = self.leases.get(name)
        if method == "POST":
            if stored is not None:
                return 409, {"message": f"{name} already exists"}
            return 201, (body if dry else self.store(name, body))
        if stored is None:
            return 404, {"message": f"{name} not found"}
        if any(body["metadata"].get(key) != stored["metadata"][key] for key in ("resourceVersion", "uid")):
            return 409, {"message": "the object has been modified"}
        return 200, (body if dry else self.store(name, body))


class _Handler(BaseHTTPRequestHandler):
    server: FakeKubernetes
    wbufsize = 1 << 16

    def _answer(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        server.requests.append((self.command, self.path))
        server.before(self.command)
        with server.changing:
            status = server.fails(self.command)
            if server.demands is not None and self.headers.get("Authorization") != server.demands:
                status = 401
            answer: tuple[int, Any] = (status, {"message": "refused"})
            if not status:
                answer = server.answer(self.command, parts.path, parts.query, body)
        payload = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_PUT = do_POST = _answer  # noqa: N815 as the library names them

    def log_message(self, *_: object) -> None:
        """Not to the test's output."""


@contextmanager
def fake_kubernetes() -> Iterator[FakeKubernetes]:
    """One that answers until the block ends."""
    server = FakeKubernetes()
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
