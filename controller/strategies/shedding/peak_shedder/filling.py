"""What brokers far below the mean usage of their pool lack, and how full the fullest ones are once they gave it."""

from typing import Final, NamedTuple

import numpy as np

from controller.model.load import Bools, Floats

#: A broker is idle this far below the mean, as a share of the mean; one that was only away for a moment, so much more.
_IDLE: Final = 0.25
_JUST_AWAY: Final = 0.35


class PoolUsage(NamedTuple):
    """The brokers (n) of a pool, at the times (T) that count: now, in its scarcest resource, and those to come."""

    #: (n, T).
    share: Floats
    capacity: Floats
    #: (T,) mean utilisation, and what of it load may not explain, as a share: that makes no broker idle.
    mean: Floats
    unknown: Floats

    def idle_below(self, just_away: Floats, min_gain: float) -> Floats:
        """(n, T) the utilisation below which each broker is idle.

        *just_away*: (n,) 1 for a broker that is back after a moment, 0 for one that is new.  Clients of its bundles
        were disturbed when it went; each that moves back is disturbed once more.
        """
        far = _IDLE + _JUST_AWAY * just_away[:, None] + self.unknown
        return np.minimum((1 - far) * self.mean, self.mean - min_gain)

    def level_to_fill(self, just_away: Floats, min_gain: float) -> float | None:
        """The fullest brokers have above this utilisation what idle ones lack not to be idle; None: no broker is."""
        few = self.idle_below(just_away, min_gain)
        idle: Bools = np.all(self.share < few, axis=1)
        if not idle.any():
            return None
        at = int(self.mean.argmax())
        full, capacity = self.share[:, at], self.capacity[:, at]
        return _level_giving(float(((few[:, at] - full) * capacity)[idle].sum()), full, capacity)


def _level_giving(amount: float, share: Floats, capacity: Floats) -> float:
    """The utilisation above which brokers have *amount* in all; *share*, *capacity*: (n,)."""
    order = np.argsort(-share, kind="stable")
    load, room = np.cumsum((share * capacity)[order]), np.cumsum(capacity[order])
    # What they give where the level is that of each broker, from the fullest one on.
    given = load - share[order] * room
    brokers = int(np.searchsorted(given, amount))
    return float((load[brokers - 1] - amount) / room[brokers - 1])
