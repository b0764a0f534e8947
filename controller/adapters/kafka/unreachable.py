"""Whether Kafka answers, tested with the first request of every client, which needs no credential and leaves no trace.

librdkafka says "transport failure" for everything, after many seconds.
"""

import struct
from functools import partial
from typing import Final

from controller.adapters.kafka.client import Client
from controller.adapters.kafka.errors import tls_context, tls_problem, wants_tls
from controller.adapters.network.unreachable import CLOSES, why_no_answer, why_none_answers

_NUMBER: Final = 1
#: ApiVersions, version 0: length, key, version, correlation id, and no client id.
_ASK: Final = struct.pack("!ihhih", 10, 18, 0, _NUMBER, -1)
#: How every answer begins: its length, and the correlation id of the request.
_ANSWER: Final = struct.Struct("!ii")
_NOT_KAFKA: Final = "it answers, but not as Kafka does: another server has this port"


def why_unreachable(bootstrap: str, client: Client) -> str:
    """Why no broker of *bootstrap* answers, "" where one does.  A broker that refuses us answers, too."""

    def judge(answer: bytes) -> str:
        if len(answer) == _ANSWER.size and _ANSWER.unpack(answer)[1] == _NUMBER:
            return ""
        if tls_problem(bootstrap, client):
            return ""  # a server answers, with TLS or with a refusal: connecting reports which
        return _NOT_KAFKA if answer else CLOSES

    def why(broker: str, seconds: float) -> str:
        host, _, port = broker.rpartition(":")
        context = partial(tls_context, client) if wants_tls(client) else None
        return why_no_answer(
            host.strip("[]"), int(port), _ASK, judge, size=_ANSWER.size, seconds=seconds, context=context
        )

    return why_none_answers([each.strip().rpartition("://")[2] for each in bootstrap.split(",")], why)
