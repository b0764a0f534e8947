"""What brokers far below the mean usage lack, and how much the fullest ones give them."""

from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from controller.model.load import Bools, Floats
from controller.planning.from_view import MappedProblem
from controller.strategies.shedding.peak_shedder.options import PeakOptions

#: A broker is so many errors of the estimate below the mean before it is idle.
_ERRORS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FarBelow:
    """Which brokers are far below the mean usage: of the scarcest resource, now and at all times to come."""

    options: PeakOptions
    #: The resources of these times, and which of them has the highest mean, by its place.
    times: list[int]
    fullest: int
    #: (T,) the mean utilisation at these times, and the error of its estimate: usage that load does not explain makes
    #: no broker idle.
    means: Floats
    error: Floats
    #: (n, T) utilisation and capacity of the brokers.
    share: Floats
    capacity: Floats

    @classmethod
    def of(cls, found: MappedProblem, share: Floats, means: Floats, fit: Floats, options: PeakOptions) -> Self:
        """*share*: (n, R) utilisations; *means*, *fit*: (R,) their mean, and the error of its estimate."""
        times = [int(means[: found.now].argmax()), *range(found.now, len(means))]
        return cls(
            options=options,
            times=times,
            fullest=int(means[times].argmax()),
            means=means[times],
            error=fit[times],
            share=share[:, times],
            capacity=found.problem.capacity[:, times],
        )

    def few(self, returned: Bools) -> Floats:
        """(n, T) the utilisation below which each broker is idle; *returned*: (n,) who came back within a day."""
        options = self.options
        most = max(options.idle_percent, options.returned_percent)
        percent = np.where(returned, most, options.idle_percent)[:, None]
        few = (1 - percent / 100 - _ERRORS * self.error) * self.means
        return np.minimum(few, self.means - options.min_gain)

    def apart(self, returned: Bools) -> Bools:
        """(n,) which of the *returned* brokers would be idle, if they were like any other."""
        if self.options.returned_percent <= self.options.idle_percent:
            return returned & False
        apart: Bools = returned & np.all(self.share < self.few(returned & False), axis=1)
        return apart

    def spared(self, returned: Bools) -> Bools:
        """(n,) which brokers are *apart*, and not idle."""
        spared: Bools = self.apart(returned) & ~np.all(self.share < self.few(returned), axis=1)
        return spared


class CrowdedBrokers(NamedTuple):
    """(n,) Brokers above their limit, those of them that an urgent move relieved, and the least of their limits."""

    too_full: Bools
    relieved: Bools
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filling:
    """Brokers that are idle, and what it takes that none of them is."""

    times: list[int]
    #: (n,) which brokers are idle, and (n, T) below which utilisation they are.
    idle: Bools
    few: Floats
    #: The fullest brokers have above this utilisation what the idle ones lack.
    level: float
    #: Whether all of them came back within a day, so that they get no bundle more than they lack.
    sparing: bool

    def suffices(self, share: Floats) -> bool:
        """Whether none of them is idle where all brokers have the utilisations *share* (n, R)."""
        return not bool((np.all(share[:, self.times] < self.few, axis=1) & self.idle).any())


def filling_of(far_below: FarBelow, returned: Bools, crowded: CrowdedBrokers) -> Filling | None:
    """What idle brokers are to get before an ordinary plan is made; None where there is none.

    Where brokers are above their limit, only those of *returned* (n,) get what they lack first: where nobody is above
    it then, and nobody was relieved, who would have to give.
    """
    few, options = far_below.few(returned), far_below.options
    idle: Bools = np.all(far_below.share < few, axis=1)
    if crowded.too_full.any():
        first = options.returned_percent > options.idle_percent and not crowded.relieved.any()
        idle &= returned & first
    if not idle.any():
        return None
    # How much is given goes by the fullest of the times.
    full, capacity = far_below.share[:, far_below.fullest], far_below.capacity[:, far_below.fullest]
    lacks = float(((few[:, far_below.fullest] - full) * capacity)[idle].sum())
    level = _level_giving(lacks, full, capacity)
    if crowded.too_full.any() and level > crowded.limit:
        return None
    return Filling(times=far_below.times, idle=idle, few=few, level=level, sparing=not (idle & ~returned).any())


def _level_giving(amount: float, share: Floats, capacity: Floats) -> float:
    """The utilisation above which brokers have *amount* in all; *share*, *capacity*: (n,)."""
    order = np.argsort(-share, kind="stable")
    load, room = np.cumsum((share * capacity)[order]), np.cumsum(capacity[order])
    # What they give where the level is that of each broker, from the fullest one on.
    given = load - share[order] * room
    brokers = int(np.searchsorted(given, amount))
    return float((load[brokers - 1] - amount) / room[brokers - 1])
