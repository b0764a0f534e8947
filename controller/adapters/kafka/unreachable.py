"""Whether Kafka answers: asked by the first request of every client, which needs no credential and leaves no trace.

librdkafka says "transport failure" for everything, after many seconds.
"""

import socket
import ssl
import struct
from typing import Final

from controller.adapters import tls, unreachable
from controller.adapters.kafka.client import Client
from controller.adapters.kafka.words import tls_context, tls_problem, wants_tls
from controller.adapters.unreachable import LOOK_SECONDS, NO_ANSWER
from controller.model.errors import TrimtabError

_NUMBER: Final = 1
#: ApiVersions, version 0: length, key, version, correlation id, and no client id.
_ASK: Final = struct.pack("!ihhih", 10, 18, 0, _NUMBER, -1)
#: How every answer begins: its length, and the correlation id of the request.
_ANSWER: Final = struct.Struct("!ii")
_NOT_KAFKA: Final = "it answers, but not as Kafka does: another server has this port"
_LEAST_SECONDS: Final = 0.5


def why_unreachable(bootstrap: str, client: Client) -> str:
    """Why no broker of *bootstrap* answers, "" where one does.  A broker that refuses us answers, too."""
    brokers = [each.strip().rpartition("://")[2] for each in bootstrap.split(",")]
    seconds = max(_LEAST_SECONDS, LOOK_SECONDS / len(brokers))
    found = {}
    for broker in brokers:
        found[broker] = _why(broker, bootstrap, client, seconds)
        if not found[broker]:
            return ""
    if len(found) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{broker}: {why}" for broker, why in found.items())


def _why(broker: str, bootstrap: str, client: Client, seconds: float) -> str:
    host, _, port = broker.rpartition(":")
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)
    except OSError as error:
        return unreachable.words(error)
    try:
        if wants_tls(client):
            connection = tls_context(client).wrap_socket(connection, server_hostname=host.strip("[]"))
        connection.sendall(_ASK)
        answer = _begin(connection)
    except TimeoutError:
        return NO_ANSWER
    except TrimtabError:
        return ""  # a certificate's file: whoever connects says so
    except ssl.SSLError as error:
        # Somebody answers, who refuses us or speaks no TLS: whoever connects says so.
        return "" if tls.is_refusal(error) else "it breaks off the TLS handshake: does it speak TLS at this port?"
    except OSError as error:
        return unreachable.words(error)
    finally:
        connection.close()
    if len(answer) == _ANSWER.size and _ANSWER.unpack(answer)[1] == _NUMBER:
        return ""
    if tls_problem(bootstrap, client):
        return ""  # somebody answers, who speaks TLS, or refuses us: whoever connects says so
    return _NOT_KAFKA if answer else "it closes every connection"


def _begin(connection: socket.socket) -> bytes:
    """The first bytes of the answer; fewer where the server ends it."""
    received = b""
    while len(received) < _ANSWER.size and (part := connection.recv(_ANSWER.size - len(received))):
        received += part
    return received
