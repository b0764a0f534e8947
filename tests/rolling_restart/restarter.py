"""Restarts brokers for ``hook.py``, as an init system does: on request, at a socket."""

import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.rolling_restart import hook


class Restarter:
    """Calls *restart* with the name of each broker that a hook asks to restart."""

    def __init__(self, restart: Callable[[str], None]) -> None:
        self._restart = restart
        #: The brokers whose restart has begun, in order.
        self.begun: list[str] = []
        #: --hook.
        self.command = ""

    @contextmanager
    def serving(self) -> Iterator["Restarter"]:
        """Answer hooks until the block ends."""
        with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
            place = Path(folder, "restarter")
            listening.bind(str(place))
            listening.listen()
            self.command = shlex.join([sys.executable, hook.__file__, str(place)])
            threading.Thread(target=self._serve, args=[listening], daemon=True).start()
            yield self

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                asking, _ = listening.accept()
            except OSError:  # the block has ended
                return
            with asking:
                broker = asking.makefile().readline().strip()
                self.begun.append(broker)
                self._restart(broker)
                with suppress(OSError):  # the hook was killed
                    asking.sendall(b"done\n")
