"""Why a server cannot be reached, in words. The checks have their own time limits, so that a person waits only
seconds."""

import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from controller.adapters.network import tls
from controller.model.errors import TrimtabError

#: For a connection, and again for an answer.
LOOK_SECONDS: Final = 2.0
#: It accepts connections: the machine is there, the server hangs or is only starting.
NO_ANSWER: Final = "it accepts connections, but does not answer"
#: It hangs up without a byte.
CLOSES: Final = "it closes every connection"
#: For one server, where several share the time.
_LEAST_SECONDS: Final = 0.5

_WORDS: Final = {
    errno.EADDRINUSE: "another process listens there",
    errno.EADDRNOTAVAIL: "this host has no such address",
    errno.EACCES: "this user may not listen there",
    errno.ECONNREFUSED: "connection refused, nothing listens there",
    errno.EHOSTUNREACH: "there is no route to the host",
    errno.ENETUNREACH: "there is no route to the network",
    errno.ECONNRESET: "it closed the connection",
    errno.EPIPE: "it closed the connection",
}


def words(error: OSError) -> str:
    """What *error*, raised while connecting or sending a request, means."""
    if isinstance(error, socket.gaierror):
        return "the name of the host is unknown"
    if isinstance(error, TimeoutError):
        return "timed out, nothing answers"
    return _WORDS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


def why_no_connection(host: str, port: int, seconds: float = LOOK_SECONDS) -> str:
    """Connect and hang up; "" where that works."""
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except OSError as error:
        return words(error)
    return ""


def why_none_answers(servers: Sequence[str], why: Callable[[str, float], str]) -> str:
    """Why none of *servers* answers, "" where one does; *why* looks at one of them, for so many seconds."""
    seconds = max(_LEAST_SECONDS, LOOK_SECONDS / len(servers))
    reasons: dict[str, str] = {}
    for server in servers:
        reasons[server] = why(server, seconds)
        if not reasons[server]:
            return ""
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{server}: {problem}" for server, problem in reasons.items())


def why_no_answer(
    host: str,
    port: int,
    question: bytes,
    judge: Callable[[bytes], str],
    *,
    size: int,
    seconds: float,
    context: Callable[[], ssl.SSLContext] | None = None,
    refused: Callable[[ssl.SSLError], str] = lambda _: "",
) -> str:
    """Ask *question*; what *judge* says of the first *size* bytes of the answer, or why there is none.

    *judge* gets fewer bytes where the server hangs up.  *context*: of TLS, where the server speaks it.
    A server that refuses us answers, too: what *refused* says of it; "" where whoever connects says it.
    """
    try:
        connection = socket.create_connection((host, port), timeout=seconds)
    except OSError as error:
        return words(error)
    try:
        if context is not None:
            connection = context().wrap_socket(connection, server_hostname=host)
        connection.sendall(question)
        answer = _begin(connection, size)
    except TimeoutError:
        return NO_ANSWER
    except TrimtabError:
        return ""  # a certificate's file: whoever connects says so
    except ssl.SSLError as error:
        if tls.is_refusal(error):  # somebody answers, who refuses us or speaks no TLS
            return refused(error)
        return "it aborts the TLS handshake: does it speak TLS on this port?"
    except OSError as error:
        return words(error)
    finally:
        connection.close()
    return judge(answer)


def _begin(connection: socket.socket, size: int) -> bytes:
    """The first bytes of the answer; fewer where the server ends it."""
    received = b""
    while len(received) < size and (part := connection.recv(size - len(received))):
        received += part
    return received
