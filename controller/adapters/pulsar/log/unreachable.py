"""Whether the Pulsar that holds the log answers: asked as every client asks first, without a credential.

Pulsar: CommandConnect, CommandConnected
"""

import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

from controller.adapters import tls, unreachable
from controller.adapters.tls import tls_of
from controller.adapters.unreachable import LOOK_SECONDS, NO_ANSWER
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

_USUAL_PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651}
#: A CommandConnect of client version "trimtab", protocol version 0: total size, command size, then protobuf.
_COMMAND: Final = b"\x08\x02\x12\x0b\x0a\x07trimtab\x20\x00"
_ASK: Final = (len(_COMMAND) + 4).to_bytes(4, "big") + len(_COMMAND).to_bytes(4, "big") + _COMMAND
_LONGEST: Final = 64 << 10
_LEAST_SECONDS: Final = 0.5
_NOT_PULSAR: Final = "it answers, but not as a Pulsar broker does: another server has this port"


def why_unreachable(log: PulsarLogSettings) -> str:
    """Why no broker of ``service_url`` answers, "" where one does.  A broker that refuses us answers, too."""
    scheme, _, servers = log.service_url.partition("://")
    brokers = [each.strip().rstrip("/") for each in servers.split(",")]
    seconds = max(_LEAST_SECONDS, LOOK_SECONDS / len(brokers))
    found: dict[str, str] = {}
    for broker in brokers:
        found[broker] = _why(scheme, broker, log, seconds)
        if not found[broker]:
            return ""
    if len(found) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{broker}: {why}" for broker, why in found.items())


def _why(scheme: str, broker: str, log: PulsarLogSettings, seconds: float) -> str:
    place = urlsplit(f"//{broker}")
    host, port = place.hostname or "", place.port or _USUAL_PORTS[scheme]
    try:
        connection = socket.create_connection((host, port), timeout=seconds)
    except OSError as error:
        return unreachable.words(error)
    try:
        if scheme == "pulsar+ssl":
            connection = tls_of(log.tls).context("Pulsar, [log.pulsar]").wrap_socket(connection, server_hostname=host)
        connection.sendall(_ASK)
        answer = connection.recv(8)
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
    if not answer:
        return "it closes every connection"
    whole, inner = int.from_bytes(answer[:4], "big"), int.from_bytes(answer[4:], "big")
    return "" if len(answer) == 8 and 4 < whole <= _LONGEST and inner <= whole - 4 else _NOT_PULSAR
