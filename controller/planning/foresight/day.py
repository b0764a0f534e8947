"""The daily profile of the load: yesterday's load at a time of day, relative to the load now."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import Floats

HOURS: Final = 24
HOUR_MS: Final = 3_600_000
#: A load is assumed to grow or shrink at most by this factor: at night, many have a tenth of their day's.
_MAX_RATIO: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayProfile:
    """(24, n) the level at the end of each hour of the day, UTC; 0: not known."""

    levels: Floats

    @property
    def is_known(self) -> bool:
        """Whether any row is known for the whole day."""
        return bool((self.levels > 0).all(axis=0).any())

    def ratio(self, at_ms: int, hours: int) -> Floats:
        """(n,) the load so many *hours* after *at_ms*, as a multiple of that at *at_ms*; 1 where it is not known."""
        now, then = self._of(at_ms), self._of(at_ms + hours * HOUR_MS)
        known = (now > 0) & (then > 0)
        ratio: Floats = np.divide(then, now, out=np.ones_like(now), where=known)
        return ratio.clip(1 / _MAX_RATIO, _MAX_RATIO)

    def _of(self, at_ms: int) -> Floats:
        """(n,) the level at this time of the day, between the ends of two hours; 0 where one of them is not known."""
        hour, within = divmod(at_ms % (HOURS * HOUR_MS), HOUR_MS)
        before, after = self.levels[hour - 1], self.levels[hour]
        part = within / HOUR_MS
        return np.where((before > 0) & (after > 0), (1 - part) * before + part * after, 0.0)


def with_day(before: Floats, level: Floats) -> Floats:
    """(n,) what is kept of an hour of the day: half of it new, where there was one; *level* 0 counts as very little."""
    new = np.maximum(level, 1e-6)
    return np.where(before > 0, (before + new) / 2, new)
