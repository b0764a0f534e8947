"""The session timeout that a ZooKeeper server grants: opens a session by the protocol's first messages, closes it.

kazoo knows the timeout that the server granted, but does not show it.
"""

import socket
import ssl
import struct
from typing import Final

from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import Close, Connect

from controller.adapters.network import tls, unreachable
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.model.errors import TrimtabError

_LENGTH: Final = struct.Struct("!i")
#: The most that a server answers to the first message: the timeout, a number, and a password.
_LONGEST_ANSWER: Final = 1024
#: How a server of TLS begins the answer to one who does not speak it.
_TLS_ALERT: Final = 0x1503
NOT_ZOOKEEPER: Final = "it answers, but not as ZooKeeper does: another server has this port"
_NO_PASSWORD: Final = b"\0" * 16


def granted_timeout_ms(access: ZooKeeperAccess, asked_seconds: float, *, answer_seconds: float) -> int:
    """The session timeout, ms, that the first host of *access* to answer grants to one who asks for *asked_seconds*.

    Raises TrimtabError where none answers.
    """
    servers, _ = collect_hosts(access.hosts)
    context = access.context()
    failures = []
    for host, port in servers:
        try:
            with socket.create_connection((host, int(port)), timeout=answer_seconds) as connection:
                if context is None:
                    return _open_and_close(connection, int(asked_seconds * 1000))
                with context.wrap_socket(connection, server_hostname=host) as encrypted:
                    return _open_and_close(encrypted, int(asked_seconds * 1000))
        except OSError as error:
            why = (
                tls.refusal(error, access.tls_section) if isinstance(error, ssl.SSLError) else unreachable.words(error)
            )
            failures.append(f"{host}:{port}: {why}")
        except EOFError as error:
            hint = f"; does it require TLS, [{access.tls_section}]?" if context is None else ""
            failures.append(f"{host}:{port}: {error}{hint}")
        except struct.error:
            failures.append(f"{host}:{port}: {NOT_ZOOKEEPER}")
    raise TrimtabError(f"ZooKeeper at {access.hosts} does not answer: {'; '.join(failures)}")


def _open_and_close(connection: socket.socket, asked_ms: int) -> int:
    _send(connection, bytes(Connect(0, 0, asked_ms, 0, _NO_PASSWORD, False).serialize()))
    granted, _ = Connect.deserialize(_receive(connection), 0)
    _send(connection, struct.pack("!ii", 1, Close.type))
    if granted.time_out <= 0:
        raise EOFError("it refuses the session")
    return int(granted.time_out)


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(message)) + message)


def _receive(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length >> 16 == _TLS_ALERT:
        raise EOFError("it speaks TLS")
    if not 0 <= length <= _LONGEST_ANSWER:
        raise struct.error(f"an answer of {length} bytes")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError("it closed the connection")
        received += part
    return received
