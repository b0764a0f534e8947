"""What cannot be reached is said in words, once, and once when it answers again."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from controller.adapters.election.systems import WatchedServer
from controller.adapters.kafka.unreachable import why_unreachable
from controller.adapters.network import unreachable
from controller.adapters.network.waiting import wait_for
from controller.adapters.outages import OutageWatch, Part
from controller.adapters.pulsar.http import PulsarHttp


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """host:port of a server that sends *answer* to whoever asks; b"" hangs up, None never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                if answer is not None and connection.recv(100):
                    connection.sendall(answer)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in kept:
            connection.close()


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("controller.adapters.network.unreachable", "controller.adapters.pulsar.http"):
        monkeypatch.setattr(f"{module}.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("controller.adapters.network.unreachable._LEAST_SECONDS", 0.1)
    monkeypatch.setattr("controller.adapters.outages._EVERY_SECONDS", 0.01)
    monkeypatch.setattr("controller.adapters.outages._AGAIN_SECONDS", 0.01)


def test_kafka_is_there_where_a_broker_answers_the_first_request_of_all_clients() -> None:
    with listening(struct.pack("!iih", 6, 1, 0)) as broker:
        assert why_unreachable(broker, {}) == ""
        assert why_unreachable(f"{nobody()},PLAINTEXT://{broker}", {}) == ""


def test_kafka_that_cannot_be_reached_is_told_in_words() -> None:
    gone = nobody()
    assert why_unreachable(gone, {}) == "connection refused, nothing listens there"
    assert why_unreachable(f"{gone},nowhere.invalid:9092", {}) == (
        f"{gone}: connection refused, nothing listens there; nowhere.invalid:9092: the name of the host is unknown"
    )
    with listening(None) as broker:
        assert why_unreachable(broker, {}) == unreachable.NO_ANSWER
    with listening(b"") as broker:
        assert why_unreachable(broker, {}) == "it closes every connection"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"no\n", struct.pack("!iih", 6, 7, 0)])
def test_a_server_at_kafkas_port_that_is_no_kafka_is_told(answer: bytes) -> None:
    with listening(answer) as broker:
        assert why_unreachable(broker, {}) == "it answers, but not as Kafka does: another server has this port"


def test_pulsar_is_there_whatever_it_answers_and_at_whichever_url() -> None:
    with listening(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n") as broker:
        api = PulsarHttp([f"http://{nobody()}", f"http://{broker}"], cluster="lab")
        assert api.why_unreachable() == ""


def test_pulsar_that_cannot_be_reached_is_told_in_words() -> None:
    assert PulsarHttp([f"http://{nobody()}"], cluster="lab").why_unreachable().startswith("connection refused")
    with listening(None) as broker:
        assert PulsarHttp([f"http://{broker}"], cluster="lab").why_unreachable() == unreachable.NO_ANSWER


class Watched:
    """A server that answers, or not, as the test says."""

    def __init__(self, why: str) -> None:
        self.why, self.looks, self.said = why, 0, list[str]()

    def look(self) -> str:
        self.looks += 1
        return self.why

    def watch(self) -> OutageWatch:
        server = WatchedServer("Kafka at k:1", "start Kafka", self.look, lambda: None)
        return OutageWatch({Part.LOG: server}, say=lambda _, text: self.said.append(text))

    def looked(self, times: int = 4) -> None:
        before = self.looks
        wait_for(lambda: self.looks >= before + times, 10, every=0.005)


def test_an_outage_is_said_once_and_so_is_its_end() -> None:
    server = Watched("")
    with server.watch() as watch:
        assert watch.wait_for([Part.LOG])
        server.looked()
        assert not server.said
        server.why = "connection refused"
        server.looked()
        assert watch.is_away(Part.LOG)
        assert server.said == ["Kafka at k:1 cannot be reached: connection refused; waiting for it: start Kafka"]
        server.why = ""
        server.looked()
        assert not watch.is_away(Part.LOG)
        assert server.said[1:] == ["Kafka at k:1 answers again, after 0 s"]


def test_a_look_that_fails_as_nobody_expects_is_an_outage_and_not_the_end_of_looking() -> None:
    server = Watched("")
    found = [UnicodeError("no such host"), UnicodeError("no such host")]

    def look() -> str:
        server.looks += 1
        if found:
            raise found.pop()
        return ""

    with OutageWatch(
        {Part.LOG: WatchedServer("Kafka at k:1", "start Kafka", look)}, say=lambda _, text: server.said.append(text)
    ) as watch:
        assert watch.wait_for([Part.LOG], every=0.005)
    assert server.said[0].startswith("Kafka at k:1 cannot be reached: UnicodeError: no such host; waiting for it")


def test_who_waits_for_a_server_goes_on_when_it_answers() -> None:
    server = Watched("connection refused")
    with server.watch() as watch:
        waited: list[bool] = []
        thread = threading.Thread(target=lambda: waited.append(watch.wait_for([Part.LOG], every=0.005)))
        thread.start()
        server.looked()
        assert not waited
        server.why = ""
        thread.join(10)
        assert waited == [True]
        assert server.said[1:] == ["Kafka at k:1 answers now, after 0 s"]


def test_who_waits_for_a_server_is_told_to_stop() -> None:
    server = Watched("connection refused")
    with server.watch() as watch:
        assert not watch.wait_for([Part.LOG], lambda: server.looks > 2, every=0.005)


def test_parts_that_are_no_servers_are_not_waited_for() -> None:
    with Watched("").watch() as watch:
        assert watch.wait_for([Part.LOG, Part.ELECTION])


def test_a_look_that_fails_at_once_is_made_again_before_anything_is_said() -> None:
    answers: Iterator[str] = iter(["", "connection refused"])
    server = Watched("")
    look: Callable[[], str] = lambda: next(answers, "")  # noqa: E731
    watched = WatchedServer("Kafka at k:1", "start Kafka", look, lambda: None)
    with OutageWatch({Part.LOG: watched}, say=lambda _, text: server.said.append(text)):
        time.sleep(0.1)
    assert not server.said
