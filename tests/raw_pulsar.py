"""Speaks Pulsar's protocol, so far that messages can be written which no client library would write.

Pulsar: PulsarApi.proto, Commands
"""

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_SECONDS = 30.0
_CONNECT, _PRODUCER, _SEND = 2, 5, 6
_SEND_RECEIPT, _SEND_ERROR, _ERROR, _PRODUCER_SUCCESS, _PING, _PONG = 7, 8, 14, 17, 18, 19

#: The value of a field: a number, bytes, or several fields in bytes.
Field = tuple[int, int | bytes | str]


def fields(*given: Field) -> bytes:
    """*given*, (number, value) each, as Protocol Buffers writes them."""
    told = b""
    for number, value in given:
        if isinstance(value, int):
            told += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            told += _varint(number << 3 | 2) + _varint(len(data)) + data
    return told


def _varint(value: int) -> bytes:
    told = b""
    while value > 0x7F:
        told += bytes([value & 0x7F | 0x80])
        value >>= 7
    return told + bytes([value])


class RawProducer:
    """A producer of the topic *full*, at the broker that has it."""

    def __init__(self, admin_url: str, full: str) -> None:
        with urllib.request.urlopen(f"{admin_url}/lookup/v2/topic/{full.replace('://', '/')}", timeout=_SECONDS) as got:
            place = urlsplit(json.load(got)["brokerUrl"])
        self._sent = 0
        self._socket = socket.create_connection((place.hostname or "", place.port or 0), timeout=_SECONDS)
        self._command(_CONNECT, fields((1, "raw"), (4, 15)))
        self._answer()
        self._command(_PRODUCER, fields((1, full), (2, 1), (3, 1)))
        kind, told = self._answer()
        assert kind == _PRODUCER_SUCCESS, told

    def send(self, payload: bytes, *metadata: Field, time_ms: int = 1_700_000_000_000, messages: int = 1) -> bool:
        """Whether the broker has stored a message of *payload* with these fields of MessageMetadata."""
        self._sent += 1
        told = fields((1, "raw"), (2, self._sent), (3, time_ms), *metadata)
        command = fields((1, _SEND), (_SEND, fields((1, 1), (2, self._sent), (3, messages))))
        rest = len(told).to_bytes(4, "big") + told + payload
        self._frame(len(command).to_bytes(4, "big") + command + rest)
        return self._answer()[0] == _SEND_RECEIPT

    def close(self) -> None:
        self._socket.close()

    def _command(self, kind: int, value: bytes) -> None:
        command = fields((1, kind), (kind, value))
        self._frame(len(command).to_bytes(4, "big") + command)

    def _frame(self, content: bytes) -> None:
        self._socket.sendall(len(content).to_bytes(4, "big") + content)

    def _answer(self) -> tuple[int, bytes]:
        """Kind and content of the next command, pings answered."""
        while True:
            content = self._exactly(int.from_bytes(self._exactly(4), "big"))
            kind = content[5]  # after its size and the field's tag
            if kind != _PING:
                return kind, content
            self._command(_PONG, b"")

    def _exactly(self, size: int) -> bytes:
        told = b""
        while len(told) < size:
            piece = self._socket.recv(size - len(told))
            assert piece, "the broker has closed the connection"
            told += piece
        return told


@contextmanager
def raw_producer(admin_url: str, full: str) -> Iterator[RawProducer]:
    made = RawProducer(admin_url, full)
    try:
        yield made
    finally:
        made.close()
