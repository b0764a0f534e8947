"""Give brokers that join their share of the bundles, and give brokers that leave time to come back.

Like Kafka Connect's protocols, with brokers for workers and bundles for tasks.  Shares are counted in bundles, whatever
their load: the shedder evens out the load, round by round.

eager: whenever a broker joins or leaves, all bundles are spread over all brokers again, at once.

cooperative: a broker that joined gets its fair share, rounded down, in about equal parts over some rounds, from the
brokers with most bundles; nothing else moves.  After a broker left, nothing moves for a delay: it may only restart, and
other brokers have taken over its bundles by themselves.  When it is back, or the delay is over, this goes on.  A broker
that has its share is topped up for a few more rounds, as moves may fail; after that only the shedder looks at it.

A broker without data counts neither as present nor as gone.

Kafka Connect: EagerAssignor, IncrementalCooperativeAssignor
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from controller.model.decision import Reason, Unload, UnloadDecision, Verdict
from controller.model.errors import SettingsError
from controller.model.load import UNOWNED, Bools, ClusterView, Ints, busiest_first
from controller.model.names import is_system_owned
from controller.model.option import option
from controller.model.strategy_memory import StrategyMemory

#: The ``by`` of verdicts, and of the reasons of commands.
BY_MEMBERSHIP: Final = "RebalanceOnMembershipChange"
PROTOCOLS: Final = ("off", "eager", "cooperative")
#: Rounds in which a broker that has its share is topped up where moves failed.
_AFTERCARE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMembership(StrategyMemory):
    """The brokers of the last round, and those that joined or left recently."""

    kind: ClassVar[str] = "broker_membership"
    #: Sorted; empty before the first round.
    brokers: tuple[str, ...] = ()
    #: Broker that joined -> rounds in which it received bundles, until it has its share.
    joined: Mapping[str, int] = field(default_factory=dict)
    #: Broker that left -> rounds since then, while its return is waited for.
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceOnMembershipChange:
    """See the module docstring."""

    protocol: str = option(
        "trimtabRebalanceOnMembershipChange",
        default="off",
        meaning="what brokers that join or leave set off: off, eager (all bundles are spread anew at once) or"
        " cooperative (a broker that joins gets its share, nothing else moves)",
    )
    delay_rounds: int = option(
        "trimtabRebalanceDelayRounds",
        default=5,
        unit="rounds",
        meaning="cooperative: how long nothing is given to brokers that join, after one left that may come back;"
        " a round is loadBalancerSheddingIntervalMinutes",
    )
    spread_rounds: int = option(
        "trimtabRebalanceSpreadRounds",
        default=3,
        unit="rounds",
        meaning="cooperative: over how many rounds a broker that joined gets its share; 0 and 1: at once",
    )

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise SettingsError(f"trimtabRebalanceOnMembershipChange={self.protocol}: allowed: {', '.join(PROTOCOLS)}")

    def initial_memory(self) -> BrokerMembership:
        """No brokers: those of the first round do not count as joined."""
        return BrokerMembership()

    def decide(self, view: ClusterView, memory: BrokerMembership) -> tuple[UnloadDecision, BrokerMembership]:
        """The bundles to send elsewhere, each with its destination, and a verdict for every broker that came or went.

        O(bundles log bundles) in a round in which something moves.
        """
        if self.protocol == "off" or not len(view.brokers):
            reason = Reason.DISABLED if self.protocol == "off" else Reason.NO_BROKERS
            return UnloadDecision(reason=reason), memory
        before, memory = memory, _with_changes(memory, view, self.delay_rounds)
        if not before.brokers:
            return UnloadDecision(reason=Reason.BALANCED), memory
        if self.protocol == "eager":
            return self._eager(view, before, memory)
        return self._cooperative(view, memory)

    def _eager(
        self, view: ClusterView, before: BrokerMembership, memory: BrokerMembership
    ) -> tuple[UnloadDecision, BrokerMembership]:
        memory = BrokerMembership(brokers=memory.brokers)
        joined = sorted(set(view.brokers.names) - set(before.brokers))
        departed = sorted(set(before.brokers) - set(view.brokers.names) - set(view.missing))
        if not joined and not departed:
            return UnloadDecision(reason=Reason.BALANCED), memory
        bundles = _Bundles.of(view)
        goes = np.flatnonzero(bundles.movable)
        count = bundles.count(bundles.counted)
        stays = bundles.count(bundles.counted & ~bundles.movable)
        share = -(-int(count.sum()) // len(count))
        # Every broker gets the same number of bundles; those that may not move count, too.
        target = bundles.owner.copy()
        target[goes] = _lowest_first(stays, np.clip(share - stays, 0, None), len(goes))
        moved = goes[target[goes] != bundles.owner[goes]]
        reason = Reason.BROKER_JOINED if joined else Reason.BROKER_LEFT
        words = ", ".join([*(f"{name} joined" for name in joined), *(f"{name} left" for name in departed)])
        why = {
            row: _share(view, row, reason, count, share, f"all is spread anew: {words}") for row in range(len(count))
        }
        decision = UnloadDecision(
            unloads=_unloads(view, moved, target, why),
            verdicts=tuple(why.values()),
            reason=reason if len(moved) else Reason.BALANCED,
        )
        return decision, memory

    def _cooperative(self, view: ClusterView, memory: BrokerMembership) -> tuple[UnloadDecision, BrokerMembership]:
        waiting = self._waiting(memory)
        if waiting:
            return UnloadDecision(verdicts=waiting, reason=Reason.BROKER_LEFT), memory
        if not memory.joined:
            return UnloadDecision(reason=Reason.BALANCED), memory
        bundles = _Bundles.of(view)
        count = bundles.count(bundles.counted)
        share = int(count.sum()) // len(count)
        ages = {view.brokers.code_of[name]: age for name, age in memory.joined.items() if name in view.brokers.code_of}
        room = np.zeros(len(count), np.int64)
        for row, age in ages.items():
            parts = max(1, self.spread_rounds - age)
            room[row] = -(-max(0, share - int(count[row])) // parts)
        moved, target = _from_the_fullest(view, bundles, count, share, room)
        joined = [_share(view, row, Reason.BROKER_JOINED, count, share, "it joined") for row in ages]
        whose = ", ".join(view.brokers.names[row] for row in ages)
        givers = {
            row: _share(view, row, Reason.BROKER_JOINED, count, share, f"gives to {whose}, which joined")
            for row in np.unique(bundles.owner[moved]).tolist()
        }
        decision = UnloadDecision(
            unloads=_unloads(view, moved, target, givers),
            verdicts=(*joined, *givers.values()),
            reason=Reason.BROKER_JOINED if len(moved) else Reason.BALANCED,
        )
        return decision, self._aged(memory, view)

    def _waiting(self, memory: BrokerMembership) -> tuple[Verdict, ...]:
        """A verdict on every broker that left and may come back."""
        return tuple(
            Verdict(
                subject=name,
                reason=Reason.BROKER_LEFT,
                observed=float(rounds),
                limit=float(self.delay_rounds),
                unit="rounds",
                by=BY_MEMBERSHIP,
                detail="it may come back",
            )
            for name, rounds in memory.left.items()
        )

    def _aged(self, memory: BrokerMembership, view: ClusterView) -> BrokerMembership:
        """*memory* after a round in which brokers that joined were given bundles."""
        last = max(self.spread_rounds, 1) + _AFTERCARE
        joined = {name: age + (name in view.brokers.code_of) for name, age in memory.joined.items()}
        return BrokerMembership(
            brokers=memory.brokers, joined={name: age for name, age in joined.items() if age < last}
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bundles:
    """Where each bundle of a view is, or will be."""

    brokers: int
    #: (bundles,) the row of its broker; of a bundle on its way, the row of its destination.
    owner: Ints
    #: (bundles,) whether it counts: Pulsar's own bundles do not, nor do bundles that no broker serves.
    counted: Bools
    #: (bundles,) whether it may be moved now.
    movable: Bools

    @classmethod
    def of(cls, view: ClusterView) -> "_Bundles":
        owner = view.bundles.broker.copy()
        owner[view.preallocated.bundle] = view.preallocated.broker
        own = np.array([is_system_owned(name) for name in view.bundles.namespaces], np.bool_)
        counted = ~own[view.bundles.namespace] & (owner != UNOWNED) if len(own) else np.zeros(0, np.bool_)
        under_way = owner != view.bundles.broker
        movable = counted & view.bundles.owned & ~view.recently_unloaded & ~under_way
        return cls(brokers=len(view.brokers), owner=owner, counted=counted, movable=movable)

    def count(self, which: Bools) -> Ints:
        """(brokers,) how many of *which* each has."""
        return np.bincount(self.owner[which], minlength=self.brokers)


def _with_changes(memory: BrokerMembership, view: ClusterView, delay_rounds: int) -> BrokerMembership:
    """The memory after this round: the brokers that are here, those that joined, and those that left, and when."""
    here, unknown = set(view.brokers.names), set(view.missing)
    known = set(memory.brokers)
    brokers = tuple(sorted(here | (known & unknown)))
    if not known:
        return BrokerMembership(brokers=brokers)
    rounds_away = {name: rounds + 1 for name, rounds in memory.left.items()} | dict.fromkeys(known - here - unknown, 0)
    joined = {name: age for name, age in memory.joined.items() if name in here or name in unknown}
    joined |= dict.fromkeys(here - known, 0)
    away = {name: rounds for name, rounds in rounds_away.items() if name not in here and rounds < delay_rounds}
    return BrokerMembership(brokers=brokers, joined=_by_name(joined), left=_by_name(away))


def _by_name(numbers: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(numbers.items()))


def _from_the_fullest(view: ClusterView, bundles: _Bundles, count: Ints, share: int, room: Ints) -> tuple[Ints, Ints]:
    """The rows of the bundles that go to brokers with *room*, and (bundles,) each one's destination.

    Brokers with most bundles give first, down to *share*.  Busy and quiet bundles of a broker go alike.
    """
    target = bundles.owner.copy()
    spare = np.clip(np.minimum(count - share, bundles.count(bundles.movable)), 0, None)
    givers = np.bincount(_highest_first(count, spare, int(room.sum())), minlength=len(count))
    chosen = [np.zeros(0, np.int64)]
    for row in np.flatnonzero(givers).tolist():
        own = view.bundles.of_broker(row)
        busiest = busiest_first(view.bundles.short_term_throughput, own[bundles.movable[own]])
        give = int(givers[row])
        # From the list in order of load, cut into equal parts, the middle one of each part.
        chosen.append(busiest[((2 * np.arange(give) + 1) * len(busiest)) // (2 * give)])
    moved = np.concatenate(chosen)
    target[moved] = _lowest_first(count, room, len(moved))
    return moved, target


def _lowest_first(height: Ints, room: Ints, number: int) -> Ints:
    """(wanted,) the row that each thing is put on: always the lowest one, ties by name, *room* on each at most."""
    steps, row = _steps(np.minimum(room, number))
    return row[np.lexsort((row, height[row] + steps))][:number]


def _highest_first(height: Ints, spare: Ints, number: int) -> Ints:
    """The row that each of up to *number* things is taken off: the highest one, ties by name, *spare* off each."""
    steps, row = _steps(spare)
    return row[np.lexsort((row, steps - height[row]))][:number]


def _steps(size: Ints) -> tuple[Ints, Ints]:
    """0 .. size - 1 for each row, one after the other, and the row of each."""
    row = np.repeat(np.arange(len(size)), size)
    starts = np.cumsum(size) - size
    return np.arange(len(row)) - starts[row], row


def _unloads(view: ClusterView, moved: Ints, target: Ints, why: Mapping[int, Verdict]) -> tuple[Unload, ...]:
    bundles, names = view.bundles, view.brokers.names
    return tuple(
        Unload(bundle=bundles.names[row], source=names[source], why=why[source], destination=names[to])
        for row, source, to in zip(moved.tolist(), bundles.broker[moved].tolist(), target[moved].tolist(), strict=True)
    )


def _share(view: ClusterView, row: int, reason: Reason, count: Ints, share: int, detail: str) -> Verdict:
    name, observed = view.brokers.names[row], float(count[row])
    return Verdict(
        subject=name,
        reason=reason,
        observed=observed,
        limit=float(share),
        unit="bundles",
        by=BY_MEMBERSHIP,
        detail=detail,
    )
