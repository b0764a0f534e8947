"""Follows the load of many things at once: a level that bursts do not move, a trend, and how wrong both are.

The level of the next minute is expected to be the level plus the trend.  A load near that moves level and trend a
little; "near" is three times the typical error, and a tenth of the level.  A load further off is left out, unless it
stays there: at the second round in a row the level jumps to it.  So a burst of one minute changes nothing, and
a load that has really changed is known after two rounds, not after the ten minutes of a running average.
"""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from controller.model.load import Floats, Ints

#: Parts of a difference by which the level, the trend and the error move in a round.
_LEVEL: Final = 0.3
_TREND: Final = 0.1
_ERROR: Final = 0.1
#: So many errors, and this share of the level, are near.
_NEAR: Final = 3.0
_NEAR_SHARE: Final = 0.1
#: In so many rounds in a row a load is far off, on the same side, before the level jumps to it.
PATIENCE: Final = 2
#: A difference counts as at most so many times what is near: a burst does not make the error large.
_MOST: Final = 2.0
#: The error that is assumed at first, as a share of the level.
_AT_FIRST: Final = 0.1
#: What is left of a trend from one minute to the next: no trend lasts.
_KEPT: Final = 0.9
#: Minutes: no time between two rounds is shorter.
_NO_TIME: Final = 1e-9
#: ``streak`` of a row that was never seen.
NEVER: Final = -128


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Followed:
    """Columns (n,), in the unit of the load; the trend is for a minute."""

    level: Floats
    trend: Floats
    error: Floats
    #: Rounds in a row in which the load was far above (below: negative); NEVER: not seen yet.
    streak: Ints

    def after(self, seen: Floats, at_first: Floats, minutes: float) -> Self:
        """After a round in which the load was *seen* (n,), *minutes* after the last one.

        *at_first*: (n,) the level of rows that were never seen.
        """
        new = self.streak == NEVER
        level = np.where(new, at_first, self.level)
        error = np.where(new, _AT_FIRST * at_first, self.error)
        begun = replace(self, level=level, error=error)
        expected, streak = begun._expected(minutes), begun._streak_after(seen, minutes)
        far, jumps = streak != 0, np.abs(streak) >= PATIENCE
        moved = expected + _LEVEL * (seen - expected)
        found = np.where(jumps, seen, np.where(far, level, moved))
        step = np.where(far, 0.0, (moved - level) / max(minutes, _NO_TIME) - self.trend)
        off = np.minimum(np.abs(seen - expected), _MOST * begun._near)
        return replace(
            begun,
            level=found,
            trend=np.where(jumps | new, 0.0, self.trend + _TREND * step),
            error=error + _ERROR * (off - error),
            streak=np.where(jumps, 0, streak),
        )

    def jumped(self, seen: Floats, minutes: float) -> float:
        """How much load the levels gain or lose that jump in the round of ``after``."""
        jumps = np.abs(self._streak_after(seen, minutes)) >= PATIENCE
        return float(np.abs(seen - self.level)[jumps].sum())

    def ahead(self, minutes: float) -> Floats:
        """(n,) the level in *minutes*, by the trend, which gets weaker; a trend within the error is none."""
        kept = _KEPT**minutes
        change = self.trend * (_KEPT * (1 - kept) / (1 - _KEPT))
        beyond = np.maximum(np.abs(change) - self.error, 0.0)
        found: Floats = np.maximum(self.level + np.sign(change) * beyond, 0.0)
        return found

    @property
    def _near(self) -> Floats:
        """(n,) how far from what is expected a load is near."""
        return _NEAR * self.error + _NEAR_SHARE * self.level

    def _expected(self, minutes: float) -> Floats:
        return np.maximum(self.level + self.trend * minutes, 0.0)

    def _streak_after(self, seen: Floats, minutes: float) -> Ints:
        """(n,) the streak after a round in which the load was *seen*, before any level jumps."""
        difference = seen - self._expected(minutes)
        side = np.sign(difference).astype(np.int64)
        far = (np.abs(difference) > self._near) & (self.streak != NEVER)
        return np.where(far, np.where(np.sign(self.streak) == side, self.streak + side, side), 0)
