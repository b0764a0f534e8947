"""Hosts on one machine, each a network namespace; their packets pass a forwarder, which treats them as it is told.

The namespaces have no way out: each has its own loopback device and a TUN device that ends in the forwarder.  Their
addresses are of the range of loopback (127.48.0.0/24), so no packet could leave the machine if there were one.  They
have no names: they end with the processes that hold them.
"""

import ctypes
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.faults.forwarder import CLEAR, Rule

_TUN: Final = Path("/dev/net/tun")
#: linux/sched.h, linux/if_tun.h
_CLONE_NEWNET: Final = 0x4000_0000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x4004_54CA, 0x0001, 0x1000
_DEVICE: Final = "net"
#: Large packets: each costs the forwarder the same.
_MTU: Final = 9000
_ADDRESS: Final = "127.48.0.{}"
_END_SECONDS: Final = 10.0
_CURRENT: Final = "/proc/thread-self/ns/net"


class _Host(NamedTuple):
    number: int
    #: A descriptor of the namespace.
    namespace: int

    @property
    def address(self) -> str:
        return _ADDRESS.format(self.number + 1)


class Network:
    """See the module docstring."""

    def __init__(self, hosts: dict[str, _Host], forwarder: "subprocess.Popen[str]") -> None:
        self._hosts, self._forwarder = hosts, forwarder

    def address(self, host: str) -> str:
        """Where the others find *host*."""
        return self._hosts[host].address

    def named(self, prefix: str) -> list[str]:
        """The hosts whose names begin with *prefix*."""
        return [name for name in self._hosts if name.startswith(prefix)]

    def words(self, host: str) -> list[str]:
        """The words before a command that is to run on *host*."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self._hosts[host].namespace}"]

    @contextmanager
    def on(self, host: str) -> Iterator[None]:
        """This thread, and all threads and processes that it starts in the block, are on *host*."""
        with _back_again():
            _enter(self._hosts[host].namespace)
            yield

    @contextmanager
    def treated(self, directions: Iterable[tuple[str, str]], rule: Rule) -> Iterator[None]:
        """*rule* is in force for what goes from the first to the second of each of *directions*, for a block."""
        directions = list(directions)
        try:
            for direction in directions:
                self._order(*direction, rule)
            yield
        finally:
            for direction in directions:
                self._order(*direction, CLEAR)

    def _order(self, source: str, destination: str, rule: Rule) -> None:
        assert self._forwarder.stdin is not None
        assert self._forwarder.stdout is not None
        numbers = self._hosts[source].number, self._hosts[destination].number
        print(json.dumps([*numbers, *rule]), file=self._forwarder.stdin, flush=True)
        assert self._forwarder.stdout.readline(), f"the forwarder has ended, exit code {self._forwarder.wait()}"


@contextmanager
def network(*hosts: str) -> Iterator[Network]:
    """A network of *hosts*, for a block."""
    with ExitStack() as stack:
        made, devices = dict[str, _Host](), list[int]()
        for number, name in enumerate(hosts):
            with _back_again():
                _call("unshare", _CLONE_NEWNET)
                made[name] = _Host(number, os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC))
                stack.callback(os.close, made[name].namespace)
                devices.append(_device(made[name].address))
                stack.callback(os.close, devices[-1])
        forwarder = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.forwarder", *map(str, devices)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=devices,
        )
        try:
            yield Network(made, forwarder)
        finally:
            forwarder.communicate(timeout=_END_SECONDS)


def why_none() -> str:
    """Why this machine can have no such network; empty: it can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    missing = [word for word in ("ip", "nsenter") if shutil.which(word) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: iproute2, util-linux)"
    try:
        with _back_again():
            _call("unshare", _CLONE_NEWNET)
            os.close(_device(_ADDRESS.format(1)))
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no network namespace with a TUN device can be made here, which takes root and {_TUN}: {error}"
    return ""


def _device(address: str) -> int:
    """A TUN device of the namespace that the thread is in; returns its descriptor."""
    device = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    _ip("link", "set", "lo", "up")
    # Of 127.0.0.0/8 loopback keeps what resolvers give as a machine's own name; the rest may be other hosts'.
    _ip("address", "delete", "127.0.0.1/8", "dev", "lo")
    _ip("address", "add", "127.0.0.1/16", "dev", "lo")
    for part in ("all", _DEVICE):
        for option, value in (("route_localnet", "1"), ("rp_filter", "0")):
            Path(f"/proc/sys/net/ipv4/conf/{part}/{option}").write_text(value, encoding="ascii")
    _ip("address", "add", f"{address}/24", "dev", _DEVICE)
    _ip("link", "set", _DEVICE, "mtu", str(_MTU), "up")
    return device


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def _back_again() -> Iterator[None]:
    """This thread is in its namespace again after the block."""
    own = os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _enter(own)
        os.close(own)


def _enter(namespace: int) -> None:
    _call("setns", namespace, _CLONE_NEWNET)


def _call(name: str, *arguments: int) -> None:
    """A function of libc that Python has from 3.12 on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def both(first: str, seconds: Sequence[str]) -> list[tuple[str, str]]:
    """Both directions between *first* and each of *seconds*."""
    return [*away(first, seconds), *towards(first, seconds)]


def away(first: str, seconds: Sequence[str]) -> list[tuple[str, str]]:
    """The directions from *first* to each of *seconds*."""
    return [(first, second) for second in seconds]


def towards(first: str, seconds: Sequence[str]) -> list[tuple[str, str]]:
    """The directions from each of *seconds* to *first*."""
    return [(second, first) for second in seconds]
