"""Tells systemd's watchdog that this process is alive; without that, systemd restarts it (sd_notify(3))."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

#: Of the time that systemd allows, the pause between two messages.
_SHARE: Final = 1 / 3
_PER_SECOND: Final = 1e6


@contextmanager
def watched(is_alive: Callable[[], bool], environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Within the block tell systemd again and again that this process lives, as long as *is_alive* says so.

    Without WatchdogSec= in the unit, so without its variables in *environment*, nobody is told.
    """
    address, allowed = environment.get("NOTIFY_SOCKET", ""), environment.get("WATCHDOG_USEC", "")
    of = environment.get("WATCHDOG_PID", "") or str(os.getpid())
    if not address or not allowed.isdecimal() or not int(allowed) or of != str(os.getpid()):
        yield
        return
    ended = threading.Event()
    pause = _SHARE * int(allowed) / _PER_SECOND
    teller = threading.Thread(target=_tell, args=(address, pause, is_alive, ended), name="watchdog", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join(pause)


def _tell(address: str, pause: float, is_alive: Callable[[], bool], ended: threading.Event) -> None:
    # "@" stands for the zero byte with which Linux's abstract addresses begin.
    to = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
        notify.setblocking(False)
        while True:
            if is_alive():
                with suppress(OSError):  # systemd misses it, and the next one comes soon
                    notify.sendto(b"WATCHDOG=1", to)
            if ended.wait(pause):
                return
