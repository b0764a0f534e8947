"""A deadline: one value that all steps of a piece of work share.

Only the standard library is imported here: signals are handled before the rest is loaded.
"""

import time
from collections.abc import Callable
from typing import Self, TypeAlias

#: Seconds since some moment; never goes back.
Clock: TypeAlias = Callable[[], float]


def steady() -> float:
    """Seconds since some moment, by the clock that is never set.  The default of every ``Clock``.

    A function of its own, so that the clock is looked up when it is read and not when a module is loaded: a simulation
    replaces the clocks of the process.
    """
    return time.monotonic()


class Deadline:
    """A fixed moment at which time is over. A test passes its own *clock*."""

    __slots__ = ("_at", "_clock")

    def __init__(self, at: float, clock: Clock = steady) -> None:
        """*at* is in seconds of *clock*; ``math.inf`` is no limit."""
        self._at, self._clock = at, clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = steady) -> Self:
        """The deadline that is *seconds* away."""
        return cls(clock() + seconds, clock)

    @property
    def remaining(self) -> float:
        """Seconds until then, 0 when time is over."""
        return max(self._at - self._clock(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether time is over."""
        return self._clock() >= self._at

    def within(self, seconds: float) -> "Deadline":
        """This deadline, or the one *seconds* from now where that comes first."""
        return Deadline(min(self._at, self._clock() + seconds), self._clock)
