"""What a broker answers is bounded in time, size and depth; the outcome is a value or a PulsarError."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from controller.adapters.network import pool
from controller.adapters.pulsar.admin import LargeAnswerError, PulsarAdmin, PulsarError
from tests.fake_pulsar import sample
from tests.raw_answers import Serve, dripping, raw_server

#: The server closes each connection, so it says so: a client that did not know might send its next request there.
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@contextmanager
def server(serve: Serve, read_seconds: float = 30.0) -> Iterator[PulsarAdmin]:
    """An admin URL behind which *serve* has each connection, until the event is set."""
    with raw_server(serve) as url:
        admin = PulsarAdmin([url], cluster="lab", read_seconds=read_seconds)
        try:
            yield admin
        finally:
            admin.close()


@pytest.mark.parametrize(
    ("first", "drops"),
    [
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (HEAD + b"\r\n", b" "),
        (HEAD, b"x"),
        (b"H", b"T"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
)
def test_an_answer_that_drips_is_over_when_its_time_is(first: bytes, drops: bytes) -> None:
    with server(dripping(first=first, drops=drops), 0.15) as admin:
        begun = time.monotonic()
        with pytest.raises(PulsarError, match="no answer"):
            admin.tenants()
        assert time.monotonic() - begun < 20


def replying(answer: bytes) -> Serve:
    return lambda connection, _: connection.sendall(answer)


def answer(body: bytes, *, head: bytes = HEAD, packed: bool = False) -> bytes:
    content = gzip.compress(body) if packed else body
    encoding = b"Content-Encoding: gzip\r\n" if packed else b""
    return head + encoding + b"Content-Length: %d\r\n\r\n" % len(content) + content


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_larger_than_allowed_is_an_error_packed_or_not(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(["a" * 2**20]).encode()
    with server(replying(answer(body, packed=packed))) as admin:
        assert len(admin.tenants()[0]) == 2**20
        monkeypatch.setattr(PulsarAdmin, "largest_answer", 2**19)
        with pytest.raises(PulsarError, match="larger than 524288 bytes"):
            admin.tenants()


@pytest.mark.parametrize("body", [b'["' + b"a" * 70_000 + b'"]', b"[" + b"1," * 5_000 + b"1]"])
def test_who_wants_less_is_told_that_an_answer_is_larger_and_others_get_it(body: bytes) -> None:
    with server(replying(answer(body))) as admin:
        little = admin.reading_at_most(65_536)
        for reading in (little, little.within(5.0), admin.reading_at_most(1 << 40).reading_at_most(65_536)):
            with pytest.raises(LargeAnswerError, match=r"larger than 65536 bytes|values, allowed: 4096"):
                reading.metrics("")
        assert admin.reading_at_most(1 << 40).most_values == admin.most_values
        assert admin.metrics("") == []


def test_of_an_error_only_the_beginning_is_read() -> None:
    endless = HEAD.replace(b"200 OK", b"500 Oh") + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 300_000
    with server(replying(endless)) as admin, pytest.raises(PulsarError, match="500 Oh: xxx") as raised:
        admin.tenants()
    assert raised.value.status == 500
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("status", [b"200 OK", b"500 Oh"])
def test_json_nested_too_deep_is_an_error(status: bytes) -> None:
    bomb = b"[" * 200_000
    with server(replying(answer(bomb, head=HEAD.replace(b"200 OK", status)))) as admin, pytest.raises(PulsarError):
        admin.tenants()


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.tenants(),
        lambda admin: admin.leader(),
        lambda admin: admin.load_report("b:80"),
        lambda admin: admin.topic_stats("b:80"),
    ],
)
def test_an_answer_of_more_values_than_any_broker_has_is_not_read(
    call: Callable[[PulsarAdmin], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed answer of a quarter of a megabyte may hold 80 million lists: 7 GB, and half a minute in one go."""
    admin = PulsarAdmin(["http://127.0.0.1:1"], cluster="lab")
    monkeypatch.setattr(PulsarAdmin, "most_values", 1000)
    for body in (
        b'{"a":[' + b"[]," * 600 + b"1]}",
        b'{"a":[' + b'{"b":1},' * 600 + b"1]}",
        b"[" + b"1," * 1200 + b"1]",
    ):
        monkeypatch.setattr(admin, "_call", lambda *_, body=body, **__: body)
        monkeypatch.setattr(admin, "_follow", lambda *_, body=body: body)
        with pytest.raises(PulsarError, match=r"1[0-9]{3} values, allowed: 1000"):
            call(admin)


def test_an_answer_of_as_many_values_as_allowed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = PulsarAdmin(["http://127.0.0.1:1"], cluster="lab")
    monkeypatch.setattr(PulsarAdmin, "most_values", 4)
    monkeypatch.setattr(admin, "_call", lambda *_, **__: b'{"a":{"b":[1,2]}}')
    assert admin.topic_stats("b:80") == {"a": {"b": [1, 2]}}


def test_what_may_be_read_has_room_for_what_brokers_answer() -> None:
    real = json.dumps(sample("topics_1.json"), separators=(",", ":")).encode()
    values = sum(map(real.count, (b",", b"[", b"{")))
    assert PulsarAdmin.most_values / values > PulsarAdmin.largest_answer / len(real)


CALLS: dict[str, Callable[[PulsarAdmin], object]] = {
    "brokers": lambda admin: admin.brokers(),
    "active_brokers": lambda admin: admin.active_brokers(),
    "leader": lambda admin: admin.leader(),
    "boundaries": lambda admin: admin.boundaries("a/b"),
    "policies": lambda admin: admin.policies("a/b"),
    "lookup": lambda admin: admin.lookup("a/b/0x00000000_0xffffffff"),
    "clusters": lambda admin: admin.clusters(),
    "tenants": lambda admin: admin.tenants(),
    "namespaces": lambda admin: admin.namespaces("a"),
    "anti_affinity_group": lambda admin: admin.anti_affinity_group("a/b"),
    "isolation_policies": lambda admin: admin.isolation_policies(),
    "failure_domains": lambda admin: admin.failure_domains(),
    "service_url": lambda admin: admin.service_url(),
    "dynamic_configuration": lambda admin: admin.dynamic_configuration(),
    "configuration": lambda admin: admin.configuration(),
}
BODIES: tuple[object, ...] = (
    None, True, 3, 1e400, "text", [], {}, [1], ["a"], [["a"]], {"a": 1}, {"brokerId": 3}, {"boundaries": 3},
    {"boundaries": [1, None]}, {"boundaries": ["0xzz"]}, {"boundaries": {"a": 1}}, {"httpUrl": 3}, {"httpUrl": "http://["},
    {"brokerServiceUrl": ["x"]}, {"p": {"namespaces": 3}}, {"p": None}, {"a": {"b": {"c": [{}]}}},
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_whatever_json_a_broker_answers_with_the_outcome_is_a_value_or_a_pulsar_error(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = PulsarAdmin(["http://127.0.0.1:1"], cluster="lab")
    for body in (*(json.dumps(each).encode() for each in BODIES), b"", b"\xff", b"{", b"[" * 9999):
        monkeypatch.setattr(admin, "_send", lambda *_, body=body: pool.HttpAnswer(200, "OK", {}, body))
        try:
            CALLS[call](admin)
        except PulsarError:
            continue
