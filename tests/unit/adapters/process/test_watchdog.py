"""systemd's watchdog hears of a process for as long as its main loop comes round."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.process.watchdog import watched

#: 30 ms: a message every 10.
QUICK = {"WATCHDOG_USEC": "30000"}
#: Longer than any pause between two messages, on a busy machine, too.
PATIENCE_SECONDS = 30.0


def listening(address: str) -> socket.socket:
    """A socket as systemd's."""
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(address)
    heard.settimeout(PATIENCE_SECONDS)
    return heard


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.chdir(tmp_path)  # an address of a socket is at most 107 bytes long
    with closing(listening("notify")) as heard:
        yield heard


def test_while_it_is_alive_it_says_so_again_and_again(systemd: socket.socket) -> None:
    ours = {"NOTIFY_SOCKET": "notify", "WATCHDOG_PID": str(os.getpid())}
    with watched(lambda: True, {**QUICK, **ours}):
        assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3


def test_once_its_main_loop_stands_still_nothing_is_said(systemd: socket.socket) -> None:
    answers, stands_still = iter([True, True, False]), threading.Event()

    def is_alive() -> bool:
        answer = next(answers, None)
        if answer is None:
            stands_still.set()
        return bool(answer)

    with watched(is_alive, {**QUICK, "NOTIFY_SOCKET": "notify"}):
        assert [systemd.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
        assert stands_still.wait(PATIENCE_SECONDS)
    systemd.setblocking(False)
    with pytest.raises(BlockingIOError):
        systemd.recv(100)


@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="abstract addresses are Linux's")
def test_an_abstract_address_is_one_that_begins_with_an_at_sign() -> None:
    name = f"trimtab-{os.getpid()}"
    with closing(listening(f"\0{name}")) as heard, watched(lambda: True, {**QUICK, "NOTIFY_SOCKET": f"@{name}"}):
        assert heard.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize(
    "other",
    [
        {"NOTIFY_SOCKET": ""},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_PID": "1"},
    ],
)
def test_where_no_watchdog_waits_for_this_process_nothing_is_asked_or_said(
    systemd: socket.socket, other: dict[str, str]
) -> None:
    asked: list[int] = []

    def is_alive() -> bool:
        asked.append(1)
        return True

    with watched(is_alive, {**QUICK, "NOTIFY_SOCKET": "notify", **other}):
        pass
    assert not asked


def test_where_systemd_does_not_listen_the_process_goes_on(systemd: socket.socket) -> None:
    answers, goes_on = iter([True, True]), threading.Event()

    def is_alive() -> bool:
        if not next(answers, False):
            goes_on.set()
        return True

    with watched(is_alive, {**QUICK, "NOTIFY_SOCKET": "nobody"}):
        assert goes_on.wait(PATIENCE_SECONDS)
