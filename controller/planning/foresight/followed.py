"""Follows the load of many things at once: a level that bursts do not move, a trend, and how wrong both are.

The level of the next minute is expected to be the level plus the trend.  A load near that moves level and trend a
little; "near" is three times the typical error, and a tenth of the level.  A load further off is left out, unless it
stays there: at the second round in a row the level jumps to the nearer of the two.  So a burst of one minute changes
nothing, not even right after a change, and a load that has really changed is known after two rounds, not after the ten
minutes of a running average.
"""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from controller.model.load import Floats, Ints

#: Parts of a difference by which the level, the trend and the error move in a round.
_LEVEL: Final = 0.3
_TREND: Final = 0.1
_ERROR: Final = 0.1
#: A load is near within this many errors, plus this share of the level.
_NEAR: Final = 3.0
_NEAR_SHARE: Final = 0.1
#: Number of rounds in a row in which a load is far off, on the same side, before the level jumps to it.
PATIENCE: Final = 2
#: A difference counts as at most this multiple of what is near: a burst does not make the error large.
_MAX_OFF: Final = 2.0
#: The error that is assumed at first, as a share of the level.
_AT_FIRST: Final = 0.1
#: What is left of a trend from one minute to the next: no trend lasts.
_TREND_KEPT_A_MINUTE: Final = 0.9
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
    #: The load of the last round, where the streak is not 0; infinite: not known.
    far: Floats

    def after(self, load: Floats, at_first: Floats, minutes: float) -> Self:
        """After a round in which the load was *load* (n,), *minutes* after the last one.

        *at_first*: (n,) the level of rows that were never seen.
        """
        new = self.streak == NEVER
        level = np.where(new, at_first, self.level)
        error = np.where(new, _AT_FIRST * at_first, self.error)
        started = replace(self, level=level, error=error)
        expected, streak = started._expected(minutes), started._streak_after(load, minutes)
        far, jumps = streak != 0, np.abs(streak) >= PATIENCE
        moved = expected + _LEVEL * (load - expected)
        new_level = np.where(jumps, self._nearer(load, expected), np.where(far, level, moved))
        step = np.where(far, 0.0, (moved - level) / max(minutes, _NO_TIME) - self.trend)
        off = np.minimum(np.abs(load - expected), _MAX_OFF * started._near)
        now = replace(
            started,
            level=new_level,
            trend=np.where(jumps | new, 0.0, self.trend + _TREND * step),
            error=error + _ERROR * (off - error),
            streak=np.where(jumps, 0, streak),
            far=load,
        )
        # A load that changed within a round is between the two at first: the next one may show that it is the further.
        return replace(now, streak=np.where(jumps, now._streak_after(load, 0.0), streak))

    def jumped(self, load: Floats, minutes: float) -> float:
        """How much load the levels gain or lose that jump in the round of ``after``."""
        jumps = np.abs(self._streak_after(load, minutes)) >= PATIENCE
        return float(np.abs(self._nearer(load, self._expected(minutes)) - self.level)[jumps].sum())

    def ahead(self, minutes: float) -> Floats:
        """(n,) the level in *minutes*, by the trend, which gets weaker; a trend within the error is none."""
        trend_share = _TREND_KEPT_A_MINUTE**minutes
        change = self.trend * (_TREND_KEPT_A_MINUTE * (1 - trend_share) / (1 - _TREND_KEPT_A_MINUTE))
        beyond = np.maximum(np.abs(change) - self.error, 0.0)
        level: Floats = np.maximum(self.level + np.sign(change) * beyond, 0.0)
        return level

    @property
    def _near(self) -> Floats:
        """(n,) how far from what is expected a load is near."""
        return _NEAR * self.error + _NEAR_SHARE * self.level

    def _expected(self, minutes: float) -> Floats:
        return np.maximum(self.level + self.trend * minutes, 0.0)

    def _nearer(self, load: Floats, expected: Floats) -> Floats:
        """(n,) of *load* and that of the round before, the one that is nearer to what is *expected*."""
        nearer: Floats = np.where(np.abs(self.far - expected) < np.abs(load - expected), self.far, load)
        return nearer

    def _streak_after(self, load: Floats, minutes: float) -> Ints:
        """(n,) the streak after a round in which the load was *load*, before any level jumps."""
        difference = load - self._expected(minutes)
        side = np.sign(difference).astype(np.int64)
        far = (np.abs(difference) > self._near) & (self.streak != NEVER)
        return np.where(far, np.where(np.sign(self.streak) == side, self.streak + side, side), 0)
