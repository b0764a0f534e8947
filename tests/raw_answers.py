"""Servers on loopback whose answers are bytes of the test's own, sent as slowly as it likes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: Has each connection, until the event is set.
Serve: TypeAlias = Callable[[socket.socket, threading.Event], None]


@contextmanager
def raw_server(serve: Serve) -> Iterator[str]:
    """A URL behind which *serve* has each connection, one at a time, once a request has begun to come."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    try:
                        serve(connection, ended)
                    except OSError:  # the caller has gone
                        continue

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)


def dripping(*, first: bytes, drops: bytes) -> Serve:
    """Sends *first*, then *drops* again and again."""

    def serve(connection: socket.socket, ended: threading.Event) -> None:
        connection.sendall(first)
        while not ended.wait(0.02):
            connection.sendall(drops)

    return serve
