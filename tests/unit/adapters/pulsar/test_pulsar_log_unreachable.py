"""Why the Pulsar that holds the log cannot be reached, in words."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controller.adapters.outages import Outage, Part, servers
from controller.adapters.pulsar.log.unreachable import why_unreachable
from controller.lab.servers import free_port
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings

#: A CommandConnected, as a broker sends it: its length, the command's, and the beginning of the command.
_CONNECTED = b"\x00\x00\x00\x13\x00\x00\x00\x0f\x08\x03\x1a"


def log(*ports: int) -> PulsarLogSettings:
    url = "pulsar://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    return PulsarLogSettings(service_url=url, admin_url=("http://127.0.0.1:1",))


@contextmanager
def server(*parts: bytes) -> Iterator[int]:
    """Answers every connection with *parts*, one after the other, and closes it."""
    waiting = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(100)
                        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        for part in parts:
                            connection.sendall(part)
                            waiting.wait(0.05)
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_CONNECTED, ""),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "it answers, but not as a Pulsar broker does: another server has this port",
        ),
        (b"\x00\x00", "it answers, but not as a Pulsar broker does: another server has this port"),
        (b"", "it closes every connection"),
    ],
)
def test_what_answers_there_is_told(answer: bytes, said: str) -> None:
    with server(answer) as port:
        assert why_unreachable(log(port)) == said


def test_an_answer_that_comes_in_two_parts_is_one() -> None:
    with server(_CONNECTED[:3], _CONNECTED[3:]) as port:
        assert why_unreachable(log(port)) == ""


def test_one_broker_that_answers_is_enough_and_of_several_that_do_not_each_is_named() -> None:
    silent, other = free_port(), free_port()
    with server(_CONNECTED) as port:
        assert why_unreachable(log(silent, port)) == ""
    said = why_unreachable(log(silent, other))
    assert f"127.0.0.1:{silent}: connection refused" in said
    assert f"127.0.0.1:{other}: connection refused" in said


def test_an_outage_names_the_setting_to_correct(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = log(free_port())
    settings = Settings.model_validate(
        {
            "cluster": {"name": "lab"},
            "log": {"kind": "pulsar", "pulsar": {"service_url": found.service_url, "admin_url": list(found.admin_url)}},
            "election": {"kind": "file", "path": "election"},
            "checkpoint": {"path": "checkpoint"},
        }
    )
    watched = servers(settings, [Part.LOG])[Part.LOG]
    assert str(Outage.of(watched, watched.why())) == (
        f"the log's Pulsar at {found.service_url} cannot be reached: connection refused, nothing listens there;"
        " start its brokers, or correct service_url in [log.pulsar]"
    )
