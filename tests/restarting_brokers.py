"""A light model of brokers that restart, for a rule that looks at who owned what: each death is one interval."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np

from controller.cycle.guardrails.fatal_bundles import FatalLimits, watched_deaths
from controller.model.memory import Memory
from controller.strategies.api import Broker, Bundle, Ints, cluster_view

#: Where the bundles of a dead broker go: each to any other, all to one, or each to the one with the fewest.
Placement: TypeAlias = Literal["random", "herd", "fewest"]
PLACEMENTS: Final[tuple[Placement, ...]] = ("random", "herd", "fewest")
MINUTE: Final = 60_000


@dataclass
class RestartingBrokers:
    """Brokers, their bundles, and what a controller remembers of them."""

    rng: np.random.Generator
    brokers: int
    bundles: int
    placement: Placement = "random"
    memory: Memory = field(default_factory=Memory)
    now: int = 0
    #: Bundles that were ever named.
    named: set[str] = field(default_factory=set)
    deaths: int = 0
    #: When somebody last ran `trimtab resume`.
    resumed_ms: int = 0

    def __post_init__(self) -> None:
        cuts = np.linspace(0, 0xFFFFFFFF, self.bundles + 1).astype(int).tolist()
        self.names = [f"acme/ns/0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(cuts)]
        self.owner: Ints = self.rng.integers(0, self.brokers, self.bundles)
        self.look()

    def look(self, down: int = -1, unlisted: Collection[int] = ()) -> None:
        """An interval passes, in which the broker *down* is away, and no broker lists the bundles *unlisted*."""
        self.now += MINUTE
        there = [
            Broker(
                f"b{code:03}:8080",
                cpu=0.5,
                bundles={
                    self.names[row]: Bundle()
                    for row in np.flatnonzero(self.owner == code).tolist()
                    if row not in unlisted
                },
            )
            for code in range(self.brokers)
            if code != down
        ]
        view = replace(cluster_view(*there), as_of_ms=self.now)
        self.memory = watched_deaths(self.memory, view, FatalLimits(move_fatal=False), MINUTE, self.resumed_ms)
        self.named |= set(self.memory.deaths.fatal)

    def restart(self, broker: int, *, seen_away: bool = True, listed: bool = True) -> None:
        """*broker* dies, and comes back at once or in the next interval.

        Its bundles are *listed* at once by those that take them, or in the next interval.
        """
        self.deaths += 1
        others = np.array([code for code in range(self.brokers) if code != broker])
        left = np.flatnonzero(self.owner == broker)
        if self.placement == "random":
            self.owner[left] = self.rng.choice(others, len(left))
        elif self.placement == "herd":
            self.owner[left] = self.rng.choice(others)
        else:
            for row in left.tolist():
                counts = np.bincount(self.owner, minlength=self.brokers)
                self.owner[row] = others[np.argmin(counts[others])]
        self.look(broker if seen_away else -1, () if listed else left.tolist())
        if not listed:
            self.look()

    def balance(self, moves: int) -> None:
        """Somebody moves bundles from full brokers to empty ones."""
        for _ in range(moves):
            counts = np.bincount(self.owner, minlength=self.brokers)
            rows = np.flatnonzero(self.owner == counts.argmax())
            self.owner[self.rng.choice(rows)] = counts.argmin()


def restarts_of_all_kinds(rng: np.random.Generator, least: int, *, listed: bool = True) -> list[RestartingBrokers]:
    """Clusters with *least* restarts together: rolling ones, one after the other too, broken brokers, and chance.

    *listed*: see ``RestartingBrokers.restart``.
    """
    found, deaths = list[RestartingBrokers](), 0
    while deaths < least:
        brokers = int(rng.choice([3, 4, 6, 12]))
        model = RestartingBrokers(rng, brokers, int(rng.choice([30, 100])), PLACEMENTS[int(rng.integers(3))])
        rolling = [*range(brokers)]
        kinds: list[list[int]] = [
            rolling,
            [*rolling, *rolling[::-1], *rolling],
            [*rng.permutation(brokers).tolist(), *rng.permutation(brokers).tolist()],
            rng.integers(0, brokers, 3 * brokers).tolist(),
            [0] * 8,
        ]
        for broker in kinds[int(rng.integers(len(kinds)))]:
            model.restart(broker, seen_away=bool(rng.integers(2)), listed=listed)
            for _ in range(int(rng.integers(3))):
                model.balance(int(rng.integers(5)))
                model.look()
        deaths += model.deaths
        found.append(model)
    return found
