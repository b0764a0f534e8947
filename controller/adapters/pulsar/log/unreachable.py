"""Whether the Pulsar that holds the log answers: asked as every client asks first, without a credential.

Pulsar: CommandConnect, CommandConnected
"""

import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from controller.adapters.network.tls import refusal, tls_of
from controller.adapters.network.unreachable import CLOSES, why_no_answer, why_none_answers
from controller.adapters.pulsar.log.client import credentials
from controller.adapters.pulsar.tokens import end_of
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.readable import utc

_USUAL_PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651}
#: A CommandConnect of client version "trimtab", protocol version 0: total size, command size, then protobuf.
_COMMAND: Final = b"\x08\x02\x12\x0b\x0a\x07trimtab\x20\x00"
_ASK: Final = (len(_COMMAND) + 4).to_bytes(4, "big") + len(_COMMAND).to_bytes(4, "big") + _COMMAND
#: How every answer begins: total size and command size, bytes.
_SIZES: Final = 8
_LONGEST: Final = 64 << 10
_NOT_PULSAR: Final = "it answers, but not as a Pulsar broker does: another server has this port"


def why_refused(log: PulsarLogSettings) -> str:
    """Why the brokers of ``service_url`` refuse us, "" where that is not known: TLS, or a token that has ended.

    The client library says of either only that no broker can be reached, or that no answer came in time.
    """
    refusals = list[str]()

    def refused(error: ssl.SSLError) -> str:
        refusals.append(refusal(error, "log.pulsar.tls"))
        return refusals[-1]

    why_unreachable(log, refused)
    if refusals:
        return refusals[0]
    end = end_of(credentials(log)().token)
    if end is None or end > time.time():
        return ""
    return f"the token in [log.pulsar] token_file expired at {utc(int(end * 1000))}: write a new one to that file"


def why_unreachable(log: PulsarLogSettings, refused: Callable[[ssl.SSLError], str] = lambda _: "") -> str:
    """Why no broker of ``service_url`` answers, "" where one does.

    A broker that refuses us answers, too, unless *refused* says something of it.
    """
    scheme, _, servers = log.service_url.partition("://")
    context = partial(tls_of(log.tls).context, "Pulsar, [log.pulsar]") if scheme == "pulsar+ssl" else None

    def why(broker: str, seconds: float) -> str:
        place = urlsplit(f"//{broker}")
        host, port = place.hostname or "", place.port or _USUAL_PORTS[scheme]
        return why_no_answer(host, port, _ASK, _judge, size=_SIZES, seconds=seconds, context=context, refused=refused)

    return why_none_answers([each.strip().rstrip("/") for each in servers.split(",")], why)


def _judge(answer: bytes) -> str:
    if not answer:
        return CLOSES
    whole, inner = int.from_bytes(answer[:4], "big"), int.from_bytes(answer[4:], "big")
    return "" if len(answer) == _SIZES and 4 < whole <= _LONGEST and inner <= whole - 4 else _NOT_PULSAR
