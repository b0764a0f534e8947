"""Passes IP packets between network namespaces, and loses, delays and reorders those of a direction as it is told.

A program of its own, with the standard library alone: ``python -m tests.faults.forwarder DESCRIPTOR ...``, a TUN device
each.  It reads orders from its input, a line each, and answers each with a line when it is in force.  It ends with its
input, and so with whoever started it.
"""

import heapq
import json
import os
import random
import select
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

#: Of the packets of one turn from one device: so orders and the other devices get theirs.
_AT_ONCE: Final = 64
_LONGEST: Final = 65_535
#: More than these are lost, as in a router whose queue is full.
_MOST_WAITING: Final = 20_000
_IPV4: Final = 4


class Rule(NamedTuple):
    """What happens to the packets of one direction."""

    #: The share that is lost, each packet by chance; 1: the direction is cut.
    lost: float = 0.0
    #: Seconds that each packet takes.
    delay: float = 0.0
    #: So many seconds more at most, each packet by chance: later ones overtake earlier ones.
    jitter: float = 0.0


#: Nothing.
CLEAR: Final = Rule()
CUT: Final = Rule(lost=1.0)


class Forwarder:
    """The rules, and the packets that wait.  *send* gets the number of a host and a packet for it."""

    def __init__(self, hosts: int, send: Callable[[int, bytes], None], chance: random.Random) -> None:
        self._hosts, self._send, self._chance = hosts, send, chance
        self._rules: dict[tuple[int, int], Rule] = defaultdict(Rule)
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._taken = 0

    def order(self, source: int, destination: int, rule: Rule) -> None:
        """Treat what goes from *source* to *destination* by *rule* from now on."""
        self._rules[source, destination] = rule

    def take(self, source: int, packet: bytes, now: float) -> None:
        """Treat a *packet* of the host *source*: hosts count from 0, and the last byte of their address from 1."""
        if packet[0] >> 4 != _IPV4 or not 0 < packet[19] <= self._hosts:
            return
        destination = packet[19] - 1
        rule = self._rules[source, destination]
        if rule.lost and self._chance.random() < rule.lost:
            return
        wait = rule.delay + (self._chance.uniform(0, rule.jitter) if rule.jitter else 0.0)
        if not wait:
            self._send(destination, packet)
        elif len(self._waiting) < _MOST_WAITING:
            self._taken += 1
            heapq.heappush(self._waiting, (now + wait, self._taken, destination, packet))

    def send_due(self, now: float) -> float | None:
        """Send what has waited long enough; returns the seconds until the next is due, None: none waits."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, destination, packet = heapq.heappop(self._waiting)
            self._send(destination, packet)
        return self._waiting[0][0] - now if self._waiting else None


def _forward(devices: Sequence[int]) -> None:
    def send(host: int, packet: bytes) -> None:
        # Of a full queue: the packet is lost.
        with suppress(OSError):
            os.write(devices[host], packet)

    forwarder = Forwarder(len(devices), send, random.Random(1))
    number = {device: nth for nth, device in enumerate(devices)}
    orders = sys.stdin.buffer.fileno()
    while True:
        ready, _, _ = select.select([orders, *devices], [], [], forwarder.send_due(time.monotonic()))
        for descriptor in ready:
            if descriptor == orders:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                source, destination, *rule = json.loads(line)
                forwarder.order(source, destination, Rule(*rule))
                os.write(1, b"in force\n")
            else:
                _take_some(forwarder, number[descriptor], descriptor)


def _take_some(forwarder: Forwarder, host: int, device: int) -> None:
    with suppress(BlockingIOError):
        for _ in range(_AT_ONCE):
            forwarder.take(host, os.read(device, _LONGEST), time.monotonic())


if __name__ == "__main__":
    _forward([int(word) for word in sys.argv[1:]])
