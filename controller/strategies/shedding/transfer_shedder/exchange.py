"""Which bundles go from a full broker to an emptier one, and which come back in exchange.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder.findBundlesForUnloading (its loop over
the top bundles of one broker)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller.model.decision import Reason

#: A swap has to bring the fuller broker below this share of its throughput.
_SWAP_SHARE: Final = 0.75


class TopBundle(NamedTuple):
    """A bundle in a broker's report."""

    name: str
    #: Bytes/s in + out.
    throughput: float


class Move(NamedTuple):
    """A bundle to take from one broker and, if transfers are on, to give to the other."""

    bundle: str
    source: str
    destination: str


class Refused(NamedTuple):
    """A bundle that stays, and why; if it is too large: bytes/s that would move with it, and that may move."""

    bundle: str
    reason: Reason
    observed: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What can forbid a move: questions that are each answered by the reason against the move, or None.

    The shedder fills it from its filters; a test may give any functions.
    """

    #: (bundle, broker): does the broker not own it, or was it unloaded recently?  Asked of the giver's bundles.
    stays: Callable[[str, str], Reason | None]
    #: (bundle, destination): may it not go there?  Asked of all bundles, also of those that come back in exchange.
    barred: Callable[[str, str], Reason | None]
    #: (bundle, broker): must it not come back in exchange?  Asked of the taker's bundles in place of ``stays``, for
    #: Pulsar does not look at the grace period of these.
    retained: Callable[[str, str], Reason | None]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What two brokers exchange; bytes/s throughout, in + out."""

    moves: list[Move] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    offloaded: float = 0.0
    #: What came back, as far as it is counted.
    gained: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GiverAndTaker:
    """The broker that gives and the one that takes, their throughput, and how much of it is to move, bytes/s."""

    giver: str
    taker: str
    giver_throughput: float
    taker_throughput: float
    to_offload: float
    #: Whether bundles are sent to the taker, and its own may come back; else they are only taken off the giver.
    transfer: bool
    #: Whether what comes back makes room for more to go.
    counts_gain: bool

    def exchange(self, of_giver: Sequence[TopBundle], of_taker: Sequence[TopBundle], gate: Gate) -> Exchange:
        """The moves among the bundles *of_giver* and *of_taker* (the brokers' reports, lightest first), in order.

        Lighter bundles go first, as long as their sum is within ``to_offload``.  The first bundle that exceeds it goes
        only if bundles of the taker come back in exchange and even out the two brokers; else it and all heavier ones
        stay.
        """
        exchange = Exchange()
        remaining = len(of_giver)
        in_exchange = iter(of_taker)
        for bundle, throughput in of_giver:
            reason = gate.stays(bundle, self.giver) or gate.barred(bundle, self.taker)
            if reason is not None:
                exchange.refused.append(Refused(bundle, reason))
                continue
            if remaining <= 1:
                exchange.refused.append(Refused(bundle, Reason.SOLE_BUNDLE))
                break
            if throughput == 0:
                continue
            moving = exchange.offloaded - exchange.gained + throughput
            if moving > self.to_offload:
                back = self._swap(exchange, throughput, in_exchange, gate) if self.transfer else None
                if back is None:
                    exchange.refused.append(Refused(bundle, Reason.TOO_LARGE, moving, self.to_offload))
                    break
                exchange.moves += [Move(one.name, self.taker, self.giver) for one in back]
                if self.counts_gain:
                    exchange.gained += sum(one.throughput for one in back)
            exchange.moves.append(Move(bundle, self.giver, self.taker if self.transfer else ""))
            exchange.offloaded += throughput
            remaining -= 1
        return exchange

    def _swap(
        self, exchange: Exchange, throughput: float, in_exchange: Iterator[TopBundle], gate: Gate
    ) -> list[TopBundle] | None:
        """Bundles of the taker that make up for one of *throughput*, or None; each of them is looked at only once."""
        giver = self.giver_throughput - exchange.offloaded + exchange.gained - throughput
        taker = self.taker_throughput + exchange.offloaded - exchange.gained + throughput
        back = []
        for one in in_exchange:
            if one.throughput == 0 or gate.retained(one.name, self.taker) or gate.barred(one.name, self.giver):
                continue
            if not (giver + one.throughput < self.giver_throughput and taker - one.throughput < self.giver_throughput):
                continue
            back.append(one)
            giver += one.throughput
            taker -= one.throughput
            if taker <= giver < self.giver_throughput * _SWAP_SHARE:
                return back
        return None
