"""The network of the fault tests: what each rule does to a connection between two namespaces, and to single packets."""

import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.faults.forwarder import CUT, Forwarder, Rule
from tests.faults.network import Network, away, both, network, towards, why_none

pytestmark = pytest.mark.integration

SECONDS = 0.3
_needs_namespaces = pytest.mark.skipif(bool(why_none()), reason=why_none())


@pytest.fixture(scope="module")
def hosts() -> Iterator[Network]:
    with network("here", "there", "elsewhere") as hosts:
        yield hosts


@pytest.fixture(scope="module")
def ends(hosts: Network) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The ends of a connection from here to there."""
    with ExitStack() as stack:
        with hosts.on("there"):
            server = stack.enter_context(socket.create_server((hosts.address("there"), 0)))
        with hosts.on("here"):
            here = stack.enter_context(socket.create_connection(server.getsockname(), timeout=5))
        there, _ = server.accept()
        yield here, stack.enter_context(there)


def arrives(sender: socket.socket, receiver: socket.socket, seconds: float = 5.0) -> bool:
    receiver.settimeout(seconds)
    sender.sendall(b"x")
    try:
        return receiver.recv(1) == b"x"
    except TimeoutError:
        return False


@_needs_namespaces
def test_a_direction_that_is_cut_passes_nothing_and_the_other_still_does(
    hosts: Network, ends: tuple[socket.socket, socket.socket]
) -> None:
    here, there = ends
    assert arrives(here, there)
    with hosts.treated(away("here", ["there"]), CUT):
        assert not arrives(here, there, SECONDS)
        assert arrives(there, here)
    there.settimeout(10)
    assert there.recv(1) == b"x"
    # Until TCP knows that this has arrived it may send nothing new: an answer tells it.
    assert arrives(there, here, 10)
    with hosts.treated(towards("here", ["there"]), CUT):
        assert arrives(here, there)
        assert not arrives(there, here, SECONDS)
    here.settimeout(10)
    assert here.recv(1) == b"x"


@_needs_namespaces
def test_a_delay_is_that_of_its_direction_and_what_is_lost_arrives_by_tcp_all_the_same(
    hosts: Network, ends: tuple[socket.socket, socket.socket]
) -> None:
    here, there = ends
    with hosts.treated(away("here", ["there"]), Rule(delay=SECONDS)):
        begun = time.monotonic()
        assert arrives(here, there)
        assert time.monotonic() - begun >= SECONDS
    with hosts.treated(both("here", ["there"]), Rule(lost=0.1, jitter=0.01)):
        assert all(arrives(here, there) for _ in range(10))


@_needs_namespaces
def test_hosts_have_no_way_to_loopback_servers_of_the_machine(hosts: Network) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, hosts.on("elsewhere"), pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.getsockname(), timeout=1)


def test_packets_are_lost_by_their_share_and_overtake_each_other() -> None:
    sent = list[bytes]()
    forwarder = Forwarder(2, lambda _, packet: sent.append(packet), random.Random(7))
    forwarder.order(0, 1, Rule(lost=0.25, delay=1.0, jitter=1.0))
    packets = [bytes([0x45, *[0] * 18, 2, nth]) for nth in range(200)]
    for packet in packets:
        forwarder.take(0, packet, now=0.0)
    assert forwarder.send_due(now=0.9) is not None
    assert sent == []
    assert forwarder.send_due(now=2.0) is None
    assert 120 < len(sent) < 180
    assert sent != sorted(sent)
    assert set(sent) <= set(packets)
