"""Servers may quote a request in their answer: errors, and with them logs and results, repeat no credentials."""

import base64
import json
import logging
import socket
import threading
from collections.abc import Callable
from urllib.parse import quote

import pytest

from controller.adapters.pulsar.credentials import Credentials
from controller.adapters.pulsar.http import PulsarError, PulsarHttp
from controller.cli.shared.log_format import LogFormat, formatter
from tests.raw_answers import Serve, raw_server

TOKEN = "tok.4f9c2d7ae1b85306.Zm9vYmFyYmF6cXV4/xyz+end="


def _answering(answer: bytes) -> Serve:
    def serve(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(answer)

    return serve


def _answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def _error(answer: bytes, credentials: Credentials) -> str:
    with raw_server(_answering(answer)) as url:
        http = PulsarHttp([url], cluster="c", credentials=credentials, read_seconds=2.0)
        with pytest.raises(PulsarError) as failed:
            http.brokers()
        return str(failed.value)


ANSWERS: dict[str, Callable[[str], bytes]] = {
    "reason in JSON": lambda said: _answer("401 Unauthorized", json.dumps({"reason": f"bad: {said}"}).encode()),
    "JSON without a reason": lambda said: _answer("400 Bad", json.dumps({"headers": [said]}).encode()),
    "text": lambda said: _answer("500 Error", f"Authorization: {said}".encode()),
    "text that is cut in the secret": lambda said: _answer("500 Error", b"." * 280 + said.encode()),
    "reason phrase": lambda said: _answer(f"403 {said}"),
    "no JSON": lambda said: _answer("200 OK", f"<{said}>".encode()),
    "JSON that is no list of names": lambda said: _answer("200 OK", json.dumps({"asked": said}).encode()),
    "no name of a broker": lambda said: _answer("200 OK", json.dumps([f"{said}\n"]).encode()),
    "redirect": lambda said: _answer("307 Go", b"", f"Location: https://other:1/{quote(said, safe='')}"),
    "no HTTP": lambda said: f"HELLO {said}\r\n\r\n".encode(),
    "garbled header": lambda said: f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{said}\r\n".encode(),
}


@pytest.mark.parametrize("form", ANSWERS)
def test_an_error_shows_no_token(form: str) -> None:
    shown = _error(ANSWERS[form](f"Bearer {TOKEN}"), Credentials(token=TOKEN))
    assert not {part for part in ("4f9c2d7a", "Zm9vYmFy") if part in shown}


@pytest.mark.parametrize("form", ANSWERS)
def test_an_error_shows_no_basic_credentials(form: str) -> None:
    pair = base64.b64encode(b"admin:pw+1").decode()
    shown = _error(ANSWERS[form](f"Basic {pair} of admin:pw+1"), Credentials(user="admin", password="pw+1"))
    assert not {part for part in (pair, "pw+1", quote("pw+1")) if part in shown}


def test_an_answer_is_used_as_it_is_where_a_short_password_is_a_word_in_it() -> None:
    body = json.dumps(["pulsar:8080"]).encode()
    with raw_server(_answering(_answer("200 OK", body))) as url:
        http = PulsarHttp([url], cluster="c", credentials=Credentials(user="u", password="pulsar"))
        assert http.brokers() == ("pulsar:8080",)


@pytest.mark.parametrize("form", LogFormat)
def test_the_log_shows_no_token_that_reached_it_another_way(form: LogFormat) -> None:
    Credentials(token=TOKEN)
    record = logging.LogRecord("kazoo", logging.ERROR, "", 0, "got %r", (f"Bearer {TOKEN}",), None)
    assert "4f9c2d7a" not in formatter(form).format(record)
