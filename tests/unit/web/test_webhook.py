"""Requests to receivers that hang, trickle, redirect, fail or send without end."""

import base64
import hmac
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from controller.model.errors import SettingsError
from controller.settings.notifications import WebhookSettings
from controller.settings.redaction import redacted_log
from controller.web.notifications.webhook import NotAcceptedError, Webhook, WebhookLimits
from controller.wire.notifications import EventKind, notification
from tests.secured import CA, SERVER
from tests.webhook_receiver import WebhookReceiver, status, webhook_receiver

NOTIFIED = notification("ab" * 16, EventKind.TEST, 0, "east: a test", "text", {})
LIMITS = WebhookLimits(connect=0.5, answer=0.5)


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as each:
        yield each


def webhook(url: str, **changed: Any) -> Webhook:
    settings = WebhookSettings(name="oncall", **{"url": url} | changed)
    return Webhook(settings, "east", now=lambda: 1_000.9, limits=LIMITS)


def not_accepted(url: str, **changed: Any) -> str:
    with pytest.raises(NotAcceptedError) as error:
        webhook(url, **changed).send(NOTIFIED)
    return str(error.value)


def test_a_request_is_signed_and_says_what_it_is(receiver: WebhookReceiver, tmp_path: Path) -> None:
    key = b"k" * 32
    (tmp_path / "key").write_text(f"whsec_{base64.b64encode(key).decode()}", encoding="utf-8")
    webhook(receiver.url, secret_file=str(tmp_path / "key")).send(NOTIFIED)
    [request] = receiver.requests
    signed = b".".join([NOTIFIED.id.encode(), b"1000", request.body])
    assert request.headers["webhook-signature"] == (
        f"v1,{base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()}"
    )
    assert request.headers["content-type"] == "application/cloudevents+json; charset=UTF-8"
    assert (request.path, request.json["data"]["title"]) == ("/hook", "east: a test")


@pytest.mark.parametrize("code", [200, 201, 202, 204])
def test_two_hundred_and_something_is_accepted(receiver: WebhookReceiver, code: int) -> None:
    receiver.answer = status(code, **{"Content-Length": "0"})
    webhook(receiver.url).send(NOTIFIED)


@pytest.mark.parametrize("code", [400, 401, 404, 410, 429, 500, 503])
def test_everything_else_is_not_accepted_and_named(receiver: WebhookReceiver, code: int) -> None:
    receiver.answer = status(code)
    assert not_accepted(receiver.url) == f"it answered {code}"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_an_inner_address_is_not_followed(receiver: WebhookReceiver, code: int) -> None:
    with webhook_receiver() as inner:
        receiver.answer = status(code, Location=inner.url)
        assert "redirects are not followed" in not_accepted(receiver.url)
        assert inner.requests == []


def timely(call: Callable[[], Any]) -> Any:
    began = time.monotonic()
    try:
        return call()
    finally:
        assert time.monotonic() - began < 5.0


def test_a_receiver_that_hangs_is_left(receiver: WebhookReceiver) -> None:
    receiver.answer = receiver.hang
    assert "no answer" in timely(lambda: not_accepted(receiver.url))


def test_a_receiver_that_trickles_its_head_is_left(receiver: WebhookReceiver) -> None:
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        while not receiver.ended.wait(0.1):
            handler.wfile.write(b"H")
            handler.wfile.flush()

    receiver.answer = trickle
    assert "no answer" in timely(lambda: not_accepted(receiver.url))


def test_a_receiver_that_sends_headers_without_end_is_left(receiver: WebhookReceiver) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not receiver.ended.is_set():
            handler.wfile.write(b"x: " + b"y" * 60_000 + b"\r\n")

    receiver.answer = flood
    assert "no answer" in timely(lambda: not_accepted(receiver.url))


def test_a_body_without_end_is_not_read(receiver: WebhookReceiver) -> None:
    sent = 0

    def pour(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        status(200)(handler)
        while not receiver.ended.is_set():
            sent += handler.wfile.write(b"x" * 65_536)

    receiver.answer = pour
    timely(lambda: webhook(receiver.url).send(NOTIFIED))
    assert sent < 64 << 20


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 999999 x\r\n\r\n", b"\x00" * 100_000])
def test_what_is_no_http_is_not_accepted(receiver: WebhookReceiver, answer: bytes) -> None:
    def garbled(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(answer)

    receiver.answer = garbled
    assert "no answer" in timely(lambda: not_accepted(receiver.url))


def test_a_receiver_that_does_not_listen_or_takes_no_connections_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        timely(lambda: not_accepted(f"http://127.0.0.1:{port}/x"))
    assert "nothing listens" in not_accepted(f"http://127.0.0.1:{port}/x")


def test_a_name_that_leads_to_a_private_address_gets_nothing(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **more: look_up("127.0.0.1", *rest, **more))
    url = receiver.url.replace("127.0.0.1", "hooks.example.org")
    assert "leads to the private address 127.0.0.1" in not_accepted(url, plain_http=True)
    assert receiver.requests == []
    webhook(url, plain_http=True, private_network=True).send(NOTIFIED)
    assert len(receiver.requests) == 1


def test_a_url_in_a_file_is_read_anew_and_never_shown(receiver: WebhookReceiver, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{receiver.url}/T0SECRET0/B0\n", encoding="utf-8")
    each = webhook("", url_file=str(file))
    each.send(NOTIFIED)
    file.write_text(f"{receiver.url}/another", encoding="utf-8")
    each.send(NOTIFIED)
    assert [request.path for request in receiver.requests] == ["/hook/T0SECRET0/B0", "/hook/another"]
    assert "T0SECRET0" not in redacted_log(f"GET {receiver.url}/T0SECRET0/B0")
    file.write_text("http://inner.example.org/x", encoding="utf-8")
    with pytest.raises(NotAcceptedError, match="begins with http"):
        each.send(NOTIFIED)


def test_files_that_cannot_be_used_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="webhooks oncall url_file"):
        webhook("", url_file=str(tmp_path / "none"))
    with pytest.raises(SettingsError, match="webhooks oncall secret_file"):
        webhook("https://hooks.example.org", secret_file=str(tmp_path / "none"))


def test_a_receiver_without_tls_at_an_https_address_gets_nothing() -> None:
    heard = list[bytes]()

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        heard.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=[server], daemon=True).start()
        assert "no answer" in timely(lambda: not_accepted(f"https://127.0.0.1:{server.getsockname()[1]}/x"))
    assert b"test" not in heard[0]


def test_only_receivers_whose_authority_is_trusted_are_sent_to(receiver: WebhookReceiver) -> None:
    with tls_receiver() as (url, requests):
        assert "no answer" in not_accepted(url)
        assert requests == []
        webhook(url, trust_certs=str(CA)).send(NOTIFIED)
        assert len(requests) == 1


@contextmanager
def tls_receiver() -> Iterator[tuple[str, list[str]]]:
    requests = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)
            status(204)(self)

        def log_message(self, *arguments: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SERVER.certificate, SERVER.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}/x", requests
        server.shutdown()
