"""The times at which the query begins a batch.

A micro-batch costs much the same whether it reads one record or many, and only a tick closes an interval.  So there are
few: one when a tick has come, one shortly before a tick is expected, so that little is left to read by then, and one
now and then, for whatever else lies in the log.

Nothing depends on these times but the cost and the delay of decisions: the same records give the same decisions however
batches are cut.
"""

import math
from dataclasses import dataclass, field
from typing import Final

#: Seconds from the batch before a tick to that tick: at most so many, and so much of an interval.
_AHEAD: Final = 5.0
_AHEAD_OF_AN_INTERVAL: Final = 1 / 12
#: Seconds from one batch to the next at most, and so much of an interval.
_AT_MOST: Final = 30.0
_AT_MOST_OF_AN_INTERVAL: Final = 1 / 2
#: Seconds until a batch that should have closed an interval, and did not, is followed by another.
_AGAIN: Final = 0.5


@dataclass(slots=True, kw_only=True)
class BatchTimes:
    """Decides when the next batch is due; all times in seconds of one monotonic clock."""

    #: Length of an interval, seconds.
    period: float
    _last: float = field(default=-math.inf, init=False)
    #: The newest tick, epoch ms, and when it came.
    _tick: int | None = field(default=None, init=False)
    _came: float = field(default=-math.inf, init=False)

    def due(self, now: float, *, ticked: int | None, decided: int | None) -> bool:
        """Whether a batch shall begin *now*; if so, it is taken to begin.

        *ticked*, *decided*: the newest interval that was ticked, and the last one that is decided, epoch ms; None
        before the first.
        """
        if ticked != self._tick:
            self._tick, self._came = ticked, now
        is_due = now - self._last >= self._longest or self._foreseen(now) or self._waits(now, decided)
        if is_due:
            self._last = now
        return is_due

    @property
    def _longest(self) -> float:
        return min(_AT_MOST, _AT_MOST_OF_AN_INTERVAL * self.period)

    def _foreseen(self, now: float) -> bool:
        """The next tick is near, and no batch has been this close to it."""
        near = self._came + self.period - min(_AHEAD, _AHEAD_OF_AN_INTERVAL * self.period)
        return self._last < near <= now

    def _waits(self, now: float, decided: int | None) -> bool:
        """A tick has come, and its interval is not decided."""
        if self._tick is None or (decided is not None and decided >= self._tick):
            return False
        return self._last < self._came or now - self._last >= _AGAIN
