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

#: ApiVersions, version 0: length, key, version, correlation id, and no client id.
_ASK: Final = struct.pack("!ihhih", 10, 18, 0, 1, -1)
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
        answer = connection.recv(4)
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
    if answer or tls_problem(bootstrap, client):
        return ""
    return "it closes every connection"
