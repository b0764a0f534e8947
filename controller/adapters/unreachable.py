"""Why a server cannot be reached, in words.  Looks with time limits of its own, so that a person waits for seconds."""

import errno
import socket
from typing import Final

#: For a connection, and again for an answer.
LOOK_SECONDS: Final = 2.0
#: It accepts connections: the machine is there, the server hangs or is only starting.
NO_ANSWER: Final = "it accepts connections, but does not answer"

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
    """What *error*, met while connecting or asking, means."""
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
