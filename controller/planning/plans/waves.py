"""Cuts the moves of a plan into waves: groups of moves that are under way at the same time.

While a bundle moves, it counts on both of its brokers: the source may still serve it, and the destination may serve it
already.  So a wave makes room for nothing in the same wave.  A bundle that needs the room of another one waits for a
later wave.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from controller.model.load import Floats
from controller.planning.objective import ROUNDING, loads
from controller.planning.problem import BalanceProblem, PlannedMove
from controller.planning.sequence import Allowed

Wave: TypeAlias = tuple[PlannedMove, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """What one wave may do."""

    #: At least 1.
    max_moves: int = 20
    #: Bundles that may leave any one broker, and that may come to it; at least 1.
    max_per_broker: int = 10
    #: Producers and consumers that may have to reconnect; a bundle that has more moves alone.  None: any number.
    max_connections: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePace:
    """How fast waves follow each other."""

    #: Seconds from one wave to the next, at least: the controllers have to see the results of the one before.
    wave_seconds: float
    #: Producers and consumers that may have to reconnect in a second; None: any number.
    connections_per_second: float | None = None
    #: A wave is issued at once, so it has no more of them than the rate allows in so many seconds.  None: wave_seconds.
    burst_seconds: float | None = None

    @property
    def max_connections(self) -> float | None:
        """Producers and consumers that one wave may make reconnect, more only by one bundle alone; None: any number."""
        if self.connections_per_second is None:
            return None
        burst = self.wave_seconds if self.burst_seconds is None else self.burst_seconds
        return self.connections_per_second * min(burst, self.wave_seconds)


class _Cut:
    """The waves that are being made."""

    def __init__(self, problem: BalanceProblem, limits: WaveLimits, ceiling: Floats) -> None:
        self._problem, self._limits, self._ceiling = problem, limits, ceiling
        #: (n, R) the load of the brokers: bundles count where they came from, and where they go to.
        self._during: Floats = loads(problem, problem.owner)
        self._n = len(problem.capacity)
        self._begin()

    def _begin(self) -> None:
        self.wave = list[PlannedMove]()
        self._leaving, self._coming = np.zeros(self._n, np.int64), np.zeros(self._n, np.int64)
        self._connections = 0.0

    def full(self) -> bool:
        """Whether the wave has as many moves as it may have."""
        return len(self.wave) >= self._limits.max_moves

    def fits(self, move: PlannedMove) -> bool:
        """Whether *move* may be a part of the wave."""
        max_connections, limits = self._limits.max_connections, self._limits
        if self.wave and (
            self.full()
            or self._leaving[move.source] >= limits.max_per_broker
            or self._coming[move.destination] >= limits.max_per_broker
            or (
                max_connections is not None
                and self._connections + self._problem.connections[move.bundle] > max_connections + ROUNDING
            )
        ):
            return False
        there = self._during[move.destination] + self._problem.size[move.bundle]
        full = float((there / self._problem.capacity[move.destination]).max(initial=0.0))
        return full <= float(self._ceiling[move.destination]) + ROUNDING

    def take(self, move: PlannedMove) -> None:
        """Make *move* a part of the wave."""
        self.wave.append(move)
        self._leaving[move.source] += 1
        self._coming[move.destination] += 1
        self._connections += float(self._problem.connections[move.bundle])
        self._during[move.destination] += self._problem.size[move.bundle]

    def end(self) -> Wave:
        """End the wave, and begin the next one: what moved has left."""
        done = tuple(self.wave)
        for move in done:
            self._during[move.source] -= self._problem.size[move.bundle]
        self._begin()
        return done


def waves_of(
    problem: BalanceProblem,
    moves: Sequence[PlannedMove],
    limits: WaveLimits,
    ceiling: Floats,
    allowed: Allowed | None = None,
) -> tuple[Wave, ...]:
    """*moves*, in an order that is possible one after the other, in few waves.

    No broker that receives a bundle gets above its *ceiling* (n,) during a wave.  A move may overtake another one where
    that takes nothing from it; *allowed* is asked for every move in the new order, and where it is against one, no move
    overtakes.
    """
    waves = _cut(problem, moves, limits, ceiling, overtaking=True)
    if allowed is not None and not _are_allowed(waves, allowed):
        waves = _cut(problem, moves, limits, ceiling, overtaking=False)
    return waves


def _cut(
    problem: BalanceProblem, moves: Sequence[PlannedMove], limits: WaveLimits, ceiling: Floats, *, overtaking: bool
) -> tuple[Wave, ...]:
    cut, waiting, waves = _Cut(problem, limits, ceiling), list(moves), list[Wave]()
    while waiting:
        postponed, blocked = list[PlannedMove](), set[int]()
        for at, move in enumerate(waiting):
            if cut.full() or (postponed and not overtaking):
                postponed += waiting[at:]
                break
            # What is kept waiting finds no less room later: nothing else goes to its destination before it.
            if move.destination not in blocked and cut.fits(move):
                cut.take(move)
            else:
                postponed.append(move)
                blocked.add(move.destination)
        if len(postponed) == len(waiting):
            raise ValueError("these moves are not possible one after the other")
        waves.append(cut.end())
        waiting = postponed
    return tuple(waves)


def _are_allowed(waves: Sequence[Wave], allowed: Allowed) -> bool:
    """Whether every move may go where it goes, after all moves before it."""
    before = list[PlannedMove]()
    for wave in waves:
        for move in wave:
            if not allowed(move.bundle, before)[move.destination]:
                return False
            before.append(move)
    return True
