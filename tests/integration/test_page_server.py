"""``trimtab serve`` as a process: real HTTP and TLS, slow and many clients, and its end."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from tests.folder_settings import write_settings
from tests.secured import CA, TLS

pytestmark = pytest.mark.integration

#: Streams that one client may have in these tests, and many more that try.
STREAMS = 40
TRIES = 1_000


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def _serving(folder: Path, *web: str, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    lines = ("[web]", f'listen = "127.0.0.1:{port}"', "requests_per_second = 10000.0", *web)
    conf = write_settings(folder, *lines)
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)], stdout=log, stderr=log
        )
    try:
        ends = time.monotonic() + 60
        while b"the page is at" not in (folder / "log.txt").read_bytes():
            assert process.poll() is None, (folder / "log.txt").read_text()
            assert time.monotonic() < ends
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A server that anybody on this machine may look at: its port, and its folder."""
    folder, port = tmp_path_factory.mktemp("page"), _free_port()
    web = ('anonymous = "operator"', f"streams_per_client = {STREAMS}", "connections = 1200")
    with _serving(folder, *web, port=port):
        yield port, folder


def _get(port: int, path: str, headers: dict[str, str] | None = None, method: str = "GET", body: Any = None) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _sent(port: int, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(data)
    return connection


def test_it_answers_pages_and_rest(page: tuple[int, Path]) -> None:
    port, _ = page
    status, headers, body = _get(port, "/")
    assert status == 200
    assert b"demo" in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert json.loads(_get(port, "/api/v1/clusters")[2])["clusters"][0]["cluster"] == "demo"


def test_long_work_is_accepted_and_its_answer_is_that_of_the_command(page: tuple[int, Path]) -> None:
    port, _ = page
    ends = time.monotonic() + 60
    while (answer := _get(port, "/api/v1/doctor"))[0] == 202:
        assert time.monotonic() < ends
        assert answer[1]["location"].startswith("/api/v1/jobs/")
        time.sleep(0.5)
    assert answer[0] == 200
    assert "findings" in json.loads(answer[2])
    order = json.dumps({"since": 0, "until": 60_000}).encode()
    status, headers, _ = _get(port, "/api/v1/whatif", {"Content-Type": "application/json"}, "POST", order)
    assert status == 202
    while json.loads(_get(port, headers["location"])[2])["state"] in ("waiting", "running"):
        assert time.monotonic() < ends
        time.sleep(0.5)
    job = json.loads(_get(port, headers["location"])[2])
    assert job["state"] == "failed"  # there is no log yet
    assert job["problem"]


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/static/../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/app.py",
        "//etc/passwd",
        "/static/x/%00",
    ],
)
def test_no_path_leads_out_of_what_is_served(page: tuple[int, Path], path: str) -> None:
    status, _, body = _get(page[0], path)
    assert status == 404
    assert b"root:" not in body
    assert b"import" not in body


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/v1/clusters HTTP/1.1\r\n\r\n",
        b"GET /api/v1/clusters HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\x00\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"\x16\x03\x01 hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
    ],
)
def test_what_is_ambiguous_or_no_http_is_refused(page: tuple[int, Path], head: bytes) -> None:
    with _sent(page[0], head) as connection:
        assert connection.recv(100).split(b" ")[1] in (b"400", b"413", b"421", b"431")


def test_clients_that_say_nothing_or_do_not_read_are_ended_and_keep_nobody_out(page: tuple[int, Path]) -> None:
    port, _ = page
    with ExitStack() as opened:
        slow = opened.enter_context(_sent(port, b"GET / HTTP/1.1\r\nHost: local"))
        silent = [opened.enter_context(_sent(port, b"")) for _ in range(1_300)]  # more than connections
        assert _get(port, "/api/v1/clusters")[0] == 200
        slow.settimeout(20)
        began = time.monotonic()
        for each in (slow, silent[-1]):
            with suppress(ConnectionResetError):
                assert each.recv(1) == b""
        assert time.monotonic() - began < 15


def test_a_connection_lasts_as_long_as_requests_come_on_it(page: tuple[int, Path]) -> None:
    connection = HTTPConnection("127.0.0.1", page[0], timeout=30)
    with closing(connection):
        for _ in range(28):  # longer than a connection may be idle
            connection.request("GET", "/api/v1/clusters")
            assert connection.getresponse().read()
            assert connection.sock is not None, "the server has closed it"
            time.sleep(0.5)


def test_of_a_thousand_streams_only_the_allowed_ones_stay_open(page: tuple[int, Path]) -> None:
    port, _ = page
    request = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as opened:
        streams = [opened.enter_context(_sent(port, request)) for _ in range(TRIES)]
        statuses = [each.recv(100).split(b" ")[1] for each in streams]
        assert statuses.count(b"200") == STREAMS
        assert statuses.count(b"429") == TRIES - STREAMS
        assert _get(port, "/api/v1/clusters")[0] == 200
    ends = time.monotonic() + 40  # their places are free again
    while True:
        with _sent(port, request) as again:
            if again.recv(100).split(b" ")[1] == b"200":
                return
        assert time.monotonic() < ends
        time.sleep(0.2)


def test_tls_and_client_certificates(tmp_path: Path) -> None:
    port = _free_port()
    web = (
        "[web.tls]",
        f'certificate = "{TLS / "broker.pem"}"',
        f'key = "{TLS / "broker.key"}"',
        f'client_authorities = "{CA}"',
        'users = {client = "operator"}',
    )
    trusting = ssl.create_default_context(cafile=CA)
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with_certificate = ssl.create_default_context(cafile=CA)
    with_certificate.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with_certificate.load_cert_chain(TLS / "client.pem", TLS / "client.key")
    with _serving(tmp_path, *web, port=port):
        statuses = []
        for context in (trusting, with_certificate):
            connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
            connection.request("GET", "/api/v1/clusters", headers={"X-Client-Certificate-Name": "trimtab"})
            statuses.append(connection.getresponse().status)
            connection.close()
        assert statuses == [401, 200]
        with pytest.raises(OSError):  # noqa: PT011
            _get(port, "/")


def test_it_ends_in_order_also_with_streams_open(tmp_path: Path) -> None:
    port = _free_port()
    with (
        _serving(tmp_path, 'anonymous = "viewer"', port=port) as process,
        _sent(port, b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n") as stream,
    ):
        assert b"200" in stream.recv(100)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(5) == 0


@pytest.mark.parametrize(
    ("web", "why"),
    [
        ((), "nobody may look"),
        (('anonymous = "viewer"', 'tokens_file = "nowhere.toml"'), "nowhere.toml"),
        (('anonymous = "viewer"', 'store_path = "trimtab.toml"'), "web.store_path"),
        (('anonymous = "viewer"', "[web.tls]", 'certificate = "x.pem"', 'key = "x.key"'), "web.tls.certificate"),
    ],
)
def test_it_does_not_start_with_settings_that_cannot_be(tmp_path: Path, web: tuple[str, ...], why: str) -> None:
    conf = write_settings(tmp_path, "[web]", f'listen = "127.0.0.1:{_free_port()}"', *web)
    command = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    assert why.encode() in ended.stderr


@pytest.mark.parametrize("listen", ["0.0.0.0:9680", "[::]:9680", "trimtab.example.org:9680"])
def test_an_address_that_others_reach_needs_tls_also_where_an_option_names_it(tmp_path: Path, listen: str) -> None:
    conf = write_settings(tmp_path, "[web]", 'anonymous = "viewer"', 'tokens_file = "tokens.toml"')
    command = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf), "--listen", listen]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    assert b"[web.tls]" in ended.stderr
    assert b"please report it" not in ended.stderr


def test_what_a_killed_server_remembered_is_deleted_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    for _ in range(2):
        with _serving(tmp_path, 'anonymous = "viewer"', port=_free_port()):
            assert len([*(tmp_path / "temporary").glob("trimtab-page-*")]) == 1
