"""The HTTP server of the metrics, asked over loopback by clients that are honest, and by others that are not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.metrics.server import MetricsServer

#: A client here waits no longer for an answer.
_PATIENCE_SECONDS = 10.0


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def metrics() -> ControllerMetrics:
    return ControllerMetrics()


@pytest.fixture
def server(metrics: ControllerMetrics) -> Iterator[MetricsServer]:
    with MetricsServer("127.0.0.1", 0, metrics) as running:
        yield running


def connected(server: MetricsServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_SECONDS)


def said(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    heard = b""
    try:
        while part := connection.recv(65536):
            heard += part
    except ConnectionResetError:
        pass  # the server hung up with bytes of the request unread
    return heard


def sent(server: MetricsServer, request: bytes) -> bytes:
    with connected(server) as connection:
        connection.sendall(request)
        return said(connection)


def get(server: MetricsServer, path: str) -> tuple[int, str, str]:
    """Status, headers and body."""
    head, _, body = sent(server, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()).decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


def test_the_metrics_are_shown_in_prometheus_text_format(server: MetricsServer) -> None:
    status, head, body = get(server, "/metrics")
    assert status == 200
    assert "Content-Type: text/plain; version=0.0.4" in head
    assert f"Content-Length: {len(body.encode())}" in head
    assert "\ntrimtab_leader 0.0\n" in body


def test_a_query_behind_the_path_is_ignored(server: MetricsServer) -> None:
    assert get(server, "/metrics?name[]=x")[0] == 200


def test_a_process_is_ready_once_it_says_so_and_says_what_it_does(
    metrics: ControllerMetrics, server: MetricsServer
) -> None:
    assert get(server, "/readyz")[::2] == (503, "not ready: controller: it is starting\n")
    metrics.leads(epoch=7)
    assert get(server, "/readyz")[::2] == (200, "ready: controller leads: it reads the log, epoch 7\n")
    assert "\ntrimtab_ready 1.0\n" in get(server, "/metrics")[2]
    metrics.leads_no_more()
    assert get(server, "/readyz")[0] == 503
    assert "\ntrimtab_ready 0.0\n" in get(server, "/metrics")[2]


def test_a_process_whose_main_loop_does_not_come_round_is_not_healthy() -> None:
    clock = Clock()
    metrics = ControllerMetrics(clock)
    metrics.health.limit_standstill(600)
    stop = metrics.health.beating(lambda: False)
    with MetricsServer("127.0.0.1", 0, metrics) as server:
        clock.now = 599.0
        assert get(server, "/healthz")[::2] == (200, "alive\n")
        clock.now = 601.0
        status, _, body = get(server, "/healthz")
        assert status == 503
        assert "has not completed a round for 601 s, the limit is 600 s" in body
        assert not stop()
        assert get(server, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /../metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET /debug/pprof HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 405),
        (b"get /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x00\xff\x16\x03\x01 /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics \x00 HTTP/1.1\r\n\r\n", 400),
        (b"GET /m\xc3\xa9trics HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 8100 + b" HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 8192, 431),
    ],
)
def test_a_request_for_anything_else_is_refused(server: MetricsServer, request_: bytes, status: int) -> None:
    answer = sent(server, request_)
    assert int(answer.split()[1]) == status
    assert b"trimtab_" not in answer
    assert (b"Allow: GET" in answer) == (status == 405)


def test_a_request_that_never_ends_is_cut_off_and_the_next_one_answered(server: MetricsServer) -> None:
    with connected(server) as connection:
        try:
            for _ in range(200):
                connection.sendall(b"a" * 65536)
        except OSError:
            pass  # the server has hung up
        assert b"trimtab_" not in said(connection)
    assert get(server, "/healthz")[0] == 200


def test_a_request_that_is_broken_off_costs_nothing(server: MetricsServer) -> None:
    for part in (b"", b"GET", b"GET /metrics HTTP/1.1\r\n"):
        connected(server).close()
        with connected(server) as connection:
            connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            assert said(connection) == b""
    assert get(server, "/metrics")[0] == 200


@contextmanager
def silent_clients(server: MetricsServer) -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        yield [opened.enter_context(connected(server)) for _ in range(50)]


def test_clients_that_say_nothing_keep_nobody_from_an_answer(metrics: ControllerMetrics) -> None:
    # They may say nothing for longer than the one that asks waits.
    with MetricsServer("127.0.0.1", 0, metrics, seconds=3 * _PATIENCE_SECONDS) as server, silent_clients(server):
        assert get(server, "/metrics")[0] == 200


def test_clients_that_say_nothing_are_hung_up_on(metrics: ControllerMetrics) -> None:
    with MetricsServer("127.0.0.1", 0, metrics, seconds=0.2) as server, silent_clients(server) as silent:
        assert [said(connection) for connection in silent] == [b""] * len(silent)


def test_where_too_many_are_connected_the_oldest_gives_way(metrics: ControllerMetrics) -> None:
    with MetricsServer("127.0.0.1", 0, metrics, seconds=30) as server:
        oldest = connected(server)
        others = [connected(server) for _ in range(256)]
        try:
            assert get(server, "/healthz")[0] == 200
            assert said(oldest) == b""
        finally:
            for connection in (oldest, *others):
                connection.close()


def test_who_does_not_read_the_answer_keeps_nobody_from_one(metrics: ControllerMetrics) -> None:
    with MetricsServer("127.0.0.1", 0, metrics, seconds=30) as server:
        lazy = [connected(server) for _ in range(20)]
        for connection in lazy:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert get(server, "/healthz")[0] == 200
        for connection in lazy:
            connection.close()


def test_drops_of_a_request_do_not_lengthen_its_time(metrics: ControllerMetrics) -> None:
    ended = threading.Event()
    with MetricsServer("127.0.0.1", 0, metrics, seconds=0.2) as server, connected(server) as connection:

        def drip() -> None:
            while not ended.wait(0.02):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert said(connection) == b""
        ended.set()
        dripping.join()


def test_however_many_ask_the_server_has_one_thread(metrics: ControllerMetrics) -> None:
    # Threads of an earlier server may end meanwhile.
    others = set(threading.enumerate())
    with MetricsServer("127.0.0.1", 0, metrics, seconds=0.2) as server:
        asking = [connected(server) for _ in range(16)]
        assert len(set(threading.enumerate()) - others) == 1
        for connection in asking:
            connection.close()


def test_an_address_that_is_taken_is_refused(server: MetricsServer, metrics: ControllerMetrics) -> None:
    with pytest.raises(OSError, match="in use"):
        MetricsServer("127.0.0.1", server.port, metrics)


def test_the_address_is_free_again_after_the_end(metrics: ControllerMetrics) -> None:
    with MetricsServer("127.0.0.1", 0, metrics) as first:
        assert get(first, "/healthz")[0] == 200
    with MetricsServer("127.0.0.1", first.port, metrics) as second:
        assert get(second, "/healthz")[0] == 200


@pytest.mark.slow
def test_metrics_that_cannot_be_shown_are_an_error_of_the_server_without_its_trace(
    metrics: ControllerMetrics, server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> bytes:
        raise RuntimeError("secret")

    monkeypatch.setattr(metrics, "page", fails)
    status, _, body = get(server, "/metrics")
    assert status == 500
    assert "secret" not in body
